"""Verifying a ledger in a database, over one connection that cannot write; each stream as of one moment."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg

from ledger.deciding import ContentRow, EventRow, StreamRow
from ledger.rebuild import empty_projections
from ledger.store import statements as sqlite_statements
from ledger.store.postgres import statements
from ledger.store.postgres.faults import FAULTS, unusable
from ledger.store.postgres.place import place_at
from ledger.store.postgres.probe import require_current
from ledger.store.postgres.reads import READ_ONLY
from ledger.store.postgres.rebuilding import PostgresSource, numbered
from ledger.store.verifying import PAGE_EVENTS, PAGE_STREAMS
from ledger.verifying.chain import Chain
from ledger.verifying.contents import Contents
from ledger.verifying.findings import FINDINGS_MAX, Finding
from ledger.verifying.verify import Checked

COUNT_STREAMS = "SELECT count(*) FROM stream"
STREAMS_AFTER = "SELECT stream_id FROM stream WHERE stream_id > $1 ORDER BY stream_id LIMIT $2"
STREAM_EVENTS = f"SELECT {', '.join(EventRow._fields)} FROM event WHERE stream_id = $1 ORDER BY seq"  # noqa: S608 - ours
SMALL_BYTES = 65_536
"""Contents of more are fetched one by one."""
STREAM_CONTENTS = (
    f"SELECT CASE WHEN octet_length(data) > {SMALL_BYTES} THEN NULL ELSE data END AS small,"  # noqa: S608 - ours
    f" octet_length(data) > {SMALL_BYTES} AS is_big, erased_seq,"
    f" {', '.join(f for f in ContentRow._fields if f != 'data')}"
    " FROM content WHERE stream_id = $1 ORDER BY digest"
)
CONTENT_DATA = "SELECT data FROM content WHERE stream_id = $1 AND digest = $2"
NOT_STORED = (
    "SELECT named, state FROM unnest($1::text[]) AS named"
    " LEFT JOIN content ON content.stream_id = $2 AND content.digest = named WHERE state IS DISTINCT FROM 'stored'"
)


@contextlib.asynccontextmanager
async def opened_postgres(url: str) -> AsyncIterator[PostgresVerifiable]:
    """The ledger in that database."""
    place = place_at(url)
    identity = await require_current(place)
    try:
        connection = await place.connect(READ_ONLY | {"statement_timeout": "0"})
        try:
            with contextlib.closing(empty_projections()) as beside:
                yield PostgresVerifiable(identity.ledger_id, connection, PostgresSource(connection, beside))
        finally:
            await connection.close()
    except FAULTS as error:
        raise unusable(place, error) from error


class PostgresVerifiable:
    """A `ledger.verifying.verify.Verifiable`."""

    def __init__(self, ledger_id: str, connection: asyncpg.Connection[Any], rows: PostgresSource) -> None:
        self.ledger_id = ledger_id
        self.compare = rows.compare
        self._connection = connection

    async def count_streams(self) -> int:
        return int(await self._connection.fetchval(COUNT_STREAMS))

    async def check(self, after: str) -> Sequence[Checked]:
        rows = await self._connection.fetch(STREAMS_AFTER, after, PAGE_STREAMS)
        return [await self._check_stream(stream_id) for (stream_id,) in rows]

    async def strays(self) -> Sequence[Finding]:
        # That every event and content is of a stream is a foreign key here, and positions may have gaps.
        return [
            Finding("row_stray", f"there are rows of {key}, which the log does not know")
            for find, _ in sqlite_statements.STRAYS
            for (key,) in await self._connection.fetch(numbered(find), "", FINDINGS_MAX)
        ]

    async def _check_stream(self, stream_id: str) -> Checked:
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            row = await self._connection.fetchrow(statements.STREAM, stream_id)
            assert row is not None, "a stream is never deleted"
            chain = Chain(self.ledger_id, StreamRow(*row))
            events = await self._connection.cursor(STREAM_EVENTS, stream_id)
            while page := await events.fetch(PAGE_EVENTS):
                named = chain.add_page(page)
                chain.look(named, await self._connection.fetch(NOT_STORED, list(named), stream_id))
            chain.end()
            contents = Contents(chain)
            await self._add_contents(stream_id, contents)
        findings = [] if chain.finding is None else [chain.finding]
        return Checked(stream_id, chain.event_count, contents.count, (*findings, *contents.findings))

    async def _add_contents(self, stream_id: str, contents: Contents) -> None:
        async for row in self._connection.cursor(STREAM_CONTENTS, stream_id, prefetch=PAGE_STREAMS):
            fields = dict(row)
            data, erased_seq = fields.pop("small"), fields.pop("erased_seq")
            if fields.pop("is_big"):
                data = await self._connection.fetchval(CONTENT_DATA, stream_id, row["digest"])
            contents.add(ContentRow(data=data, **fields), erased_seq)
        contents.end()
