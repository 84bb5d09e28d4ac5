"""Ends the runs whose process died, once and for all (SPEC E7).

A run belongs to the open ledger that began it, which holds a lock until its process ends. Whoever gets that lock
knows the owner to be dead, and in one transaction fences the run and ends it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from harness import events as e
from harness.clock import WallClock
from harness.errors import IllegalEvent
from harness.ids import boundary_path, run_stream
from harness.state import RunState
from ledger.prepared import Append, prepare_event
from ledger.store import statements
from ledger.store.batch import Batch
from ledger.store.owners import Owners

log = logging.getLogger(__name__)

LOST = "HARNESS_LOST"
RUNS_AT_ONCE = 100
"""Runs ended in one transaction, so that nobody waits long for the rest."""

Runner = Callable[[Callable[[Batch], Any], Sequence[str]], Any]


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of the runs whose processes died."""

    ended: tuple[str, ...]
    unreadable: tuple[str, ...]
    """Runs that this program does not understand, and therefore left open."""


def recover(run: Runner, owners: Owners, clock: WallClock) -> Recovery:
    """End the runs of dead owners; `run` does a job, which looks at the named runs, in a write transaction."""
    ended: list[str] = []
    unreadable: list[str] = []
    for owner_id in run(_other_owners, ()):
        last = ""
        while run_ids := run(partial(_left_behind, owners, owner_id, last), ()):
            last = run_ids[-1]
            ended_now, unreadable_now = run(partial(_end_all, owners, owner_id, run_ids, clock.now_us()), run_ids)
            ended += ended_now
            unreadable += unreadable_now
    run(lambda _: owners.sweep(), ())
    return Recovery(tuple(ended), tuple(unreadable))


def _other_owners(batch: Batch) -> list[str]:
    return [row[0] for row in batch.connection.execute(statements.OWNERS, (batch.setting.owner_id,))]


def _left_behind(owners: Owners, owner_id: str, last: str, batch: Batch) -> list[str]:
    """The owner's next open runs; none while it lives."""
    with owners.proven_dead(owner_id) as is_dead:
        values = (owner_id, run_stream(last), RUNS_AT_ONCE)
        return [row[0] for row in batch.connection.execute(statements.RUNS_OF_OWNER, values)] if is_dead else []


def _end_all(
    owners: Owners, owner_id: str, run_ids: Sequence[str], now_us: int, batch: Batch
) -> tuple[list[str], list[str]]:
    """The runs that are ended now, and those that cannot be."""
    ended: list[str] = []
    unreadable: list[str] = []
    with owners.proven_dead(owner_id) as is_dead:
        for run_id in run_ids if is_dead else ():
            try:
                with batch.single() as single:
                    is_ended = _end(single, owner_id, run_id, now_us)
            except (IllegalEvent, ValueError, sqlite3.IntegrityError) as error:
                log.warning("run %s, whose process died, cannot be ended and stays open: %s", run_id, error)
                unreadable.append(run_id)
            else:
                ended += [run_id] if is_ended else []
    return ended, unreadable


def _end(batch: Batch, owner_id: str, run_id: str, now_us: int) -> bool:
    """Whether the run was still that owner's, and is ended now."""
    head = batch.head(run_id)
    if head is None or head.owner_id != owner_id:
        return False
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
