"""Makes the projections anew from events: the same rows, byte for byte, or the events were right (SPEC E1).

Each run and session is folded into tables beside the ledger and compared, as of one moment and without any lock. Only
where its rows are not as they should be is it folded once more, in a write transaction of its own, and its rows
replaced. So a rebuild stands in nobody's way where all is well, and loses nothing that is appended meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from harness.events import SessionOpened
from harness.ids import session_stream
from ledger import schema
from ledger.errors import RunUnreadable, SessionUnreadable
from ledger.folding import known_events
from ledger.projections.rows import SessionShare
from ledger.store import statements
from ledger.store.batch import Batch
from ledger.store.heads import fold_pages, stored_pages
from ledger.store.probe import connect_to_read
from ledger.store.rows import write_changes, write_rows

PAGE_STREAMS = 100
PROJECTIONS = (
    schema.diagnosis_run,
    schema.agent_step,
    schema.tool_invocation,
    schema.case_library,
    schema.chat_session,
)
CREATE_PROJECTIONS = tuple(str(sa.schema.CreateTable(table).compile(dialect=sqlite.dialect())) for table in PROJECTIONS)

Runner = Callable[[Callable[[Batch], Any]], Awaitable[Any]]
Fold = Callable[[sqlite3.Connection, sqlite3.Connection, str], None]
"""Adds up the events that the first connection has of a run or session, into rows of the second one."""


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild found."""

    run_count: int
    session_count: int
    row_count: int
    runs_changed: tuple[str, ...]
    """Runs whose rows were not what their events add up to, and are now."""
    sessions_changed: tuple[str, ...]
    runs_unreadable: tuple[str, ...]
    """Runs that this program does not understand; their rows were left alone,"""
    sessions_unreadable: tuple[str, ...]
    """and so were those of such sessions."""
    stray_count: int
    """Rows of runs or sessions that the log does not know; they are gone."""

    @property
    def is_clean(self) -> bool:
        """Whether every row was as it should be."""
        changed = self.runs_changed or self.sessions_changed or self.stray_count
        return not (changed or self.runs_unreadable or self.sessions_unreadable)


@dataclass(slots=True)
class _Tally:
    count: int = 0
    row_count: int = 0
    changed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Runs or sessions: which streams they are, which tables hold their rows, and how these are made."""

    streams_after: str
    tables: Sequence[tuple[str, str]]
    fold: Fold


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the rows of one run or session are, or were."""

    key: str
    row_count: int
    is_right: bool


async def rebuild_all(path: Path, run: Runner) -> RebuildReport:
    """Rebuild everything; `run` does a job in a write transaction of its own."""
    stray_count = 0
    for find, delete in statements.STRAYS:
        stray_count += await _delete_strays(path, run, find, delete)
    runs, sessions = _Tally(), _Tally()
    await _rebuild_each(path, run, RUNS, runs)
    await _rebuild_each(path, run, SESSIONS, sessions)
    return RebuildReport(
        run_count=runs.count,
        session_count=sessions.count,
        row_count=runs.row_count + sessions.row_count,
        runs_changed=tuple(runs.changed),
        sessions_changed=tuple(sessions.changed),
        runs_unreadable=tuple(runs.unreadable),
        sessions_unreadable=tuple(sessions.unreadable),
        stray_count=stray_count,
    )


async def _delete_strays(path: Path, run: Runner, find: str, delete: str) -> int:
    last, stray_count = "", 0
    while keys := await asyncio.to_thread(_find_strays, path, find, last):
        last = keys[-1]
        stray_count += await run(partial(_delete_each, delete, keys))
    return stray_count


def _find_strays(path: Path, find: str, last: str) -> list[str]:
    with contextlib.closing(connect_to_read(path)) as ledger:
        return [row[0] for row in ledger.execute(find, (last, PAGE_STREAMS))]


def _delete_each(delete: str, keys: Sequence[str], batch: Batch) -> int:
    return sum(batch.connection.execute(delete, (key,)).rowcount for key in keys)


async def _rebuild_each(path: Path, run: Runner, kind: _Kind, tally: _Tally) -> None:
    last = ""
    while page := await asyncio.to_thread(_compare_page, path, kind, last):
        last = page[-1][0]
        for _, found in page:
            tally.count += 1
            try:
                rebuilt = found if found.is_right else await run(partial(_replace, kind, found.key))
            except (RunUnreadable, SessionUnreadable):
                tally.unreadable.append(found.key)
                continue
            tally.row_count += rebuilt.row_count
            if not rebuilt.is_right:
                tally.changed.append(found.key)


def _compare_page(path: Path, kind: _Kind, last: str) -> list[tuple[str, Rebuilt]]:
    """The next streams, and whether the rows of each are right."""
    with contextlib.closing(connect_to_read(path)) as ledger, contextlib.closing(_empty_projections()) as beside:
        streams = ledger.execute(kind.streams_after, (last, PAGE_STREAMS)).fetchall()
        return [(stream_id, _compare(ledger, beside, kind, key)) for stream_id, key in streams]


def _empty_projections() -> sqlite3.Connection:
    """The tables of projections in a database that is nobody's, on disk where it grows large."""
    beside = sqlite3.connect("", isolation_level=None)
    for create in CREATE_PROJECTIONS:
        beside.execute(create)
    return beside


def _compare(ledger: sqlite3.Connection, beside: sqlite3.Connection, kind: _Kind, key: str) -> Rebuilt:
    ledger.execute("BEGIN")
    beside.execute("BEGIN")
    try:
        _, before = _digest(ledger, kind.tables, key)
        kind.fold(ledger, beside, key)
        row_count, after = _digest(beside, kind.tables, key)
        return Rebuilt(key, row_count, before == after)
    except (RunUnreadable, SessionUnreadable):
        return Rebuilt(key, 0, is_right=False)
    finally:
        beside.execute("ROLLBACK")
        ledger.execute("ROLLBACK")


def _replace(kind: _Kind, key: str, batch: Batch) -> Rebuilt:
    """Fold into the ledger itself; whether its rows were right, in which case nothing is written."""
    connection = batch.connection
    _, before = _digest(connection, kind.tables, key)
    for _, delete in kind.tables:
        connection.execute(delete, (key,))
    kind.fold(connection, connection, key)
    row_count, after = _digest(connection, kind.tables, key)
    if after == before:
        batch.undo()
    return Rebuilt(key, row_count, before == after)


def _fold_run(source: sqlite3.Connection, target: sqlite3.Connection, run_id: str) -> None:
    for _, changes in fold_pages(source, run_id):
        changes.sessions.clear()
        write_changes(target, changes)


def _fold_session(source: sqlite3.Connection, target: sqlite3.Connection, session_id: str) -> None:
    try:
        shares = [
            SessionShare(session_id, event.occurred_us, event.occurred_us, 0, event.ttl_us)
            for bodies in stored_pages(source, session_stream(session_id))
            for event in known_events(bodies)
            if isinstance(event, SessionOpened)
        ]
    except ValueError as error:  # bytes that are no event
        raise SessionUnreadable(session_id, str(error).partition("\n")[0]) from error
    created_us, last_active_us, pairs = source.execute(statements.RUNS_OF_SESSION, (session_id,)).fetchone()
    if created_us is not None:
        shares.append(SessionShare(session_id, created_us, last_active_us, pairs))
    write_rows(target, statements.ADD_TO_SESSION, shares)


RUNS = _Kind(statements.RUNS_AFTER, statements.RUN_TABLES, _fold_run)
SESSIONS = _Kind(statements.SESSIONS_AFTER, (statements.SESSION_TABLE,), _fold_session)


def _digest(connection: sqlite3.Connection, tables: Sequence[tuple[str, str]], key: str) -> tuple[int, bytes]:
    """Number and digest of the rows, read one by one."""
    digest, row_count = sha256(), 0
    for read, _ in tables:
        for row in connection.execute(read, (key,)):
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
            row_count += 1
        digest.update(b"\0")
    return row_count, digest.digest()
