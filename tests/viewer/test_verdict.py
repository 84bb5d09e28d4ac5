"""The verdict in words."""

from dataclasses import replace

import pytest

from tests.viewer.example_runs import (
    LIMITS,
    astray_run,
    budget_run,
    degraded_run,
    hostile_run,
    overpriced_run,
    running_run,
    success_run,
)
from tests.viewer.fake_run import FakeRun, content
from viewer.present.timeline.scopes import scopes_of
from viewer.present.trace.page import transitions_of
from viewer.present.trace.verdict import verdict


def words(run, **changes):
    trace = run.trace()
    summary = replace(trace.run.summary, status=changes.pop("status", trace.run.summary.status))
    trace = replace(trace, run=replace(trace.run, summary=summary, **changes))
    found = verdict(trace, transitions_of(trace, run.events), run.now_us, scopes_of(run.events))
    return "".join(part.text for part in found.parts)


def a_run() -> FakeRun:
    return FakeRun("s", "r", "q", dict(LIMITS)).start()


def test_a_run_that_a_tool_limit_ended():
    assert words(budget_run()) == (
        "Stopped after 4.17 s: a sixth query_logs call would have passed its limit of 5. It was in executor after one "
        "evidence repair. No answer was given. It changed nothing: every tool call was declared a read."
    )


def test_a_success_that_wrote():
    assert words(success_run()) == "Answered after 2.50 s. It made one write: open_ticket."


def test_a_run_that_its_limit_on_cost_ended():
    assert words(overpriced_run()).startswith(
        "Stopped after 4.01 s: 0.012 USD more would have passed its limit of 0.05 USD."
    )


def test_what_went_astray_is_told_the_gravest_first():  # H7, D5, D13
    assert words(astray_run()) == (
        "Answered after 5.92 s. Two hidden requests were seen beside the recorded attempts. "
        "The scope second look was exhausted (model calls: 1 of 1 used). A policy denied one call. "
        "Work was let past a limit that is only observed, once. "
        "It changed nothing: every tool call was declared a read."
    )


def test_a_success_with_hidden_requests_is_no_good_news():  # H7
    trace = astray_run().trace()
    assert verdict(trace, (), 1).tone == "warn"
    plain = replace(trace, run=replace(trace.run, incidents={"calls_denied": 1}))
    assert verdict(plain, (), 1).tone == "good"


def test_exhausted_scopes_that_are_many_or_not_known_are_counted():
    trace = astray_run().trace()
    trace = replace(trace, run=replace(trace.run, incidents={"scopes_exhausted": 4, "limits_passed": 12}))
    said = "".join(part.text for part in verdict(trace, (), 1).parts)
    assert "Four nested scopes used up a limit of their own." in said
    assert "only observed, 12 times." in said


def test_a_degraded_success_says_so():
    assert words(degraded_run()).startswith("Answered after 580 ms, but degraded: ")


def test_a_running_run_says_how_far_it_is_known():
    assert words(running_run()) == (
        "Still running; its last event came 910 ms after the start. It is in executor. "
        "It changed nothing so far: every tool call was declared a read."
    )


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (
            {"resource": "model_calls", "amount": 1, "used": 8, "limit": 8},
            "a ninth model call would have passed its limit of 8.",
        ),
        (
            {"resource": "tool_calls", "amount": 8, "used": 0, "limit": 6},
            "8 more tool calls would have passed its limit of 6.",
        ),
        (
            {"resource": "tool:x", "amount": None, "used": 5, "limit": 5},
            "a sixth x call would have passed its limit of 5.",
        ),
        (
            {"resource": "output_tokens", "used": 11_210, "limit": 100},
            "11,210 output tokens were used, which is over its limit of 100.",
        ),
        (
            {"resource": "total_tokens", "amount": 900, "used": 9_500, "limit": 10_000},
            "900 more total tokens would have passed its limit of 10,000.",
        ),
        (
            {"resource": "run_bytes", "amount": 5_243_000, "used": 9, "limit": 512_000},
            "5.2 MB more content would have passed its limit of 512 kB.",
        ),
        (
            {"resource": "cost_micros", "used": 260_000, "limit": 250_000},
            "0.26 of cost were used, which is over its limit of 0.25 of cost.",
        ),
        (
            {"resource": "repeat:query_logs", "amount": 1, "used": 3, "limit": 3},
            "a fourth query_logs call with the same arguments would have passed its limit of 3.",
        ),
        (None, "its budget was used up (ran out)."),
    ],
)
def test_each_resource_that_ran_out_is_told_in_its_own_words(refused, sentence):
    assert f"Stopped after 0 s: {sentence}" in words(
        a_run(), status="BUDGET_EXHAUSTED", refused=refused, outcome_reason="RAN_OUT"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"status": "TIMED_OUT"}, "Stopped after 0 s: its time of 1 min was up."),
        (
            {"status": "CANCELLED", "cancel_reason": "CLIENT_DISCONNECTED"},
            "Cancelled after 0 s because the client went away.",
        ),
        ({"status": "CANCELLED", "cancel_reason": "NEW_REASON"}, "Cancelled after 0 s because of new reason."),
        (
            {"status": "FAILED", "outcome_reason": "HARNESS_LOST"},
            "Its process died; what is known of it ends 0 s after the start.",
        ),
        (
            {"status": "FAILED", "outcome_reason": "HIDDEN_RETRY"},
            "Stopped after 0 s: a client within an attempt retried on its own.",
        ),
        (
            {"status": "FAILED", "outcome_reason": "LEDGER_UNAVAILABLE"},
            "the ledger could not be written, so no further work was let through.",
        ),
        ({"status": "FAILED", "outcome_reason": "EXCEPTION"}, "Failed after 0 s: exception."),
        ({"status": "FAILED", "error": content("it\nbroke")}, "Failed after 0 s: it broke."),
    ],
)
def test_each_end_is_told_in_its_own_words(changes, sentence):
    assert sentence in words(a_run(), **changes)


def test_a_write_counts_once_it_was_started_whatever_came_of_it():
    run = a_run()
    run.tool(1, 2, "restart", {}, effect="write", failure="UNKNOWN")
    run.tool(3, 4, "restart", {}, effect="write", ordinal=2)
    run.tool(5, 6, "look", {}, effect="read")
    assert "It made two writes so far: restart; 1 of them did not succeed." in words(run)


def test_tools_that_declare_nothing_are_not_taken_for_reads():
    run = a_run()
    run.tool(1, 2, "look", {}, effect=None)
    assert "It changed nothing" not in words(run)
    assert "One tool call did not declare whether it writes." in words(run)


def test_names_of_the_runs_program_are_marked_as_code_and_shown_on_one_line():
    trace = hostile_run().trace()
    parts = verdict(trace, transitions_of(trace, ()), 1).parts
    assert all("\n" not in part.text and "\x1b" not in part.text for part in parts)
    assert sum(part.code for part in parts) >= 2
