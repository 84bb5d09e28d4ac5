"""Ends the runs whose process died, once and for all (SPEC E7).

A run belongs to the open ledger that began it, which holds a lock until its process ends. Whoever gets that lock
knows the owner to be dead, and in one transaction fences the run and ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness import events as e
from harness.ids import boundary_path, run_stream
from harness.state import RunState
from ledger.batch import Batch
from ledger.prepared import Append, prepare_event
from ledger.store import statements
from ledger.store.owners import Owners

LOST = "HARNESS_LOST"
RUNS_AT_ONCE = 100
"""Runs ended in one transaction, so that nobody waits long for the rest."""


def recover(batch: Batch, owners: Owners, now_us: int) -> list[str]:
    """End runs of dead owners, at most `RUNS_AT_ONCE`; their ids. Nobody else can be doing the same."""
    ended: list[str] = []
    for (owner_id,) in batch.connection.execute(statements.OWNERS, (batch.setting.owner_id,)).fetchall():
        with owners.proven_dead(owner_id) as is_dead:
            if is_dead:
                rest = RUNS_AT_ONCE - len(ended)
                runs = [row[0] for row in batch.connection.execute(statements.RUNS_OF_OWNER, (owner_id, rest))]
                for run_id in runs:
                    _end(batch, run_id, now_us)
                ended.extend(runs)
    if not ended:
        owners.sweep()
    return ended


def _end(batch: Batch, run_id: str, now_us: int) -> None:
    head = batch.head(run_id)
    assert head is not None, "a stream that has an owner has events"
    events = closing_events(head.projection.state, batch.setting.new_event_id, now_us)
    append = Append(
        session_id=head.session_id,
        run_id=run_id,
        events=tuple(prepare_event(event) for event in events),
        contents=(),
        resumes=False,
        size_bytes=0,
    )
    batch.extend(append, replace(head, owner_id=None, owner_epoch=head.owner_epoch + 1))


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
    boundary = boundary_path((), "termination", "run", 1, 1)
    events.append(e.RunTerminated(event_id=new_event_id(), boundary=boundary, outcome=outcome, reason=reason, **stamp))
    return events


def _outcome(state: RunState) -> tuple[e.TerminalOutcome, str]:
    """What the owner had decided and signalled, else what was asked of it, else that it was lost."""
    if state.cancel_signalled is not None:
        return e.outcome_of_signal(state.cancel_signalled), state.cancel_signalled
    if state.cancel_requested is not None:
        return "CANCELLED", state.cancel_requested
    return "FAILED", LOST
