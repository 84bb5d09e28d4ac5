"""The fold: what each event makes of the state of its run, and which events can come there at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import events as e
from harness.errors import IllegalEvent
from harness.state import attempts, scopes
from harness.state.charges import charge_run
from harness.state.records import NOTHING, RUNNING, Refusal, RunState, observed_in


def begin(event: e.Event) -> RunState:
    """The state after a run's first event; `IllegalEvent` if that is not `run.started`."""
    if not isinstance(event, e.RunStarted):
        raise IllegalEvent(event.type, "a run begins with run.started")
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


def evolve(state: RunState | None, event: e.Event) -> RunState:
    """The state after `event`; `IllegalEvent` if it cannot come here (SPEC E6)."""
    if state is None:
        return begin(event)
    if state.outcome != RUNNING and event.type not in e.ACCEPTED_AFTER_TERMINATION:
        raise IllegalEvent(event.type, f"the run ended {state.outcome}")
    step = _STEPS.get(type(event))
    if step is None:
        raise IllegalEvent(event.type, "it is not an event of a run that has begun")
    return step(state, event)


def _rejected(state: RunState, event: e.ReservationRejected) -> RunState:
    if event.scope_id is not None:
        # It is the scope's affair; the run goes on.
        return state
    refusal = Refusal(event.resource, event.used, event.limit, event.amount, event.boundary)
    return state._replace(refusal=refusal)


def _flow_selected(state: RunState, event: e.FlowSelected) -> RunState:
    return state._replace(flow=event.flow)


def _cancellation_requested(state: RunState, event: e.CancellationRequested) -> RunState:
    return state._replace(cancel_requested=state.cancel_requested or event.reason)


def _cancellation_signalled(state: RunState, event: e.CancellationSignalled) -> RunState:
    if state.cancel_signalled is not None:
        raise IllegalEvent(event.type, f"cancellation was signalled before, with {state.cancel_signalled}")
    return state._replace(cancel_signalled=event.reason)


def _graph_transitioned(state: RunState, event: e.GraphTransitioned) -> RunState:
    if state.graph_final_node is not None:
        raise IllegalEvent(event.type, f"the graph finished in {state.graph_final_node}")
    return state


def _graph_finished(state: RunState, event: e.GraphFinished) -> RunState:
    if state.graph_final_node is not None:
        raise IllegalEvent(event.type, f"the graph finished in {state.graph_final_node}")
    return state._replace(graph_final_node=event.final_node)


def _answer_recorded(state: RunState, event: e.AnswerRecorded) -> RunState:
    if state.answered:
        raise IllegalEvent(event.type, "the run has an answer")
    # Its bytes were charged when it was given.
    return state._replace(answered=True)


def _terminated(state: RunState, event: e.RunTerminated) -> RunState:
    if state.open_attempts:
        raise IllegalEvent(event.type, f"attempt {next(iter(state.open_attempts))} is still open")
    refusal = state.refusal
    if event.resource is not None and event.used is not None and event.limit is not None:
        same = refusal is not None and refusal.resource == event.resource
        refusal = refusal if same else Refusal(event.resource, event.used, event.limit)
    if event.error_stored and event.error_bytes:
        state = charge_run(state, (), {"run_bytes": event.error_bytes})
    return state._replace(
        outcome=event.outcome,
        reason=event.reason,
        ended_us=event.occurred_us,
        ended_elapsed_us=event.elapsed_us,
        refusal=refusal,
    )


def _unchanged(state: RunState, event: e.Event) -> RunState:
    return state


_STEPS: dict[type[e.Event], Callable[[RunState, Any], RunState]] = {
    e.FlowSelected: _flow_selected,
    e.ReservationGranted: attempts.granted,
    e.ReservationRejected: _rejected,
    e.AttemptStarted: attempts.started,
    e.AttemptSucceeded: attempts.succeeded,
    e.AttemptFailed: attempts.failed,
    e.AttemptAbandoned: attempts.abandoned,
    e.AttemptFinishedLate: attempts.finished_late,
    e.UsageSettled: attempts.settled,
    e.RetryScheduled: _unchanged,
    e.RetryRefused: _unchanged,
    e.HiddenRetryDetected: attempts.retried_unseen,
    e.ScopeOpened: scopes.opened,
    e.ScopeExhausted: scopes.exhausted,
    e.ScopeClosed: scopes.closed,
    e.PolicyDecided: _unchanged,
    e.LimitWouldReject: _unchanged,
    e.CancellationRequested: _cancellation_requested,
    e.CancellationSignalled: _cancellation_signalled,
    e.GraphTransitioned: _graph_transitioned,
    e.GraphFinished: _graph_finished,
    e.AnswerRecorded: _answer_recorded,
    e.RunTerminated: _terminated,
    e.EvaluationRecorded: _unchanged,
    e.FeedbackRecorded: _unchanged,
    e.CaseRecorded: _unchanged,
    e.ContentErased: _unchanged,
}
