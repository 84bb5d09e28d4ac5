"""How the events of attempts change the state of their run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from harness import events as e
from harness.errors import IllegalEvent
from harness.state.charges import charge_run, count_unknown, estimates_in, given_back, settlement
from harness.state.records import NOTHING, OpenAttempt, Reservation, RunState

T = TypeVar("T")


def granted(state: RunState, event: e.ReservationGranted) -> None:
    scope_ids = scope_ids_of(state, event, event.scope_id)
    charge_run(state, scope_ids, event.usage)
    estimates = estimates_in(event.usage)
    if estimates and event.attempt_id is not None:
        state.reserved = {**state.reserved, event.attempt_id: Reservation(estimates, scope_ids)}


def started(state: RunState, event: e.AttemptStarted) -> None:
    attempt_id = event.attempt_id
    if attempt_id in state.open_attempts or attempt_id in state.abandoned_attempts:
        raise IllegalEvent(event.type, f"attempt {attempt_id} was started before")
    scope_ids = scope_ids_of(state, event, event.scope_id)
    attempt = OpenAttempt(attempt_id, event.boundary, event.parent_attempt_id, event.kind, scope_ids)
    state.open_attempts = {**state.open_attempts, attempt_id: attempt}


def succeeded(state: RunState, event: e.AttemptSucceeded) -> None:
    _close(state, event, stored_bytes=event.output_bytes if event.output_stored else None)


def failed(state: RunState, event: e.AttemptFailed) -> None:
    _close(state, event, stored_bytes=event.error_bytes if event.error_stored else None)


def _close(state: RunState, event: e.AttemptEvent, *, stored_bytes: int | None) -> None:
    attempt = _find(state.open_attempts, event)
    state.open_attempts = _without(state.open_attempts, event.attempt_id)
    if attempt.kind == "model":
        state.unsettled_attempts = {**state.unsettled_attempts, event.attempt_id: attempt}
    if stored_bytes:
        charge_run(state, attempt.scope_ids, {"run_bytes": stored_bytes})


def abandoned(state: RunState, event: e.AttemptAbandoned) -> None:
    attempt = _find(state.open_attempts, event)
    state.open_attempts = _without(state.open_attempts, event.attempt_id)
    if event.reason == e.NOT_INVOKED:
        charge_run(state, attempt.scope_ids, given_back(_reserved(state, event)))
        state.reserved = _without(state.reserved, event.attempt_id)
        return
    state.abandoned_attempts = {**state.abandoned_attempts, event.attempt_id: attempt}
    if attempt.kind == "model":
        count_unknown(state, attempt, usage=1, cost=1)


def finished_late(state: RunState, event: e.AttemptFinishedLate) -> None:
    attempt = _find(state.abandoned_attempts, event)
    state.abandoned_attempts = _without(state.abandoned_attempts, event.attempt_id)
    if attempt.kind == "model":
        # Its usage was unknown so far, and is settled now.
        state.unsettled_attempts = {**state.unsettled_attempts, event.attempt_id: attempt}
        count_unknown(state, attempt, usage=-1, cost=-1)


def settled(state: RunState, event: e.UsageSettled) -> None:
    attempt = state.unsettled_attempts.get(event.attempt_id)
    if attempt is None:
        raise IllegalEvent(event.type, f"attempt {event.attempt_id} has no usage to settle")
    reserved, actual = _reserved(state, event), event.usage or NOTHING
    charge_run(state, attempt.scope_ids, settlement(reserved, actual))
    state.unsettled_attempts = _without(state.unsettled_attempts, event.attempt_id)
    if reserved:
        state.reserved = _without(state.reserved, event.attempt_id)
    count_unknown(state, attempt, usage=0 if event.complete else 1, cost=0 if "cost_micros" in actual else 1)


def retried_unseen(state: RunState, event: e.HiddenRetryDetected) -> None:
    attempt = state.open_attempts.get(event.attempt_id) or state.abandoned_attempts.get(event.attempt_id)
    charge_run(state, attempt.scope_ids if attempt is not None else (), event.usage or NOTHING)


def scope_ids_of(state: RunState, event: e.Event, scope_id: str | None) -> tuple[str, ...]:
    """The scope that something is charged to and those around it; `IllegalEvent` if nothing may start in it."""
    if scope_id is None:
        return ()
    scope = state.scopes.get(scope_id)
    if scope is None:
        raise IllegalEvent(event.type, f"scope {scope_id} is not open")
    for key in scope.scope_ids:
        if state.scopes[key].exhausted is not None:
            raise IllegalEvent(event.type, f"scope {key} is exhausted")
    return scope.scope_ids


def _reserved(state: RunState, event: e.AttemptEvent) -> Mapping[str, int]:
    reservation = state.reserved.get(event.attempt_id)
    return NOTHING if reservation is None else reservation.amounts


def _find(attempts: Mapping[str, OpenAttempt], event: e.AttemptEvent) -> OpenAttempt:
    attempt = attempts.get(event.attempt_id)
    if attempt is None or attempt.boundary != event.boundary:
        raise IllegalEvent(event.type, f"attempt {event.attempt_id} at {event.boundary} is not open")
    return attempt


def _without(entries: Mapping[str, T], gone: str) -> Mapping[str, T]:
    left = {**entries}
    left.pop(gone, None)
    return left
