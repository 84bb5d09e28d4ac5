"""Ends the runs whose process died, once and for all (SPEC E7).

A run belongs to the open ledger that began it. Whoever knows that owner to be dead, which each engine finds out in its
own way, fences the run and ends it, in one append.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness import events as e
from harness.ids import boundary_id, run_stream
from harness.state import RunState
from ledger.append.deciding import Draft
from ledger.append.prepared import Append, prepare_event
from ledger.failpoints import reached

LOST = "HARNESS_LOST"
RUNS_AT_ONCE = 100
"""Runs looked at in one go, so that nobody waits long for the rest."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of the runs whose processes died."""

    ended: tuple[str, ...]
    unreadable: tuple[str, ...]
    """Runs that this program does not understand, and therefore left open."""


def end(draft: Draft, owner_id: str, run_id: str, now_us: int) -> bool:
    """Fence the run and end it, if it is still that owner's; whether it was."""
    head = draft.head(run_id)
    if head is None or head.owner_id != owner_id:
        return False
    events = closing_events(head.projection.state, draft.setting.new_event_id, now_us)
    append = Append(
        session_id=head.session_id,
        run_id=run_id,
        events=tuple(prepare_event(event) for event in events),
        contents=(),
        resumes=False,
        size_bytes=0,
    )
    draft.extend(append, head._replace(owner_id=None, owner_epoch=head.owner_epoch + 1))
    reached("run recovered")
    return True


def closing_events(state: RunState, new_event_id: Callable[[], str], now_us: int) -> Sequence[e.RunEvent]:
    """What ends a run that its owner cannot end any more."""
    stamp: dict[str, Any] = {
        "stream_id": run_stream(state.run_id),
        "session_id": state.session_id,
        "run_id": state.run_id,
        "occurred_us": now_us,
    }
    events: list[e.RunEvent] = [
        e.AttemptAbandoned(
            event_id=new_event_id(),
            attempt_id=attempt.attempt_id,
            boundary=attempt.boundary,
            parent_attempt_id=attempt.parent_attempt_id,
            reason=LOST,
            **stamp,
        )
        for attempt in state.open_attempts.values()
    ]
    outcome, reason = _outcome(state)
    boundary = boundary_id((), "termination", "run", 1, 1)
    events.append(e.RunTerminated(event_id=new_event_id(), boundary=boundary, outcome=outcome, reason=reason, **stamp))
    return events


def _outcome(state: RunState) -> tuple[e.TerminalOutcome, str]:
    """What the owner had decided and signalled, else what was asked of it, else that it was lost."""
    if state.cancel_signalled is not None:
        return e.outcome_of_signal(state.cancel_signalled), state.cancel_signalled
    if state.cancel_requested is not None:
        return "CANCELLED", state.cancel_requested
    return "FAILED", LOST
