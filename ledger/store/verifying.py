"""Verifying an SQLite ledger, over connections that cannot write, each for a share of the streams."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from harness.ids import run_stream, session_stream
from ledger.append.deciding import ContentRow, StreamRow
from ledger.errors import LedgerUnreadable, RunNotFound
from ledger.rebuild import empty_projections
from ledger.store import statements
from ledger.store.grouped import Grouped
from ledger.store.identity import READ_META
from ledger.store.kinds import strange_value
from ledger.store.probe import connect_to_read, one_moment, require_current
from ledger.store.rules import rules_made, rules_of
from ledger.verifying.chain import COLUMNS
from ledger.verifying.contents import Kept
from ledger.verifying.findings import FINDINGS_MAX, Finding, Tally
from ledger.verifying.meta import check_meta
from ledger.verifying.rules import check_rules
from ledger.verifying.sharing import Share, divide
from ledger.verifying.stream import StreamCheck

T = TypeVar("T")

PREFIX = len(run_stream(""))
"""Of a stream's id, before that of its run or session."""
STREAM_AT = COLUMNS.index("stream_id")
NO_RUNS = (None, None, 0)
"""What they add to a session's row."""

PAGE_EVENTS = 500
PAGE_ROWS = 500
CACHE_KB = 32_768
"""Of each connection: events of one stream lie apart from each other."""

STREAMS = "SELECT stream_id, head_seq FROM stream ORDER BY stream_id"
HEAD_SEQ = "SELECT coalesce(max(head_seq), 0) FROM stream WHERE stream_id = ?"
STREAMS_BETWEEN = (
    f"SELECT {', '.join(StreamRow._fields)} FROM stream"  # noqa: S608 - names of ours
    " WHERE stream_id > ?1 AND (?2 IS NULL OR stream_id <= ?2) ORDER BY stream_id"
)
EVENTS_BETWEEN = (
    f"SELECT {', '.join(COLUMNS)} FROM event"  # noqa: S608 - names of ours
    " WHERE stream_id BETWEEN ? AND ? ORDER BY stream_id, seq"
)
CONTENTS_BETWEEN = (
    f"SELECT stream_id, erased_seq, key_id, {', '.join(ContentRow._fields)}"  # noqa: S608 - names of ours
    " FROM content WHERE stream_id BETWEEN ? AND ? ORDER BY stream_id, digest"
)
INTEGRITY = f"PRAGMA integrity_check({FINDINGS_MAX})"
"""Whether pages hold together, and indexes are of what their tables hold: other readers go by other indexes."""
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
    """A `ledger.verifying.sharing.Verifiable`."""

    place: Path
    ledger_id: str

    async def head_seq(self, stream_id: str) -> int:
        ((head_seq,),) = await self._read(lambda ledger: ledger.execute(HEAD_SEQ, (stream_id,)).fetchall())
        return int(head_seq)

    async def shares(self) -> list[Share]:
        return await self._read(partial(_shares, self.place))

    async def check(self, share: Share) -> Tally:
        return await self._read(partial(_check_share, self.ledger_id, share))

    async def check_run(self, session_id: str, run_id: str) -> Tally:
        return await self._read(partial(_check_run, self, session_id, run_id))

    async def whole(self) -> tuple[Finding, ...]:
        return await self._read(_whole)

    async def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._look, look)

    def _look(self, look: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with contextlib.closing(connect_to_read(self.place)) as ledger:
                ledger.execute(f"PRAGMA cache_size = -{CACHE_KB}")
                return look(ledger)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise LedgerUnreadable(self.place, f"cannot be read ({error})") from error


def _shares(place: Path, ledger: sqlite3.Connection) -> list[Share]:
    _require_kinds(place, ledger)
    return divide(ledger.execute(STREAMS))


def _require_kinds(place: Path, ledger: sqlite3.Connection, stream_id: str | None = None) -> None:
    """A `LedgerUnreadable` where a column holds what it cannot: all else relies on what is read being of its kind."""
    if (strange := strange_value(ledger, stream_id)) is not None:
        raise LedgerUnreadable(place, strange)


def _check_share(ledger_id: str, share: Share, ledger: sqlite3.Connection) -> Tally:
    tally = Tally()
    with contextlib.closing(empty_projections()) as beside, one_moment(ledger):
        found = ledger.execute(STREAMS_BETWEEN, (share.after, share.upto))
        for _, streams in groupby(map(StreamRow._make, found), lambda stream: stream.stream_id[:PREFIX]):
            _check_streams(ledger_id, list(streams), ledger, beside, tally)
    return tally


def _check_run(of: SqliteVerifiable, session_id: str, run_id: str, ledger: sqlite3.Connection) -> Tally:
    tally = Tally()
    with contextlib.closing(empty_projections()) as beside, one_moment(ledger):
        _require_kinds(of.place, ledger, run_stream(run_id))
        row = ledger.execute(statements.STREAM, (run_stream(run_id),)).fetchone()
        if row is None or StreamRow(*row).session_id != session_id:
            raise RunNotFound(session_id, run_id)
        _check_streams(of.ledger_id, [StreamRow(*row)], ledger, beside, tally)
    return tally


def _check_streams(
    ledger_id: str, streams: Sequence[StreamRow], ledger: sqlite3.Connection, beside: sqlite3.Connection, tally: Tally
) -> None:
    """Check streams of one kind, in their order and with none left out, by a few statements for all of them."""
    first, last = streams[0].stream_id, streams[-1].stream_id
    events = Grouped(ledger.execute(EVENTS_BETWEEN, (first, last)), STREAM_AT)
    contents = Grouped(ledger.execute(CONTENTS_BETWEEN, (first, last)), 0)
    keys, runs = (first[PREFIX:], last[PREFIX:]), None
    if first.startswith(session_stream("")):
        reads: tuple[str, ...] = statements.ROWS_OF_SESSIONS[:1]
        key_at: tuple[int, ...] = (0,)
        runs = Grouped(ledger.execute(statements.ROWS_OF_SESSIONS[1], keys), 0)
    else:
        reads, key_at = statements.ROWS_OF_RUNS, statements.RUN_ID_AT
    tables = [Grouped(ledger.execute(read, keys), at) for read, at in zip(reads, key_at, strict=True)]
    for stream in streams:
        key = stream.stream_id[PREFIX:]
        with contextlib.closing(StreamCheck(ledger_id, stream, beside)) as check:
            for page in events.pages(stream.stream_id, PAGE_EVENTS):
                check.add_events(page)
            check.end_events()
            for _, erased_seq, key_id, *row in contents.of(stream.stream_id):
                check.add_content(Kept(ContentRow(*row), erased_seq, key_id))
            shares = NO_RUNS if runs is None else next((row[1:] for row in runs.of(key)), NO_RUNS)
            for table, rows in zip(check.tables(shares), tables, strict=False):
                for page in rows.pages(key, PAGE_ROWS):
                    check.add_rows(table, page)
                check.end_table(table)
            tally.add(check.result())


def _whole(ledger: sqlite3.Connection) -> tuple[Finding, ...]:
    findings = [*check_meta(dict(ledger.execute(READ_META))), *check_rules(rules_made(), rules_of(ledger))]
    for (said,) in ledger.execute(INTEGRITY):
        if said != "ok":
            findings.append(Finding("file_damaged", f"the file is damaged: {said}"))
    count, first, last = ledger.execute(POSITIONS).fetchone()
    if (first, last) != (1, count):
        findings.append(Finding("position_gap", f"{count} events have positions from {first} to {last}"))
    for table in ("event", "content"):
        for (stream_id,) in ledger.execute(OF_NO_STREAM.format(table=table), (FINDINGS_MAX,)):
            findings.append(Finding("stream_missing", f"a row of {table} belongs to no stream", stream_id))
    for find, _ in statements.STRAYS:
        for (key,) in ledger.execute(find, ("", FINDINGS_MAX)):
            findings.append(Finding("row_stray", f"there are rows of {key}, which the log does not know"))
    return tuple(findings)
