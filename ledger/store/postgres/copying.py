"""A ledger from a file put into a database, in the transaction that makes it there; every rule of it is kept.

Events go in the order of the log and keep their positions. Each piece comes together with the heads of its streams, as
an append does, since that is what the triggers want to see; all other rows go as they are.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import asyncpg
import sqlalchemy as sa

from ledger import schema
from ledger.append.deciding import StreamRow
from ledger.errors import LedgerUnreadable
from ledger.rebuild import PROJECTIONS
from ledger.store.postgres.migrating import making
from ledger.store.postgres.place import PostgresPlace, place_at
from ledger.store.postgres.statements import kind_of
from ledger.store.postgres.texts import mend
from ledger.store.probe import connect_to_read

PIECE_EVENTS = 1_000
PIECE_ROWS = 200
PIECE_CONTENTS = 4
"""Each may be big."""
AS_THEY_ARE = (
    schema.content,
    schema.erasure,
    schema.erased_run,
    schema.follower,
    schema.token,
    schema.sign_in,
    schema.tile,
    schema.checkpoint,
    *PROJECTIONS,
)
"""Tables whose rows are copied without looking at them,"""
WHOLE = (schema.stream, schema.event, *AS_THEY_ARE)
"""and all that are compared."""

Progress = Callable[[int, int], None]


def _columns(table: sa.Table) -> str:
    return ", ".join(column.name for column in table.c)


def _rows_given(table: sa.Table, first: int) -> str:
    arrays = ", ".join(f"${number}::{kind_of(table, column.name)}[]" for number, column in enumerate(table.c, first))
    return f"unnest({arrays}) AS given ({_columns(table)})"


def _put_piece() -> str:
    """New streams, streams whose head moves, and the events because of which both are as they are."""
    streams = _rows_given(schema.stream, 1)
    events = _rows_given(schema.event, 1 + len(schema.stream.c))
    return (
        f"WITH put AS (INSERT INTO stream ({_columns(schema.stream)}) SELECT {_columns(schema.stream)} FROM {streams}"  # noqa: S608 - names of ours
        " ON CONFLICT (stream_id) DO UPDATE SET head_seq = excluded.head_seq, head_link = excluded.head_link),"
        f" added AS (INSERT INTO event ({_columns(schema.event)}) OVERRIDING SYSTEM VALUE"
        f" SELECT {_columns(schema.event)} FROM {events}) SELECT 1"
    )


PUT_PIECE = _put_piece()
EVENTS_AFTER = f"SELECT {_columns(schema.event)} FROM event WHERE pos > ? ORDER BY pos LIMIT ?"  # noqa: S608 - ours
STREAM = f"SELECT {', '.join(StreamRow._fields)} FROM stream WHERE stream_id = ?"  # noqa: S608 - ours
NEXT_POSITION = "SELECT setval(pg_get_serial_sequence('event', 'pos'), greatest($1, 1), $1 > 0)"
PUT_LEAVES = "INSERT INTO leaf (leaf_index, stream_id, seq) SELECT pos - 1, stream_id, seq FROM event"
"""As a file has it."""
PUT_HEAD = (
    "UPDATE tree_head SET size = (SELECT count(*) FROM leaf), watermark = (pg_current_xact_id()::text::numeric + 1)"
    "::text::xid8, system_identifier = (SELECT system_identifier FROM pg_control_system())"
)
"""Every event of this transaction has its place, and before it there was none."""
OTHER_META = (
    "SELECT key, value FROM ledger_meta WHERE key NOT IN ('ledger_id', 'format_version', 'hash_version', 'home')"
)


async def copy_to_postgres(path: Path, ledger_id: str, url: str, on_progress: Progress) -> PostgresPlace:
    """Copy the ledger at `path`, which nobody may be writing; `LedgerUnreadable` if there is one at `url` already."""
    place = place_at(url)
    try:
        with contextlib.closing(connect_to_read(path)) as source:
            source.execute("BEGIN")
            async with making(place, ledger_id) as target:
                await _Copy(source, target, on_progress).run(place)
    except sqlite3.Error as error:
        raise LedgerUnreadable(path, f"cannot be read ({error})") from error
    return place


class _Copy:
    def __init__(self, source: sqlite3.Connection, target: asyncpg.Connection[Any], on_progress: Progress) -> None:
        self._source = source
        self._target = target
        self._on_progress = on_progress
        (self._event_count,) = source.execute("SELECT count(*) FROM event").fetchone()
        self._done = 0

    async def run(self, place: PostgresPlace) -> None:
        """Copy everything, then read it back."""
        await self._put_log()
        await self._target.execute(PUT_LEAVES)
        await self._target.execute(PUT_HEAD)
        for table in AS_THEY_ARE:
            columns = [column.name for column in table.c]
            # Sent on while they are read.
            rows = self._source.execute(read_all(table))
            await self._target.copy_records_to_table(table.name, records=rows, columns=columns)
        await mend(self._target)
        for key, value in self._source.execute(OTHER_META):
            await self._target.execute("INSERT INTO ledger_meta (key, value) VALUES ($1, $2)", key, value)
        for table in WHOLE:
            if digest_of(self._source.execute(read_all(table))) != await self._digest_there(table):
                raise LedgerUnreadable(place, f"took other rows of {table.name} than it was given")

    async def _put_log(self) -> None:
        last, heads = 0, _Heads(self._source)
        while events := self._source.execute(EVENTS_AFTER, (last, PIECE_EVENTS)).fetchall():
            last = events[-1][0]
            streams = heads.after(events)
            await self._target.execute(PUT_PIECE, *_by_column(streams), *_by_column(events))
            self._done += len(events)
            self._on_progress(self._done, 2 * self._event_count)
        await self._target.execute(NEXT_POSITION, last)

    async def _digest_there(self, table: sa.Table) -> bytes:
        digest = sha256()
        # As they are stored, whatever the driver would make of them.
        prefetch = PIECE_CONTENTS if table is schema.content else PIECE_ROWS
        async for row in self._target.cursor(read_all(table, json="::text"), prefetch=prefetch):
            digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
            if table is schema.event:
                self._done += 1
                if self._done % PIECE_EVENTS == 0:
                    self._on_progress(self._done, 2 * self._event_count)
        return digest.digest()


class _Heads:
    """The streams of a piece of the log, as they are after it."""

    def __init__(self, source: sqlite3.Connection) -> None:
        self._source = source
        names = [column.name for column in schema.event.c]
        self._stream_id, self._seq, self._link = names.index("stream_id"), names.index("seq"), names.index("link")

    def after(self, events: Sequence[tuple[Any, ...]]) -> list[StreamRow]:
        """Whose events these are, with the last of these as their heads."""
        last = {event[self._stream_id]: (event[self._seq], event[self._link]) for event in events}
        rows = (
            (StreamRow(*self._source.execute(STREAM, (stream_id,)).fetchone()), head)
            for stream_id, head in last.items()
        )
        return [row._replace(head_seq=seq, head_link=link) for row, (seq, link) in rows]


def _by_column(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def read_all(table: sa.Table, json: str = "") -> str:
    """All rows in the order of their key; `json` follows the names of columns that hold some."""
    key = ", ".join(column.name for column in table.primary_key)
    columns = ", ".join(f"{column.name}{json if isinstance(column.type, sa.JSON) else ''}" for column in table.c)
    return f"SELECT {columns} FROM {table.name} ORDER BY {key}"  # noqa: S608 - names of ours


def digest_of(rows: Iterator[tuple[Any, ...]]) -> bytes:
    """What two databases compare that hold the same rows."""
    digest = sha256()
    for row in rows:
        digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
    return digest.digest()
