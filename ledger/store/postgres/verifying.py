"""Verifying a ledger in a database, over connections that cannot write; each stream as of one moment."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from harness.ids import run_stream
from ledger.append.deciding import ContentRow, StreamRow
from ledger.errors import RunNotFound
from ledger.rebuild import empty_projections
from ledger.store import statements as sqlite_statements
from ledger.store.identity import READ_META
from ledger.store.postgres import statements
from ledger.store.postgres.connected import connected
from ledger.store.postgres.place import PostgresPlace, place_at
from ledger.store.postgres.placed import check_places
from ledger.store.postgres.probe import require_current
from ledger.store.postgres.reads import READ_ONLY
from ledger.store.postgres.rebuilding import RUNS_OF_SESSION, numbered
from ledger.store.postgres.rules import rules_made, rules_of
from ledger.store.verifying import HEAD_SEQ, PAGE_EVENTS, PAGE_ROWS, STREAMS
from ledger.verifying.chain import COLUMNS
from ledger.verifying.contents import Kept
from ledger.verifying.findings import FINDINGS_MAX, Finding, Tally
from ledger.verifying.meta import check_meta
from ledger.verifying.rows import Table
from ledger.verifying.rules import check_rules
from ledger.verifying.sharing import Share, divide
from ledger.verifying.stream import StreamCheck

STREAMS_BETWEEN = (
    "SELECT stream_id FROM stream WHERE stream_id > $1 AND ($2::text IS NULL OR stream_id <= $2) ORDER BY stream_id"
)
STREAM_EVENTS = f"SELECT {', '.join(COLUMNS)} FROM event WHERE stream_id = $1 ORDER BY seq"  # noqa: S608 - ours
SMALL_BYTES = 65_536
"""Contents of more are fetched one by one."""
PAGE_CONTENTS = 100
STREAM_CONTENTS = (
    f"SELECT CASE WHEN octet_length(data) > {SMALL_BYTES} THEN NULL ELSE data END AS small,"  # noqa: S608 - ours
    f" octet_length(data) > {SMALL_BYTES} AS is_big, erased_seq, key_id,"
    f" {', '.join(f for f in ContentRow._fields if f != 'data')}"
    " FROM content WHERE stream_id = $1 ORDER BY digest"
)
CONTENT_DATA = "SELECT data FROM content WHERE stream_id = $1 AND digest = $2"


def opened_postgres(url: str) -> contextlib.AbstractAsyncContextManager[PostgresVerifiable]:
    """The ledger at that address."""
    return opened_at(place_at(url))


@contextlib.asynccontextmanager
async def opened_at(place: PostgresPlace) -> AsyncIterator[PostgresVerifiable]:
    """The ledger in that database."""
    identity = await require_current(place)
    async with connected(place, READ_ONLY | {"statement_timeout": "0"}) as connection:
        with contextlib.closing(empty_projections()) as beside:
            yield PostgresVerifiable(place, identity.ledger_id, connection, beside)


class PostgresVerifiable:
    """A `ledger.verifying.sharing.Verifiable`."""

    def __init__(
        self, place: PostgresPlace, ledger_id: str, connection: asyncpg.Connection[Any], beside: sqlite3.Connection
    ) -> None:
        self.place = place
        self.ledger_id = ledger_id
        self._connection = connection
        self._beside = beside

    async def head_seq(self, stream_id: str) -> int:
        return int(await self._connection.fetchval(numbered(HEAD_SEQ), stream_id))

    async def shares(self) -> list[Share]:
        return divide(map(tuple, await self._connection.fetch(STREAMS)))

    async def check(self, share: Share) -> Tally:
        tally = Tally()
        for (stream_id,) in await self._connection.fetch(STREAMS_BETWEEN, share.after, share.upto):
            await self._check_stream(stream_id, tally)
        return tally

    async def check_run(self, session_id: str, run_id: str) -> Tally:
        tally, stream_id = Tally(), run_stream(run_id)
        row = await self._connection.fetchrow(statements.STREAM, stream_id)
        if row is None or StreamRow(*row).session_id != session_id:
            raise RunNotFound(session_id, run_id)
        await self._check_stream(stream_id, tally)
        return tally

    async def whole(self) -> tuple[Finding, ...]:
        # That every event and content is of a stream is a foreign key here, and positions may have gaps.
        strays = [
            Finding("row_stray", f"there are rows of {key}, which the log does not know")
            for find, _ in sqlite_statements.STRAYS
            for (key,) in await self._connection.fetch(numbered(find), "", FINDINGS_MAX)
        ]
        meta = check_meta(dict(await self._connection.fetch(READ_META)))
        rules = check_rules(rules_made(), await rules_of(self._connection))
        return (*meta, *rules, *await check_places(self._connection), *strays)

    async def _check_stream(self, stream_id: str, tally: Tally) -> None:
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            row = await self._connection.fetchrow(statements.STREAM, stream_id)
            assert row is not None, "a stream is never deleted"
            stream = StreamRow(*row)
            with contextlib.closing(StreamCheck(self.ledger_id, stream, self._beside)) as check:
                events = await self._connection.cursor(STREAM_EVENTS, stream_id)
                while page := await events.fetch(PAGE_EVENTS):
                    check.add_events(page)
                check.end_events()
                await self._add_contents(stream_id, check)
                await self._add_rows(stream, check)
                tally.add(check.result())

    async def _add_contents(self, stream_id: str, check: StreamCheck) -> None:
        async for row in self._connection.cursor(STREAM_CONTENTS, stream_id, prefetch=PAGE_CONTENTS):
            fields = dict(row)
            data, erased_seq, key_id = fields.pop("small"), fields.pop("erased_seq"), fields.pop("key_id")
            if fields.pop("is_big"):
                data = await self._connection.fetchval(CONTENT_DATA, stream_id, row["digest"])
            check.add_content(Kept(ContentRow(data=data, **fields), erased_seq, key_id))

    async def _add_rows(self, stream: StreamRow, check: StreamCheck) -> None:
        key = stream.run_id or stream.session_id
        runs: Any = None
        if stream.run_id is None and key is not None:
            (runs,) = await self._connection.fetch(RUNS_OF_SESSION_NUMBERED, key)
        for table in check.tables(None if runs is None else tuple(runs)):
            await self._add_table(table, key, check)

    async def _add_table(self, table: Table, key: str | None, check: StreamCheck) -> None:
        rows = await self._connection.cursor(numbered(table.read), key)
        while page := await rows.fetch(PAGE_ROWS):
            check.add_rows(table, page)
        check.end_table(table)


RUNS_OF_SESSION_NUMBERED = numbered(RUNS_OF_SESSION)
