"""Rebuilding on PostgreSQL: rows compared as of one moment, and replaced while nobody else may change them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from harness.ids import run_stream, session_stream
from ledger import rebuild as shared
from ledger.append.folding import fold
from ledger.errors import RunUnreadable, SessionUnreadable
from ledger.projections.rows import SessionShare
from ledger.rebuild import (
    Digest,
    Kind,
    RebuildReport,
    Rebuilt,
    digest_of,
    empty_projections,
    openings,
    table_of,
)
from ledger.store import statements as sqlite_statements
from ledger.store.comparing import Stream, groups_of, reads, right_among
from ledger.store.postgres import texts
from ledger.store.postgres.connected import connected
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.reading import stored_pages
from ledger.store.probe import one_moment
from ledger.store.rows import write_changes, write_rows

PAGE_ROWS = 500
LOCK_RUN = "SELECT FROM stream WHERE stream_id = $1 FOR NO KEY UPDATE"
LOCK_SESSIONS = "LOCK TABLE chat_session IN SHARE ROW EXCLUSIVE MODE"
GREATEST = ("max(created_us,", "greatest(created_us,")
"""The larger of two, as SQLite says it and as PostgreSQL does."""
RUNS_OF_SESSION = sqlite_statements.RUNS_OF_SESSION.replace(*GREATEST)
TABLES: dict[Kind, Sequence[tuple[str, str]]] = {
    "run": sqlite_statements.RUN_TABLES,
    "session": (sqlite_statements.SESSION_TABLE,),
}
STREAMS_AFTER: dict[Kind, str] = {
    "run": sqlite_statements.RUNS_AFTER,
    "session": sqlite_statements.SESSIONS_AFTER,
}


async def rebuild(place: PostgresPlace) -> RebuildReport:
    """Rebuild everything there, over a connection of its own."""
    async with connected(place, {"statement_timeout": "0", "plan_cache_mode": "auto"}) as connection:
        with contextlib.closing(empty_projections()) as beside:
            return await shared.rebuild_all(PostgresSource(connection, beside))


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """A `ledger.rebuild.Source`: rows are folded into tables `beside` the ledger."""

    connection: asyncpg.Connection[Any]
    beside: sqlite3.Connection

    async def delete_strays(self) -> int:
        stray_count = 0
        for find, delete in sqlite_statements.STRAYS:
            last = ""
            while rows := await self.connection.fetch(numbered(find), last, shared.PAGE_STREAMS):
                last = rows[-1][0]
                for (key,) in rows:
                    stray_count += int((await self.connection.execute(numbered(delete), key)).rpartition(" ")[2])
        return stray_count

    async def mend_texts(self) -> int:
        return await texts.mend(self.connection)

    async def compare(self, kind: Kind, after: str) -> tuple[str, Sequence[Rebuilt]]:
        async with self.connection.transaction(isolation="repeatable_read", readonly=True):
            rows = await self.connection.fetch(numbered(STREAMS_AFTER[kind]), after, shared.PAGE_STREAMS)
            streams = [Stream(*row) for row in rows]
            right = await self._find_right(kind, streams)
            compared = [
                Rebuilt(key, right[key], is_right=True) if key in right else await self._compare(kind, key)
                for _, key, _ in streams
            ]
        return (streams[-1].stream_id if streams else after), compared

    async def _find_right(self, kind: Kind, streams: Sequence[Stream]) -> dict[str, int]:
        right: dict[str, int] = {}
        for group in groups_of(streams):
            found = [
                [tuple(row) for row in await self.connection.fetch(numbered(read.replace(*GREATEST)), *keys)]
                for read, keys in reads(kind, group)
            ]
            right |= right_among(kind, group, found)
        return right

    async def replace(self, kind: Kind, key: str) -> Rebuilt:
        async with self.connection.transaction(isolation="read_committed"):
            # Whoever appends to the run, or to any run of the session, waits for its turn.
            if kind == "run":
                await self.connection.execute(LOCK_RUN, run_stream(key))
            else:
                await self.connection.execute(LOCK_SESSIONS)
            before = await self._digest(kind, key)
            with one_moment(self.beside):
                await self._fold(kind, key)
                after = digest_of(self.beside, TABLES[kind], key)
                if after.value() != before.value():
                    await self._put(kind, key)
        return Rebuilt(key, after.row_count, after.value() == before.value())

    async def _compare(self, kind: Kind, key: str) -> Rebuilt:
        before = await self._digest(kind, key)
        with one_moment(self.beside):
            try:
                await self._fold(kind, key)
            except (RunUnreadable, SessionUnreadable):
                return Rebuilt(key, 0, is_right=False)
            after = digest_of(self.beside, TABLES[kind], key)
            return Rebuilt(key, after.row_count, before.value() == after.value())

    async def _fold(self, kind: Kind, key: str) -> None:
        if kind == "run":
            run = None
            async for bodies in stored_pages(self.connection, run_stream(key)):
                run, changes = fold(key, run, bodies)
                changes.sessions.clear()
                write_changes(self.beside, changes)
            return
        shares: list[SessionShare] = []
        async for bodies in stored_pages(self.connection, session_stream(key)):
            shares += openings(key, bodies)
        ((created_us, last_active_us, pairs),) = await self.connection.fetch(numbered(RUNS_OF_SESSION), key)
        if created_us is not None:
            shares.append(SessionShare(key, created_us, last_active_us, pairs))
        write_rows(self.beside, sqlite_statements.ADD_TO_SESSION, shares)

    async def _digest(self, kind: Kind, key: str) -> Digest:
        digest = Digest()
        for read, _ in TABLES[kind]:
            async for row in self.connection.cursor(numbered(read), key, prefetch=PAGE_ROWS):
                digest.add(tuple(row))
            digest.end_table()
        return digest

    async def _put(self, kind: Kind, key: str) -> None:
        for read, delete in TABLES[kind]:
            await self.connection.execute(numbered(delete), key)
            rows = self.beside.execute(read, (key,))
            columns = [column[0] for column in rows.description]
            marks = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
            insert = f"INSERT INTO {table_of(read)} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - names of ours
            while page := rows.fetchmany(PAGE_ROWS):
                await self.connection.executemany(insert, page)


def numbered(statement: str) -> str:
    """The same statement with its parameters marked as PostgreSQL marks them."""
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))
