"""Recovery on SQLite: whoever gets the lock that an owner held for life knows it to be dead."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from harness.clock import WallClock
from harness.errors import IllegalEvent
from harness.ids import run_stream
from ledger.recovery import RUNS_AT_ONCE, Recovery, end
from ledger.store import statements
from ledger.store.batch import Batch
from ledger.store.owners import Owners

log = logging.getLogger(__name__)

Runner = Callable[[Callable[[Batch], Any], Sequence[str]], Any]


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
                    is_ended = end(single, owner_id, run_id, now_us)
            except (IllegalEvent, ValueError, sqlite3.IntegrityError) as error:
                log.warning("run %s, whose process died, cannot be ended and stays open: %s", run_id, error)
                unreadable.append(run_id)
            else:
                ended += [run_id] if is_ended else []
    return ended, unreadable
