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
from ledger.verifying import contents
from ledger.verifying.chain import Chain
from ledger.verifying.findings import FINDINGS_MAX, Finding
from ledger.verifying.verify import Checked

COUNT_STREAMS = "SELECT count(*) FROM stream"
STREAMS_AFTER = "SELECT stream_id FROM stream WHERE stream_id > $1 ORDER BY stream_id LIMIT $2"
STREAM_EVENTS = f"SELECT {', '.join(EventRow._fields)} FROM event WHERE stream_id = $1 ORDER BY seq"  # noqa: S608 - ours
SMALL_BYTES = 65_536
"""Contents of more are fetched one by one."""
STREAM_CONTENTS = (
    f"SELECT CASE WHEN octet_length(data) > {SMALL_BYTES} THEN NULL ELSE data END AS small,"  # noqa: S608 - ours
    f" octet_length(data) > {SMALL_BYTES} AS is_big, {', '.join(f for f in ContentRow._fields if f != 'data')}"
    " FROM content WHERE stream_id = $1 ORDER BY digest"
)
CONTENT_DATA = "SELECT data FROM content WHERE stream_id = $1 AND digest = $2"
NOT_THERE = (
    "SELECT named FROM unnest($1::text[]) AS named WHERE NOT EXISTS"
    " (SELECT FROM content WHERE content.stream_id = $2 AND content.digest = named)"
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
                missing = await self._connection.fetch(NOT_THERE, list(named), stream_id)
                chain.missing(named, [digest for (digest,) in missing])
            chain.end()
            content_count, findings = await self._check_contents(stream_id)
        found = ([] if chain.finding is None else [chain.finding]) + findings
        return Checked(stream_id, chain.event_count, content_count, tuple(found))

    async def _check_contents(self, stream_id: str) -> tuple[int, list[Finding]]:
        count, findings = 0, list[Finding]()
        async for row in self._connection.cursor(STREAM_CONTENTS, stream_id, prefetch=PAGE_STREAMS):
            count += 1
            fields = dict(row)
            data = fields.pop("small")
            if fields.pop("is_big"):
                data = await self._connection.fetchval(CONTENT_DATA, stream_id, row["digest"])
            finding = contents.check(ContentRow(data=data, **fields))
            if finding is not None and len(findings) < FINDINGS_MAX:
                findings.append(finding)
        return count, findings
