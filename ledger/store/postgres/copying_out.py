"""A ledger from a database put into a file that is made for it; every rule of it is kept.

A file has one order of its events, of the positions and the public one alike. So an event gets the position that its
place in the public order says; links, which hold no position, stay as they are, and so does everything else.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import asyncpg
import sqlalchemy as sa

from ledger import schema
from ledger.errors import LedgerInUse, LedgerUnreadable
from ledger.migrate import make
from ledger.store.copies import PRIVATE, not_ours, put_meta
from ledger.store.postgres.connected import connected
from ledger.store.postgres.copying import (
    OTHER_META,
    PIECE_CONTENTS,
    PIECE_EVENTS,
    PIECE_ROWS,
    WHOLE,
    digest_of,
    read_all,
)
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.sequencing import here_of, sequence
from ledger.store.texts import index_all

PATIENT = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
KEEP_OUT = "LOCK TABLE owner IN SHARE ROW EXCLUSIVE MODE"
"""Nobody can register meanwhile; before the first look at anything, or that would be at what was before."""
IS_OPEN = "SELECT EXISTS (SELECT FROM owner)"
EVENTS = (
    f"SELECT leaf_index + 1, {', '.join(f'event.{column.name}' for column in schema.event.c if column.name != 'pos')}"  # noqa: S608 - ours
    " FROM leaf JOIN event ON event.stream_id = leaf.stream_id AND event.seq = leaf.seq ORDER BY leaf_index"
)
COUNTS = "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM leaf)"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
MARK = "INSERT INTO ledger_meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

Progress = Callable[[int, int], None]


@contextlib.asynccontextmanager
async def at_rest(place: PostgresPlace) -> AsyncIterator[asyncpg.Connection[Any]]:
    """The ledger of one moment while nobody has it open, or can open it; `LedgerInUse` if somebody has.

    What is changed on the connection is kept when the block ends well.
    """
    async with (
        connected(place, PATIENT, answer_timeout_s=None) as connection,
        connection.transaction(isolation="repeatable_read"),
    ):
        await connection.execute(KEEP_OUT)
        if await connection.fetchval(IS_OPEN):
            raise LedgerInUse(place)
        yield connection


async def copy_to_file(source: asyncpg.Connection[Any], ledger_id: str, path: Path, on_progress: Progress) -> None:
    """Copy everything to a file that is made for it, then read it back; `source` is what `at_rest` gave."""
    here = await here_of(source)
    while (await sequence(source, here))[1]:
        pass
    try:
        make(path, ledger_id)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as target:
            for pragma in PRIVATE:
                target.execute(pragma)
            await _Copy(source, target, path, on_progress).run()
    except sqlite3.Error as error:
        raise LedgerUnreadable(path, f"cannot be written ({error})") from error


async def other_tables(source: asyncpg.Connection[Any]) -> tuple[str, ...]:
    """Tables in the ledger's schema that are not its own."""
    return not_ours(str(row[0]) for row in await source.fetch(TABLES))


async def mark_moved(source: asyncpg.Connection[Any], to: str) -> None:
    """Let the ledger say of itself that another goes on."""
    for key, value in (("standing", "moved"), ("moved_to", to)):
        await source.execute(MARK, key, value)


class _Copy:
    def __init__(
        self, source: asyncpg.Connection[Any], target: sqlite3.Connection, path: Path, on_progress: Progress
    ) -> None:
        self._source = source
        self._target = target
        self._path = path
        self._on_progress = on_progress
        self._done = 0

    async def run(self) -> None:
        """Copy everything, then read it back."""
        event_count, leaf_count = await self._source.fetchrow(COUNTS) or (0, 0)
        if event_count != leaf_count:
            raise LedgerUnreadable(self._path, f"would lack {event_count - leaf_count:,} events without a place")
        self._event_count = event_count
        self._target.execute("BEGIN")
        digests = {table: await self._put(table) for table in WHOLE}
        index_all(self._target)
        self._target.execute("COMMIT")
        put_meta(self._target, dict(await self._source.fetch(OTHER_META)))
        for table, digest in digests.items():
            if digest_of(self._target.execute(read_all(table))) != digest:
                raise LedgerUnreadable(self._path, f"took other rows of {table.name} than it was given")

    async def _put(self, table: sa.Table) -> bytes:
        """Put the rows of a table, a stream's with the head that its events will give it; their digest."""
        digest = sha256()
        columns = [column.name for column in table.c]
        marks = ", ".join("?" * len(columns))
        insert = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - names of ours
        async for rows in self._pieces(table):
            for row in rows:
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
            self._target.executemany(insert, rows)
            if table is schema.event:
                self._done += len(rows)
                self._on_progress(self._done, self._event_count)
        return digest.digest()

    async def _pieces(self, table: sa.Table) -> AsyncIterator[list[tuple[Any, ...]]]:
        statement = EVENTS if table is schema.event else read_all(table, json="::text")
        size = {schema.event: PIECE_EVENTS, schema.content: PIECE_CONTENTS}.get(table, PIECE_ROWS)
        cursor = await self._source.cursor(statement)
        while rows := await cursor.fetch(size):
            yield [tuple(row) for row in rows]
