"""One line for each event."""

import pytest

from harness.events import EVENT_TYPES, RunEvent
from ledger.words.event_lines import _LINES, line, tone
from tests.viewer.example_runs import all_runs

RUN_EVENT_TYPES = [name for name, model in EVENT_TYPES.items() if issubclass(model, RunEvent)]


@pytest.mark.parametrize("event_type", RUN_EVENT_TYPES)
def test_every_event_type_that_a_run_can_have_has_words(event_type):
    assert event_type in _LINES


def test_every_event_of_the_examples_has_a_line_made_for_it():
    for run in all_runs():
        for event in run.events:
            text = line(event.type, event.fields)
            assert text
            assert "boundary=" not in text


def test_an_event_of_a_type_that_is_not_known_here_lists_its_fields():
    assert line("limit.to_come", {"type": "limit.to_come", "limit": 5, "run_id": "r"}) == "limit=5"


def test_an_event_that_lacks_what_its_type_should_have_lists_what_it_has():
    assert line("attempt.failed", {"failure": "TRANSPORT"}) == "failure=TRANSPORT"


def test_amounts_are_in_their_own_units_and_observed_limits_are_told_apart():  # D13
    limits = {"model_calls": 1, "cost_micros": 20_000, "observe:tool:query_logs": 2}
    opened = {"boundary": "executor.1/scope/planner/2/1", "limits": limits, "timeout_us": 5_000_000}
    assert line("scope.opened", opened) == (
        "executor.1 · planner · 1 model call, 0.02 cost, 2 query_logs only observed · at most 5.00 s"
    )


def test_a_boundary_in_a_nested_scope_is_told_by_the_scopes_name():  # D7
    inside = {"boundary": "executor.1/scope/planner/2/1/tool/query_logs/1/1", "duration_us": 500}
    assert line("attempt.succeeded", {**inside, "first_output_us": 90}) == (
        "executor.1 · planner.2 · query_logs · 500 µs · first output after 90 µs"
    )


def test_a_refusal_says_whether_a_scope_or_the_run_refused():
    fields = {"boundary": "model/m/1/1", "name": "m", "resource": "model_calls", "used": 1, "limit": 1}
    assert line("reservation.rejected", fields) == "m · model calls: 1 of 1 used"
    assert line("reservation.rejected", {**fields, "scope_id": "s1"}).endswith("used · a limit of its scope")


def test_what_was_let_past_a_limit_or_denied_is_toned_as_a_warning():
    assert tone("limit.would_reject", {}) == tone("policy.decided", {"allowed": False}) == "warn"
    assert tone("policy.decided", {"allowed": True}) == "policy"


def test_bad_news_is_toned_as_such():
    assert tone("run.terminated", {"outcome": "SUCCESS"}) == "good"
    assert tone("run.terminated", {"outcome": "FAILED"}) == "bad"
    assert tone("attempt.failed", {}) == "bad"
    assert tone("attempt.started", {}) == "attempt"
