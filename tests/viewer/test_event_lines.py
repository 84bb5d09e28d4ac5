"""One line for each event."""

import pytest

from harness.events import EVENT_TYPES, RunEvent
from tests.viewer.example_runs import all_runs
from viewer.present.event_lines import _LINES, line, tone

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


def test_bad_news_is_toned_as_such():
    assert tone("run.terminated", {"outcome": "SUCCESS"}) == "good"
    assert tone("run.terminated", {"outcome": "FAILED"}) == "bad"
    assert tone("attempt.failed", {}) == "bad"
    assert tone("attempt.started", {}) == "attempt"
