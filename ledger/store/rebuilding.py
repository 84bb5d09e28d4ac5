"""Rebuilding on SQLite: rows compared over a connection of its own, and replaced in the writer's turn."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.ids import session_stream
from ledger import rebuild
from ledger.errors import RunUnreadable, SessionUnreadable
from ledger.failpoints import reached
from ledger.projections.rows import SessionShare
from ledger.rebuild import Kind, Rebuilt, digest_of, empty_projections, openings
from ledger.store import statements
from ledger.store.batch import Batch
from ledger.store.comparing import Row, Stream, groups_of, reads, right_among
from ledger.store.heads import fold_pages, stored_pages
from ledger.store.probe import connect_to_read, one_moment
from ledger.store.rows import write_changes, write_rows
from ledger.store.texts import find_wrong, mend

Runner = Callable[[Callable[[Batch], Any]], Awaitable[Any]]
Fold = Callable[[sqlite3.Connection, sqlite3.Connection, str], None]
"""Adds up the events that the first connection has of a run or session, into rows of the second one."""


@dataclass(frozen=True, slots=True)
class _Of:
    """Runs or sessions: which streams they are, which tables hold their rows, and how these are made."""

    streams_after: str
    tables: Sequence[tuple[str, str]]
    fold: Fold


class SqliteSource:
    """A `ledger.rebuild.Source`; `run` does a job in a write transaction of its own."""

    def __init__(self, path: Path, run: Runner) -> None:
        self._path = path
        self._run = run

    async def delete_strays(self) -> int:
        stray_count = 0
        for find, delete in statements.STRAYS:
            last = ""
            while keys := await asyncio.to_thread(_find_strays, self._path, find, last):
                last = keys[-1]
                stray_count += await self._run(partial(_delete_each, delete, keys))
        return stray_count

    async def mend_texts(self) -> int:
        wrong, stray_count = await asyncio.to_thread(find_wrong, self._path)
        if wrong or stray_count:
            await self._run(lambda batch: mend(batch.connection, wrong))
        return len(wrong) + stray_count

    async def compare(self, kind: Kind, after: str) -> tuple[str, Sequence[Rebuilt]]:
        return await asyncio.to_thread(_compare_page, self._path, kind, after)

    async def replace(self, kind: Kind, key: str) -> Rebuilt:
        replaced: Rebuilt = await self._run(partial(_replace, KINDS[kind], key))
        return replaced


def _find_strays(path: Path, find: str, last: str) -> list[str]:
    with contextlib.closing(connect_to_read(path)) as ledger:
        return [row[0] for row in ledger.execute(find, (last, rebuild.PAGE_STREAMS))]


def _delete_each(delete: str, keys: Sequence[str], batch: Batch) -> int:
    return sum(batch.connection.execute(delete, (key,)).rowcount for key in keys)


def _compare_page(path: Path, kind: Kind, after: str) -> tuple[str, Sequence[Rebuilt]]:
    with contextlib.closing(connect_to_read(path)) as ledger:
        return compare_page(kind, after, ledger)


def compare_page(kind: Kind, after: str, ledger: sqlite3.Connection) -> tuple[str, Sequence[Rebuilt]]:
    """Whether the rows of the next runs or sessions are right, and the stream that was the last of them."""
    of = KINDS[kind]
    streams = [Stream(*row) for row in ledger.execute(of.streams_after, (after, rebuild.PAGE_STREAMS))]
    right = _find_right(ledger, kind, streams)
    if len(right) == len(streams):
        compared = [Rebuilt(key, row_count, is_right=True) for key, row_count in right.items()]
    else:
        with contextlib.closing(empty_projections()) as beside:
            compared = [
                Rebuilt(key, right[key], is_right=True) if key in right else _compare(ledger, beside, of, key)
                for _, key, _ in streams
            ]
    return (streams[-1].stream_id if streams else after), compared


def _find_right(ledger: sqlite3.Connection, kind: Kind, streams: Sequence[Stream]) -> dict[str, int]:
    right: dict[str, int] = {}
    for group in groups_of(streams):
        with one_moment(ledger):
            found: list[list[Row]] = [ledger.execute(*read).fetchall() for read in reads(kind, group)]
        right |= right_among(kind, group, found)
    return right


def _compare(ledger: sqlite3.Connection, beside: sqlite3.Connection, of: _Of, key: str) -> Rebuilt:
    with one_moment(ledger), one_moment(beside):
        try:
            before = digest_of(ledger, of.tables, key)
            of.fold(ledger, beside, key)
            after = digest_of(beside, of.tables, key)
            return Rebuilt(key, after.row_count, before.value() == after.value())
        except (RunUnreadable, SessionUnreadable):
            return Rebuilt(key, 0, is_right=False)


def _replace(of: _Of, key: str, batch: Batch) -> Rebuilt:
    """Fold into the ledger itself; whether its rows were right, in which case nothing is written."""
    connection = batch.connection
    before = digest_of(connection, of.tables, key)
    for _, delete in of.tables:
        connection.execute(delete, (key,))
    reached("rebuilding a run")
    of.fold(connection, connection, key)
    after = digest_of(connection, of.tables, key)
    is_right = after.value() == before.value()
    if is_right:
        batch.undo()
    return Rebuilt(key, after.row_count, is_right)


def _fold_run(source: sqlite3.Connection, target: sqlite3.Connection, run_id: str) -> None:
    for _, changes in fold_pages(source, run_id):
        changes.sessions.clear()
        write_changes(target, changes)


def _fold_session(source: sqlite3.Connection, target: sqlite3.Connection, session_id: str) -> None:
    shares = [
        share for bodies in stored_pages(source, session_stream(session_id)) for share in openings(session_id, bodies)
    ]
    created_us, last_active_us, pairs = source.execute(statements.RUNS_OF_SESSION, (session_id,)).fetchone()
    if created_us is not None:
        shares.append(SessionShare(session_id, created_us, last_active_us, pairs))
    write_rows(target, statements.ADD_TO_SESSION, shares)


KINDS: dict[Kind, _Of] = {
    "run": _Of(statements.RUNS_AFTER, statements.RUN_TABLES, _fold_run),
    "session": _Of(statements.SESSIONS_AFTER, (statements.SESSION_TABLE,), _fold_session),
}
