"""The fold: what each event makes of the state of its run, and which events can come there at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from harness import events as e
from harness.errors import IllegalEvent
from harness.state import attempts, scopes
from harness.state.charges import charge_run
from harness.state.records import NOTHING, RUNNING, Refusal, RunState, observed_in


def begin(event: e.Event) -> RunState:
    """The state after a run's first event; `IllegalEvent` if that is not `run.started`."""
    if event.type != "run.started":
        raise IllegalEvent(event.type, "a run begins with run.started")
    return _started(cast(e.RunStarted, event))


def evolve(state: RunState | None, event: e.Event) -> RunState:
    """The state after `event`, beside `state` as it was; `IllegalEvent` if it cannot come here (SPEC E6)."""
    return evolve_all(state, (event,))


def evolve_all(state: RunState | None, events: Sequence[e.Event]) -> RunState:
    """The state after all of `events`, at least one, as `evolve` would give it one by one, with a single copy."""
    if state is None:
        evolved, events = begin(events[0]), events[1:]
    else:
        evolved = state.copy()
    for event in events:
        advance(evolved, event)
    return evolved


def advance(state: RunState, event: e.Event) -> None:
    """Change `state` to that after `event`; `IllegalEvent` if it cannot come here, and then the state is of no use.

    For whoever adds up many events on the way to one state, and has given it to nobody yet.
    """
    event_type = event.type
    if state.outcome != RUNNING and event_type not in e.ACCEPTED_AFTER_TERMINATION:
        raise IllegalEvent(event_type, f"the run ended {state.outcome}")
    step = _STEPS.get(event_type)
    if step is None:
        raise IllegalEvent(event_type, "it is not an event of a run that has begun")
    step(state, event)


def _started(event: e.RunStarted) -> RunState:
    usage = {"run_bytes": event.query_bytes} if event.query_stored and event.query_bytes else NOTHING
    return RunState(
        session_id=event.session_id,
        run_id=event.run_id,
        started_us=event.occurred_us,
        timeout_us=event.timeout_us,
        limits=event.limits,
        observed=observed_in(event.limits),
        is_priced=event.price_table is not None,
        usage=usage,
        flow=event.flow,
    )


def _rejected(state: RunState, event: e.ReservationRejected) -> None:
    # A limit of a scope is the scope's affair; the run goes on.
    if event.scope_id is None:
        state.refusal = Refusal(event.resource, event.used, event.limit, event.amount, event.boundary)


def _flow_selected(state: RunState, event: e.FlowSelected) -> None:
    state.flow = event.flow


def _cancellation_requested(state: RunState, event: e.CancellationRequested) -> None:
    state.cancel_requested = state.cancel_requested or event.reason


def _cancellation_signalled(state: RunState, event: e.CancellationSignalled) -> None:
    if state.cancel_signalled is not None:
        raise IllegalEvent(event.type, f"cancellation was signalled before, with {state.cancel_signalled}")
    state.cancel_signalled = event.reason


def _graph_transitioned(state: RunState, event: e.GraphTransitioned) -> None:
    if state.graph_final_node is not None:
        raise IllegalEvent(event.type, f"the graph finished in {state.graph_final_node}")


def _graph_finished(state: RunState, event: e.GraphFinished) -> None:
    if state.graph_final_node is not None:
        raise IllegalEvent(event.type, f"the graph finished in {state.graph_final_node}")
    state.graph_final_node = event.final_node


def _answer_recorded(state: RunState, event: e.AnswerRecorded) -> None:
    if state.answered:
        raise IllegalEvent(event.type, "the run has an answer")
    # Its bytes were charged when it was given.
    state.answered = True


def _terminated(state: RunState, event: e.RunTerminated) -> None:
    if state.open_attempts:
        raise IllegalEvent(event.type, f"attempt {next(iter(state.open_attempts))} is still open")
    if event.resource is not None and event.used is not None and event.limit is not None:
        refusal = state.refusal
        if refusal is None or refusal.resource != event.resource:
            state.refusal = Refusal(event.resource, event.used, event.limit)
    if event.error_stored and event.error_bytes:
        charge_run(state, (), {"run_bytes": event.error_bytes})
    state.outcome = event.outcome
    state.reason = event.reason
    state.ended_us = event.occurred_us
    state.ended_elapsed_us = event.elapsed_us


def _unchanged(state: RunState, event: e.Event) -> None:
    """The event says nothing that a decision needs."""


_STEPS: dict[str, Callable[[RunState, Any], None]] = {
    "flow.selected": _flow_selected,
    "reservation.granted": attempts.granted,
    "reservation.rejected": _rejected,
    "attempt.started": attempts.started,
    "attempt.succeeded": attempts.succeeded,
    "attempt.failed": attempts.failed,
    "attempt.abandoned": attempts.abandoned,
    "attempt.finished_late": attempts.finished_late,
    "usage.settled": attempts.settled,
    "retry.scheduled": _unchanged,
    "retry.refused": _unchanged,
    "hidden_retry.detected": attempts.retried_unseen,
    "scope.opened": scopes.opened,
    "scope.exhausted": scopes.exhausted,
    "scope.closed": scopes.closed,
    "policy.decided": _unchanged,
    "limit.would_reject": _unchanged,
    "cancellation.requested": _cancellation_requested,
    "cancellation.signalled": _cancellation_signalled,
    "graph.transitioned": _graph_transitioned,
    "graph.finished": _graph_finished,
    "answer.recorded": _answer_recorded,
    "run.terminated": _terminated,
    "evaluation.recorded": _unchanged,
    "feedback.recorded": _unchanged,
    "case.recorded": _unchanged,
    "content.erased": _unchanged,
}
