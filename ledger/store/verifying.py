"""Verifying an SQLite ledger, over connections that cannot write, each for a page of streams."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import orjson

from ledger.deciding import ContentRow, EventRow, StreamRow
from ledger.errors import LedgerUnreadable
from ledger.rebuild import Kind, Rebuilt
from ledger.store import statements
from ledger.store.probe import connect_to_read, require_current
from ledger.store.rebuilding import compare_page
from ledger.verifying.chain import Chain
from ledger.verifying.contents import Contents
from ledger.verifying.findings import FINDINGS_MAX, Finding
from ledger.verifying.verify import Checked

T = TypeVar("T")

PAGE_STREAMS = 100
PAGE_EVENTS = 500

COUNT_STREAMS = "SELECT count(*) FROM stream"
STREAMS_AFTER = f"SELECT {', '.join(StreamRow._fields)} FROM stream WHERE stream_id > ? ORDER BY stream_id LIMIT ?"  # noqa: S608
STREAM_EVENTS = f"SELECT {', '.join(EventRow._fields)} FROM event WHERE stream_id = ? ORDER BY seq"  # noqa: S608 - ours
STREAM_CONTENTS = f"SELECT erased_seq, {', '.join(ContentRow._fields)} FROM content WHERE stream_id = ? ORDER BY digest"  # noqa: S608
NOT_STORED = (
    "SELECT value, state FROM json_each(?) LEFT JOIN content ON content.stream_id = ? AND content.digest = value"
    " WHERE state IS NOT 'stored'"
)
POSITIONS = "SELECT count(*), coalesce(min(pos), 1), coalesce(max(pos), 0) FROM event"
OF_NO_STREAM = (
    "SELECT DISTINCT stream_id FROM {table} WHERE NOT EXISTS"
    " (SELECT 1 FROM stream WHERE stream.stream_id = {table}.stream_id) LIMIT ?"
)


@contextlib.asynccontextmanager
async def opened_sqlite(path: Path) -> AsyncIterator[SqliteVerifiable]:
    """The ledger in that file."""
    identity = await asyncio.to_thread(require_current, path)
    yield SqliteVerifiable(path, identity.ledger_id)


@dataclass(frozen=True, slots=True)
class SqliteVerifiable:
    """A `ledger.verifying.verify.Verifiable`."""

    path: Path
    ledger_id: str

    async def count_streams(self) -> int:
        return await self._read(lambda ledger: int(ledger.execute(COUNT_STREAMS).fetchone()[0]))

    async def check(self, after: str) -> Sequence[Checked]:
        return await self._read(partial(_check_page, self.ledger_id, after))

    async def compare(self, kind: Kind, after: str) -> tuple[str, Sequence[Rebuilt]]:
        return await self._read(partial(compare_page, kind, after))

    async def strays(self) -> Sequence[Finding]:
        return await self._read(_strays)

    async def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._look, look)

    def _look(self, look: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with contextlib.closing(connect_to_read(self.path)) as ledger:
                return look(ledger)
        except sqlite3.Error as error:
            raise LedgerUnreadable(self.path, f"cannot be read ({error})") from error


def _check_page(ledger_id: str, after: str, ledger: sqlite3.Connection) -> list[Checked]:
    stream_ids = [row[0] for row in ledger.execute(STREAMS_AFTER, (after, PAGE_STREAMS))]
    return [_check_stream(ledger_id, stream_id, ledger) for stream_id in stream_ids]


def _check_stream(ledger_id: str, stream_id: str, ledger: sqlite3.Connection) -> Checked:
    ledger.execute("BEGIN")
    try:
        chain = Chain(ledger_id, StreamRow(*ledger.execute(statements.STREAM, (stream_id,)).fetchone()))
        for page in _pages(ledger.execute(STREAM_EVENTS, (stream_id,))):
            named = chain.add_page(page)
            chain.look(named, ledger.execute(NOT_STORED, (orjson.dumps(list(named)).decode(), stream_id)))
        chain.end()
        contents = Contents(chain)
        for erased_seq, *row in ledger.execute(STREAM_CONTENTS, (stream_id,)):
            contents.add(ContentRow(*row), erased_seq)
        contents.end()
        findings = [] if chain.finding is None else [chain.finding]
        return Checked(stream_id, chain.event_count, contents.count, (*findings, *contents.findings))
    finally:
        ledger.execute("ROLLBACK")


def _pages(cursor: sqlite3.Cursor) -> Iterator[list[tuple[object, ...]]]:
    while page := cursor.fetchmany(PAGE_EVENTS):
        yield page


def _strays(ledger: sqlite3.Connection) -> list[Finding]:
    findings: list[Finding] = []
    count, first, last = ledger.execute(POSITIONS).fetchone()
    if (first, last) != (1, count):
        findings.append(Finding("position_gap", f"{count} events have positions from {first} to {last}"))
    for table in ("event", "content"):
        for (stream_id,) in ledger.execute(OF_NO_STREAM.format(table=table), (FINDINGS_MAX,)):
            findings.append(Finding("stream_missing", f"a row of {table} belongs to no stream", stream_id))
    for find, _ in statements.STRAYS:
        for (key,) in ledger.execute(find, ("", FINDINGS_MAX)):
            findings.append(Finding("row_stray", f"there are rows of {key}, which the log does not know"))
    return findings
