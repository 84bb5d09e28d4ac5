"""How the events of attempts change the state of their run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from harness import events as e
from harness.errors import IllegalEvent
from harness.state.charges import charge_run, charged, count_unknown, estimates_in, given_back, settlement
from harness.state.records import NOTHING, OpenAttempt, Reservation, RunState

T = TypeVar("T")


def granted(state: RunState, event: e.ReservationGranted) -> RunState:
    scope_ids = scope_ids_of(state, event, event.scope_id)
    state = charge_run(state, scope_ids, event.usage)
    estimates = estimates_in(event.usage)
    if not estimates or event.attempt_id is None:
        return state
    return state._replace(reserved={**state.reserved, event.attempt_id: Reservation(estimates, scope_ids)})


def started(state: RunState, event: e.AttemptStarted) -> RunState:
    if event.attempt_id in state.open_attempts or event.attempt_id in state.abandoned_attempts:
        raise IllegalEvent(event.type, f"attempt {event.attempt_id} was started before")
    scope_ids = scope_ids_of(state, event, event.scope_id)
    attempt = OpenAttempt(event.attempt_id, event.boundary, event.parent_attempt_id, event.kind, scope_ids)
    return state._replace(open_attempts={**state.open_attempts, event.attempt_id: attempt})


def succeeded(state: RunState, event: e.AttemptSucceeded) -> RunState:
    return _close(state, event, stored_bytes=event.output_bytes if event.output_stored else None)


def failed(state: RunState, event: e.AttemptFailed) -> RunState:
    return _close(state, event, stored_bytes=event.error_bytes if event.error_stored else None)


def _close(state: RunState, event: e.AttemptEvent, *, stored_bytes: int | None) -> RunState:
    attempt = _find(state.open_attempts, event)
    unsettled = state.unsettled_attempts
    if attempt.kind == "model":
        unsettled = {**unsettled, event.attempt_id: attempt}
    kept = {"run_bytes": stored_bytes} if stored_bytes else NOTHING
    usage, scopes = charged(state, attempt.scope_ids, kept)
    still_open = _without(state.open_attempts, event.attempt_id)
    return state._replace(open_attempts=still_open, unsettled_attempts=unsettled, usage=usage, scopes=scopes)


def abandoned(state: RunState, event: e.AttemptAbandoned) -> RunState:
    attempt = _find(state.open_attempts, event)
    still_open = _without(state.open_attempts, event.attempt_id)
    if event.reason == e.NOT_INVOKED:
        unused = given_back(_reserved(state, event))
        state = charge_run(state, attempt.scope_ids, unused)
        return state._replace(open_attempts=still_open, reserved=_without(state.reserved, event.attempt_id))
    state = state._replace(
        open_attempts=still_open,
        abandoned_attempts={**state.abandoned_attempts, event.attempt_id: attempt},
    )
    return count_unknown(state, attempt, usage=1, cost=1) if attempt.kind == "model" else state


def finished_late(state: RunState, event: e.AttemptFinishedLate) -> RunState:
    attempt = _find(state.abandoned_attempts, event)
    state = state._replace(abandoned_attempts=_without(state.abandoned_attempts, event.attempt_id))
    if attempt.kind != "model":
        return state
    # Its usage was unknown so far, and is settled now.
    state = state._replace(unsettled_attempts={**state.unsettled_attempts, event.attempt_id: attempt})
    return count_unknown(state, attempt, usage=-1, cost=-1)


def settled(state: RunState, event: e.UsageSettled) -> RunState:
    attempt = state.unsettled_attempts.get(event.attempt_id)
    if attempt is None:
        raise IllegalEvent(event.type, f"attempt {event.attempt_id} has no usage to settle")
    reserved, actual = _reserved(state, event), event.usage or NOTHING
    state = charge_run(state, attempt.scope_ids, settlement(reserved, actual))
    state = state._replace(
        unsettled_attempts=_without(state.unsettled_attempts, event.attempt_id),
        reserved=_without(state.reserved, event.attempt_id) if reserved else state.reserved,
    )
    return count_unknown(state, attempt, usage=0 if event.complete else 1, cost=0 if "cost_micros" in actual else 1)


def retried_unseen(state: RunState, event: e.HiddenRetryDetected) -> RunState:
    attempt = state.open_attempts.get(event.attempt_id) or state.abandoned_attempts.get(event.attempt_id)
    return charge_run(state, attempt.scope_ids if attempt is not None else (), event.usage or NOTHING)


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
    left = dict(entries)
    left.pop(gone, None)
    return left
