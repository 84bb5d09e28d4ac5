"""The one fold: what a run's events add up to, and which cannot follow which (SPEC E1, E5, E6)."""

from typing import Any

import pytest

from harness import IllegalEvent, RunState, evolve
from harness import events as e

LIMITS = {"model_calls": 9, "tool_calls": 9, "run_bytes": 999}
STARTED = {"kind": "model", "name": "ask", "operation": "DIAGNOSIS_AGENT", "attempt": 1, "max_attempts": 1}
AT = "model/ask/1/1"


def event(model: type[e.RunEvent], **fields: Any) -> e.RunEvent:
    envelope: dict[str, Any] = {
        "event_id": "w1:1",
        "stream_id": "r:r",
        "session_id": "s",
        "run_id": "r",
        "occurred_us": 7,
    }
    if issubclass(model, e.BoundaryEvent):
        envelope["boundary"] = AT
    return model(**(envelope | fields))


def fold(*events: e.Event) -> RunState:
    state = None
    for each_event in (
        event(e.RunStarted, limits=LIMITS, timeout_us=1_000_000, query_bytes=4, query_stored=True),
        *events,
    ):
        state = evolve(state, each_event)
    assert state is not None
    return state


def start(attempt_id: str = "a1", **fields: Any) -> e.RunEvent:
    return event(e.AttemptStarted, attempt_id=attempt_id, **(STARTED | fields))


def succeed(attempt_id: str = "a1", **fields: Any) -> e.RunEvent:
    return event(e.AttemptSucceeded, attempt_id=attempt_id, duration_us=1, **fields)


def settle(attempt_id: str = "a1", **fields: Any) -> e.RunEvent:
    return event(e.UsageSettled, attempt_id=attempt_id, **({"complete": True, "usage": {"input_tokens": 2}} | fields))


def abandon(attempt_id: str = "a1", reason: str = "NOT_AWAITED") -> e.RunEvent:
    return event(e.AttemptAbandoned, attempt_id=attempt_id, reason=reason)


def finish_late(attempt_id: str = "a1") -> e.RunEvent:
    return event(e.AttemptFinishedLate, attempt_id=attempt_id, duration_us=1, succeeded=True)


def end(**fields: Any) -> e.RunEvent:
    return event(e.RunTerminated, **({"outcome": "SUCCESS", "reason": "COMPLETED"} | fields))


GRAPH_OVER = event(e.GraphFinished, final_node="composer", reason="COMPOSED", degraded=False)
MOVED = event(e.GraphTransitioned, to_node="planner", cause="NEXT")
SIGNALLED = event(e.CancellationSignalled, reason="USER_REQUESTED")
ANSWERED = event(e.AnswerRecorded, answer_digest="0" * 64, answer_bytes=2, answer_stored=True)


@pytest.mark.parametrize(
    "events",
    [
        [event(e.RunStarted, limits=LIMITS, timeout_us=1)],
        [succeed()],
        [finish_late()],
        [settle()],
        [abandon()],
        [start(), start()],
        [start(), abandon(), start()],
        [start(), succeed(), succeed()],
        [start(), succeed(boundary="model/ask/2/1")],
        [start(), finish_late()],
        [start(), settle()],
        [start(), succeed(), settle(), settle()],
        [start(kind="tool"), succeed(), settle()],
        [start(), abandon(reason="NOT_INVOKED"), finish_late()],
        [start(), abandon(), finish_late(), finish_late()],
        [start(), end()],
        [end(), end()],
        [end(), MOVED],
        [end(), start()],
        [end(), SIGNALLED],
        [end(), ANSWERED],
        [SIGNALLED, SIGNALLED],
        [GRAPH_OVER, MOVED],
        [GRAPH_OVER, GRAPH_OVER],
        [ANSWERED, ANSWERED],
    ],
    ids=lambda events: " ".join(each_event.type for each_event in events),
)
def test_what_cannot_follow_is_refused(events: list[e.RunEvent]):  # E6, CASES 29
    *before, last = events
    state = fold(*before)
    with pytest.raises(IllegalEvent) as refused:
        evolve(state, last)
    assert (refused.value.event_type, refused.value.code) == (last.type, "illegal_event")


def test_a_run_begins_with_its_start():
    with pytest.raises(IllegalEvent, match=r"begins with run\.started"):
        evolve(None, MOVED)


def test_the_beginning_sets_the_limits_and_charges_the_question():  # H9
    state = fold()
    assert (state.limits, state.usage, state.outcome, state.timeout_us) == (
        LIMITS,
        {"run_bytes": 4},
        "RUNNING",
        1_000_000,
    )


@pytest.mark.parametrize(
    ("events", "unknown", "tokens"),
    [
        ([start()], 0, 0),
        ([start(), succeed(), settle()], 0, 2),
        ([start(), succeed(), settle(complete=False)], 1, 2),
        ([start(), succeed(), settle(complete=False, usage=None)], 1, 0),
        ([start(), abandon()], 1, 0),
        ([start(), abandon(reason="NOT_INVOKED")], 0, 0),
        ([start(), abandon(), finish_late(), settle()], 0, 2),
        ([start(), abandon(), finish_late(), settle(complete=False)], 1, 2),
        ([start(), abandon(), end(), finish_late(), settle()], 0, 2),
        ([start(kind="tool"), abandon()], 0, 0),
    ],
)
def test_usage_is_unknown_exactly_where_nobody_reported_it(
    events: list[e.RunEvent], unknown: int, tokens: int
):  # H4a, CASES 9
    state = fold(*events)
    assert (state.usage_unknown_count, state.usage.get("input_tokens", 0)) == (unknown, tokens)


def test_stored_bytes_are_charged_and_others_are_not():  # H9
    kept, dropped = {"output_bytes": 10, "output_stored": True}, {"output_bytes": 99, "output_stored": False}
    assert fold(start(), succeed(**kept)).usage["run_bytes"] == 14
    assert fold(start(), succeed(**dropped)).usage["run_bytes"] == 4
    assert fold(end(outcome="FAILED", error_bytes=10, error_stored=True)).usage["run_bytes"] == 14


def test_the_refusal_of_a_run_is_the_limit_that_ended_it():  # H4
    refused = event(e.ReservationRejected, kind="tool", name="grep", resource="tool:grep", amount=1, used=5, limit=5)
    by_call = fold(refused, end(outcome="BUDGET_EXHAUSTED", resource="tool:grep", used=5, limit=5)).refusal
    by_tokens = fold(end(outcome="BUDGET_EXHAUSTED", resource="output_tokens", used=11_210, limit=100)).refusal
    assert by_call is not None
    assert (by_call.resource, by_call.amount, by_call.boundary) == ("tool:grep", 1, AT)
    assert by_tokens is not None
    assert (by_tokens.resource, by_tokens.used, by_tokens.amount) == ("output_tokens", 11_210, None)


def test_the_first_request_to_cancel_stays():  # D3
    first, second = (event(e.CancellationRequested, reason=reason) for reason in ("USER_REQUESTED", "SHUTDOWN"))
    assert fold(first, second).cancel_requested == "USER_REQUESTED"


def test_annotations_change_nothing_even_after_the_end():  # E6
    before = fold(end())
    for annotation in (
        event(e.FeedbackRecorded, useful=True),
        event(e.EvaluationRecorded, evaluator="rules", verdict="PASS"),
        event(e.CaseRecorded, case_id="c", verdict="ACCEPTED"),
    ):
        assert evolve(before, annotation) == before


def test_an_event_of_a_session_is_none_of_a_run():
    opened = e.SessionOpened(event_id="w1:1", stream_id="s:s", session_id="s", occurred_us=7)
    with pytest.raises(IllegalEvent):
        evolve(fold(), opened)
