"""The statements of PostgreSQL; the one that appends is made for what it has to write, and used over and over.

It is one compare-and-swap: the head of the run's stream moves only from where it was expected to be, and all else is
written because it moved. Where it did not, nothing is written, and the answer is zero.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa

from ledger import schema
from ledger.append.deciding import ContentRow, EventRow, StreamRow
from ledger.projections.rows import (
    ATTEMPT_FIXED,
    CASE_FIXED,
    CaseRow,
    RunMoving,
    RunRow,
    SessionShare,
    StepRow,
    ToolRow,
)

STREAM = f"SELECT {', '.join(StreamRow._fields)} FROM stream WHERE stream_id = $1"
HEAD = "SELECT session_id, head_seq, head_link, owner_id, owner_epoch FROM stream WHERE stream_id = $1"
LINK_AT = "SELECT link FROM event WHERE stream_id = $1 AND seq <= $2 ORDER BY seq DESC LIMIT 1"
BODIES_BETWEEN = "SELECT seq, body FROM event WHERE stream_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4"
FIND_EVENTS = (
    "SELECT found.event_id, found.seq, found.body_hash, found.link FROM unnest($2::text[]) AS wanted (event_id)"
    " CROSS JOIN LATERAL (SELECT event_id, seq, body_hash, link FROM event"
    " WHERE stream_id = $1 AND event_id >= wanted.event_id ORDER BY event_id LIMIT 1) AS found"
    " WHERE found.event_id = wanted.event_id"
)
"""In the order of its index, so that a plan made on an empty table is right for a large one."""

BEAT = "INSERT INTO owner (owner_id, beat) VALUES ($1, 1) ON CONFLICT (owner_id) DO UPDATE SET beat = owner.beat + 1"
LEAVE = "DELETE FROM owner WHERE owner_id = $1"
STANDING = "SELECT value FROM ledger_meta WHERE key = 'standing'"
FENCE = "DELETE FROM owner WHERE owner_id = $1 AND beat = $2 RETURNING owner_id"
OTHER_OWNERS = (
    "SELECT owner_id, beat FROM owner WHERE owner_id <> $1"
    " UNION ALL SELECT DISTINCT owner_id, NULL::bigint FROM stream WHERE owner_id <> $1"
    " AND NOT EXISTS (SELECT FROM owner WHERE owner.owner_id = stream.owner_id)"
)
"""Those that have a beat, and those that left runs behind and have none; of one moment."""
REQUESTS = (
    "SELECT run_id, cancel_reason FROM diagnosis_run WHERE run_id = ANY($1::text[]) AND cancel_reason IS NOT NULL"
)
RUNS_OF_OWNER = "SELECT run_id FROM stream WHERE owner_id = $1 AND stream_id > $2 ORDER BY stream_id LIMIT $3"

EVENT_COLUMNS = tuple(name for name in EventRow._fields if name not in ("stream_id", "session_id", "run_id"))
CONTENT_COLUMNS = tuple(name for name in ContentRow._fields if name != "stream_id")
STEP_COLUMNS = tuple(name for name in StepRow._fields if name not in ("run_id", "session_id"))
TOOL_COLUMNS = tuple(name for name in ToolRow._fields if name not in ("run_id", "session_id"))


class Shape(NamedTuple):
    """What an append has to write."""

    is_new: bool
    """Whether it is the first of its stream."""
    run: bool
    opens_session: bool
    contents: bool
    steps: bool
    tools: bool
    case: bool
    session: bool
    text: bool


class Statement(NamedTuple):
    """A statement and the names of its parameters, in order."""

    sql: str
    names: tuple[str, ...]


@dataclass(slots=True)
class _Writing:
    """A statement in the making; each parameter has a name, and with it the type of a column."""

    parts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def value(self, name: str, kind: str) -> str:
        if name not in self.names:
            self.names.append(name)
        return f"${self.names.index(name) + 1}::{kind}"

    def values(self, table: sa.Table, prefix: str, columns: Sequence[str]) -> str:
        return ", ".join(self.value(f"{prefix}.{name}", kind_of(table, name)) for name in columns)

    def rows(self, table: sa.Table, prefix: str, columns: Sequence[str]) -> str:
        """The columns of several rows, each an array."""
        arrays = (self.value(f"{prefix}.{name}", f"{kind_of(table, name)}[]") for name in columns)
        return f"unnest({', '.join(arrays)}) AS given ({', '.join(columns)})"

    def part(self, name: str, sql: str) -> None:
        self.parts.append(f"{name} AS ({sql})")


@functools.cache
def append(shape: Shape) -> Statement:
    """The statement that writes an append of that shape; its answer is 1, or 0 where the stream is elsewhere."""
    writing = _Writing()
    _move_head(writing, shape)
    keys = f"{writing.value('head.run_id', 'text')}, {writing.value('head.session_id', 'text')}"
    _add_events(writing, keys)
    if shape.opens_session:
        _open_session(writing)
    if shape.run:
        _put_run(writing, shape)
    if shape.contents:
        _add_contents(writing)
    if shape.steps:
        _put_attempts(writing, schema.agent_step, "steps", STEP_COLUMNS, keys, "step_no")
    if shape.tools:
        _put_attempts(writing, schema.tool_invocation, "tools", TOOL_COLUMNS, keys, "invocation_no")
    if shape.case:
        row = writing.values(schema.case_library, "case", CaseRow._fields)
        writing.part(
            "casebook",
            f"INSERT INTO case_library ({', '.join(CaseRow._fields)}) SELECT {row} FROM head"
            f" ON CONFLICT (diagnosis_id) DO UPDATE SET {_changes(CaseRow._fields, CASE_FIXED)}",
        )
    if shape.session:
        _share_session(writing, shape)
    if shape.text:
        _index_text(writing)
    return Statement(f"WITH {', '.join(writing.parts)} SELECT count(*) FROM head", tuple(writing.names))


def _move_head(writing: _Writing, shape: Shape) -> None:
    if shape.is_new:
        row = writing.values(schema.stream, "head", StreamRow._fields)
        writing.part(
            "head",
            f"INSERT INTO stream ({', '.join(StreamRow._fields)}) VALUES ({row})"
            " ON CONFLICT (stream_id) DO NOTHING RETURNING stream_id",
        )
        return
    moved = ("head_seq", "head_link", "owner_id", "owner_epoch")
    changes = ", ".join(f"{name} = {writing.value(f'head.{name}', kind_of(schema.stream, name))}" for name in moved)
    base = ("head_seq", "head_link", "owner_epoch")
    expected = " AND ".join(f"{name} = {writing.value(f'base.{name}', kind_of(schema.stream, name))}" for name in base)
    writing.part(
        "head",
        f"UPDATE stream SET {changes} WHERE stream_id = {writing.value('head.stream_id', 'text')}"
        f" AND {expected} RETURNING stream_id",
    )


def _put_run(writing: _Writing, shape: Shape) -> None:
    if shape.is_new:
        row = writing.values(schema.diagnosis_run, "run", RunRow._fields)
        writing.part("run", f"INSERT INTO diagnosis_run ({', '.join(RunRow._fields)}) SELECT {row} FROM head")
        return
    table = schema.diagnosis_run
    changes = ", ".join(f"{name} = {writing.value(f'run.{name}', kind_of(table, name))}" for name in RunMoving._fields)
    run_id = writing.value("head.run_id", "text")
    writing.part("run", f"UPDATE diagnosis_run SET {changes} FROM head WHERE run_id = {run_id}")


def _open_session(writing: _Writing) -> None:
    """The session's stream and its first event, unless it is there, or another begins it in this moment."""
    row = writing.values(schema.stream, "opened", StreamRow._fields)
    writing.part(
        "opened",
        f"INSERT INTO stream ({', '.join(StreamRow._fields)}) SELECT {row} FROM head"
        " ON CONFLICT (stream_id) DO NOTHING RETURNING stream_id",
    )
    event = writing.values(schema.event, "opening", EventRow._fields)
    writing.part("opening", f"INSERT INTO event ({', '.join(EventRow._fields)}) SELECT {event} FROM opened")


def _add_events(writing: _Writing, keys: str) -> None:
    columns = ", ".join(EVENT_COLUMNS)
    rows = writing.rows(schema.event, "events", EVENT_COLUMNS)
    writing.part(
        "events",
        f"INSERT INTO event (stream_id, run_id, session_id, {columns})"
        f" SELECT head.stream_id, {keys}, {columns} FROM head, {rows}",
    )


def _add_contents(writing: _Writing) -> None:
    columns = ", ".join(CONTENT_COLUMNS)
    rows = writing.rows(schema.content, "contents", CONTENT_COLUMNS)
    writing.part(
        "contents",
        f"INSERT INTO content (stream_id, {columns}) SELECT head.stream_id, {columns} FROM head, {rows}"
        " ON CONFLICT (stream_id, digest) DO UPDATE SET"
        " encoding = excluded.encoding, data = excluded.data, state = excluded.state"
        " WHERE content.state = 'digest_only' AND excluded.state = 'stored'",
    )


def _put_attempts(
    writing: _Writing, table: sa.Table, prefix: str, names: Sequence[str], keys: str, number: str
) -> None:
    columns = ", ".join(names)
    rows = writing.rows(table, prefix, names)
    writing.part(
        prefix,
        f"INSERT INTO {table.name} (run_id, session_id, {columns}) SELECT {keys}, {columns} FROM head, {rows}"
        f" ON CONFLICT (run_id, {number}) DO UPDATE SET {_changes(names, ATTEMPT_FIXED)}",
    )


def _share_session(writing: _Writing, shape: Shape) -> None:
    *shared, ttl = (writing.value(f"share.{name}", kind_of(schema.chat_session, name)) for name in SessionShare._fields)
    if shape.opens_session:
        ttl = f"CASE WHEN EXISTS (SELECT FROM opened) THEN {ttl} END"
    writing.part(
        "share",
        f"INSERT INTO chat_session AS known ({', '.join(SessionShare._fields)}, expires_us)"
        f" SELECT {', '.join(shared)}, {ttl}, {shared[2]} + {ttl} FROM head"
        " ON CONFLICT (session_id) DO UPDATE SET"
        " created_us = least(known.created_us, excluded.created_us),"
        " last_active_us = greatest(known.last_active_us, excluded.last_active_us),"
        " message_pair_count = known.message_pair_count + excluded.message_pair_count,"
        " ttl_us = coalesce(known.ttl_us, excluded.ttl_us),"
        " expires_us = greatest(known.last_active_us, excluded.last_active_us)"
        " + coalesce(known.ttl_us, excluded.ttl_us)",
    )


def _index_text(writing: _Writing) -> None:
    row = f"{writing.value('head.run_id', 'text')}, {writing.value('text.words', 'text')}"
    writing.part(
        "text",
        f"INSERT INTO run_text (run_id, words) SELECT {row} FROM head"
        " ON CONFLICT (run_id) DO UPDATE SET words = excluded.words",
    )


def _changes(columns: Sequence[str], fixed: frozenset[str]) -> str:
    return ", ".join(f"{column} = excluded.{column}" for column in columns if column not in fixed)


def kind_of(table: sa.Table, column: str) -> str:
    """The column's type, as a parameter has to name it."""
    kind = table.c[column].type
    if isinstance(kind, sa.LargeBinary):
        return "bytea"
    if isinstance(kind, sa.JSON):
        return "json"
    return "bigint" if isinstance(kind, sa.Integer) else "text"
