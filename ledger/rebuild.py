"""Makes the projections anew from events: the same rows, byte for byte, or the events were right (SPEC E1).

Runs are taken one by one, each in a transaction of its own, so that a rebuild never stands in anybody's way for long
and loses nothing that is appended meanwhile. Rows that are as they should be are left alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any

from harness.events import Event, SessionOpened
from harness.ids import run_stream, session_stream
from ledger.batch import Batch
from ledger.heads import PAGE_EVENTS, stored_events
from ledger.projections.rows import SessionShare
from ledger.projections.run import Changes, RunProjection, project_all
from ledger.store import statements
from ledger.store.rows import write_changes, write_rows

PAGE_STREAMS = 500

Runner = Callable[[Callable[[Batch], Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild found."""

    run_count: int
    session_count: int
    row_count: int
    runs_changed: tuple[str, ...]
    """Runs whose rows were not what their events add up to, and are now."""
    sessions_changed: tuple[str, ...]
    stray_count: int
    """Rows of runs or sessions that the log does not know; they are gone."""

    @property
    def is_clean(self) -> bool:
        """Whether every row was as it should be."""
        return not (self.runs_changed or self.sessions_changed or self.stray_count)


@dataclass(slots=True)
class _Tally:
    count: int = 0
    row_count: int = 0
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What became of the rows of one run or session."""

    row_count: int
    changed: bool


async def rebuild_all(run: Runner) -> RebuildReport:
    """Rebuild everything; `run` does a job in a write transaction of its own."""
    stray_count: int = await run(_delete_strays)
    runs, sessions = _Tally(), _Tally()
    await _rebuild_each(run, statements.RUNS_AFTER, rebuild_run, runs)
    await _rebuild_each(run, statements.SESSIONS_AFTER, rebuild_session, sessions)
    return RebuildReport(
        run_count=runs.count,
        session_count=sessions.count,
        row_count=runs.row_count + sessions.row_count,
        runs_changed=tuple(runs.changed),
        sessions_changed=tuple(sessions.changed),
        stray_count=stray_count,
    )


async def _rebuild_each(run: Runner, statement: str, rebuild: Callable[[str, Batch], Rebuilt], tally: _Tally) -> None:
    last = ""
    while page := await run(partial(_streams_after, statement, last)):
        last = page[-1][0]
        for _, key in page:
            rebuilt: Rebuilt = await run(partial(rebuild, key))
            tally.count += 1
            tally.row_count += rebuilt.row_count
            if rebuilt.changed:
                tally.changed.append(key)


def _streams_after(statement: str, stream_id: str, batch: Batch) -> list[tuple[str, str]]:
    return batch.connection.execute(statement, (stream_id, PAGE_STREAMS)).fetchall()


def _delete_strays(batch: Batch) -> int:
    return sum(batch.connection.execute(statement).rowcount for statement in statements.DELETE_STRAYS)


def rebuild_run(run_id: str, batch: Batch) -> Rebuilt:
    """Fold the run's events page by page, and replace its rows if they differ."""

    def fold() -> None:
        events = stored_events(batch.connection, run_stream(run_id))
        run: RunProjection | None = None
        for page in _pages(events):
            changes = Changes()
            run = project_all(run, page, changes)
            changes.sessions.clear()
            write_changes(batch.connection, changes)

    return _replace(batch, statements.RUN_TABLES, run_id, fold)


def rebuild_session(session_id: str, batch: Batch) -> Rebuilt:
    """Add up the session's own events and its runs, and replace its row if that differs."""

    def fold() -> None:
        shares = [
            SessionShare(session_id, event.occurred_us, event.occurred_us, 0, event.ttl_us)
            for event in stored_events(batch.connection, session_stream(session_id))
            if isinstance(event, SessionOpened)
        ]
        created_us, last_active_us, pairs = batch.connection.execute(
            statements.RUNS_OF_SESSION, (session_id,)
        ).fetchone()
        if created_us is not None:
            shares.append(SessionShare(session_id, created_us, last_active_us, pairs))
        write_rows(batch.connection, statements.ADD_TO_SESSION, shares)

    return _replace(batch, (statements.SESSION_TABLE,), session_id, fold)


def _replace(batch: Batch, tables: Sequence[tuple[str, str]], key: str, fold: Callable[[], None]) -> Rebuilt:
    connection = batch.connection
    _, before = _digest(batch, tables, key)
    for _, delete in tables:
        connection.execute(delete, (key,))
    fold()
    row_count, after = _digest(batch, tables, key)
    if after == before:
        batch.undo()
    return Rebuilt(row_count, changed=after != before)


def _digest(batch: Batch, tables: Sequence[tuple[str, str]], key: str) -> tuple[int, bytes]:
    """Number and digest of the rows, read one by one."""
    digest, row_count = sha256(), 0
    for read, _ in tables:
        for row in batch.connection.execute(read, (key,)):
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
            row_count += 1
        digest.update(b"\0")
    return row_count, digest.digest()


def _pages(events: Iterator[Event]) -> Iterator[list[Event]]:
    while page := list(islice(events, PAGE_EVENTS)):
        yield page
