"""One fold for everyone: what a run's events add up to.

The live harness decides on this state, the ledger projects and verifies with it; so the arithmetic of budgets and
the rules of what may follow what exist once. `evolve` is pure: it never changes the state it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from harness import events as e
from harness.errors import IllegalEvent

RUNNING = "RUNNING"
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt that was started and has not ended."""

    attempt_id: str
    boundary: str
    parent_attempt_id: str | None
    kind: str

    @property
    def scope(self) -> str:
        return scope_of(self.boundary)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The limit that refused work or ended the run."""

    resource: str
    used: int
    limit: int
    amount: int | None = None
    boundary: str | None = None


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything a decision about the run needs, and nothing that grows with the number of boundaries crossed."""

    session_id: str
    run_id: str
    started_us: int
    timeout_us: int
    limits: Mapping[str, int]
    usage: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    usage_unknown_count: int = 0
    """Model attempts that ended without their token usage being known."""
    open_attempts: Mapping[str, OpenAttempt] = field(default_factory=lambda: NOTHING)
    abandoned_attempts: Mapping[str, OpenAttempt] = field(default_factory=lambda: NOTHING)
    """Attempts whose end may still arrive late."""
    unsettled_attempts: frozenset[str] = frozenset()
    """Model attempts that ended and whose usage has not been settled yet."""
    flow: str | None = None
    cancel_requested: str | None = None
    cancel_signalled: str | None = None
    graph_final_node: str | None = None
    answered: bool = False
    refusal: Refusal | None = None
    outcome: str = RUNNING
    reason: str | None = None
    ended_us: int | None = None
    ended_elapsed_us: int | None = None


def scope_of(boundary: str) -> str:
    """A boundary's scope path: all but kind, name, ordinal and attempt."""
    return boundary.rsplit("/", 4)[0] if boundary.count("/") > 3 else ""


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


def charge(usage: Mapping[str, int], amounts: Mapping[str, int]) -> Mapping[str, int]:
    """Usage with `amounts` added."""
    return {**usage, **{name: usage.get(name, 0) + amount for name, amount in amounts.items()}}


def _granted(state: RunState, event: e.ReservationGranted) -> RunState:
    return replace(state, usage=charge(state.usage, event.usage))


def _rejected(state: RunState, event: e.ReservationRejected) -> RunState:
    refusal = Refusal(event.resource, event.used, event.limit, event.amount, event.boundary)
    return replace(state, refusal=refusal)


def _attempt_started(state: RunState, event: e.AttemptStarted) -> RunState:
    if event.attempt_id in state.open_attempts or event.attempt_id in state.abandoned_attempts:
        raise IllegalEvent(event.type, f"attempt {event.attempt_id} was started before")
    attempt = OpenAttempt(event.attempt_id, event.boundary, event.parent_attempt_id, event.kind)
    return replace(state, open_attempts={**state.open_attempts, event.attempt_id: attempt})


def _attempt_succeeded(state: RunState, event: e.AttemptSucceeded) -> RunState:
    return _close(state, event, stored_bytes=event.output_bytes if event.output_stored else None)


def _attempt_failed(state: RunState, event: e.AttemptFailed) -> RunState:
    return _close(state, event, stored_bytes=event.error_bytes if event.error_stored else None)


def _close(state: RunState, event: e.AttemptEvent, *, stored_bytes: int | None) -> RunState:
    attempt = _find(state.open_attempts, event)
    unsettled = state.unsettled_attempts | {event.attempt_id} if attempt.kind == "model" else state.unsettled_attempts
    return replace(
        state,
        open_attempts=_without(state.open_attempts, event.attempt_id),
        unsettled_attempts=unsettled,
        usage=_with_bytes(state.usage, stored_bytes),
    )


def _attempt_abandoned(state: RunState, event: e.AttemptAbandoned) -> RunState:
    attempt = _find(state.open_attempts, event)
    still_open = _without(state.open_attempts, event.attempt_id)
    if event.reason == e.NOT_INVOKED:
        return replace(state, open_attempts=still_open)
    unknown = 1 if attempt.kind == "model" else 0
    return replace(
        state,
        open_attempts=still_open,
        abandoned_attempts={**state.abandoned_attempts, event.attempt_id: attempt},
        usage_unknown_count=state.usage_unknown_count + unknown,
    )


def _attempt_finished_late(state: RunState, event: e.AttemptFinishedLate) -> RunState:
    attempt = _find(state.abandoned_attempts, event)
    state = replace(state, abandoned_attempts=_without(state.abandoned_attempts, event.attempt_id))
    if attempt.kind != "model":
        return state
    # Its usage was unknown so far, and is settled now.
    return replace(
        state,
        unsettled_attempts=state.unsettled_attempts | {event.attempt_id},
        usage_unknown_count=state.usage_unknown_count - 1,
    )


def _usage_settled(state: RunState, event: e.UsageSettled) -> RunState:
    if event.attempt_id not in state.unsettled_attempts:
        raise IllegalEvent(event.type, f"attempt {event.attempt_id} has no usage to settle")
    return replace(
        state,
        unsettled_attempts=state.unsettled_attempts - {event.attempt_id},
        usage=charge(state.usage, event.usage) if event.usage else state.usage,
        usage_unknown_count=state.usage_unknown_count + (0 if event.complete else 1),
    )


def _flow_selected(state: RunState, event: e.FlowSelected) -> RunState:
    return replace(state, flow=event.flow)


def _cancellation_requested(state: RunState, event: e.CancellationRequested) -> RunState:
    return replace(state, cancel_requested=state.cancel_requested or event.reason)


def _cancellation_signalled(state: RunState, event: e.CancellationSignalled) -> RunState:
    if state.cancel_signalled is not None:
        raise IllegalEvent(event.type, f"cancellation was signalled before, with {state.cancel_signalled}")
    return replace(state, cancel_signalled=event.reason)


def _graph_transitioned(state: RunState, event: e.GraphTransitioned) -> RunState:
    if state.graph_final_node is not None:
        raise IllegalEvent(event.type, f"the graph finished in {state.graph_final_node}")
    return state


def _graph_finished(state: RunState, event: e.GraphFinished) -> RunState:
    if state.graph_final_node is not None:
        raise IllegalEvent(event.type, f"the graph finished in {state.graph_final_node}")
    return replace(state, graph_final_node=event.final_node)


def _answer_recorded(state: RunState, event: e.AnswerRecorded) -> RunState:
    if state.answered:
        raise IllegalEvent(event.type, "the run has an answer")
    # Its bytes were charged when it was given.
    return replace(state, answered=True)


def _terminated(state: RunState, event: e.RunTerminated) -> RunState:
    if state.open_attempts:
        raise IllegalEvent(event.type, f"attempt {next(iter(state.open_attempts))} is still open")
    refusal = state.refusal
    if event.resource is not None and event.used is not None and event.limit is not None:
        same = refusal is not None and refusal.resource == event.resource
        refusal = refusal if same else Refusal(event.resource, event.used, event.limit)
    return replace(
        state,
        outcome=event.outcome,
        reason=event.reason,
        ended_us=event.occurred_us,
        ended_elapsed_us=event.elapsed_us,
        refusal=refusal,
        usage=_with_bytes(state.usage, event.error_bytes if event.error_stored else None),
    )


def _unchanged(state: RunState, event: e.Event) -> RunState:
    return state


def _with_bytes(usage: Mapping[str, int], stored_bytes: int | None) -> Mapping[str, int]:
    return charge(usage, {"run_bytes": stored_bytes}) if stored_bytes else usage


def _find(attempts: Mapping[str, OpenAttempt], event: e.AttemptEvent) -> OpenAttempt:
    attempt = attempts.get(event.attempt_id)
    if attempt is None or attempt.boundary != event.boundary:
        raise IllegalEvent(event.type, f"attempt {event.attempt_id} at {event.boundary} is not open")
    return attempt


def _without(attempts: Mapping[str, OpenAttempt], attempt_id: str) -> Mapping[str, OpenAttempt]:
    return {key: attempt for key, attempt in attempts.items() if key != attempt_id}


_STEPS: dict[type[e.Event], Callable[[RunState, Any], RunState]] = {
    e.FlowSelected: _flow_selected,
    e.ReservationGranted: _granted,
    e.ReservationRejected: _rejected,
    e.AttemptStarted: _attempt_started,
    e.AttemptSucceeded: _attempt_succeeded,
    e.AttemptFailed: _attempt_failed,
    e.AttemptAbandoned: _attempt_abandoned,
    e.AttemptFinishedLate: _attempt_finished_late,
    e.UsageSettled: _usage_settled,
    e.RetryScheduled: _unchanged,
    e.RetryRefused: _unchanged,
    e.CancellationRequested: _cancellation_requested,
    e.CancellationSignalled: _cancellation_signalled,
    e.GraphTransitioned: _graph_transitioned,
    e.GraphFinished: _graph_finished,
    e.AnswerRecorded: _answer_recorded,
    e.RunTerminated: _terminated,
    e.EvaluationRecorded: _unchanged,
    e.FeedbackRecorded: _unchanged,
    e.CaseRecorded: _unchanged,
}
