"""What a bundle has of a run, read from the ledger page by page, over one connection that sees one moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa

from harness.ids import run_stream
from ledger.audit.bundle.contents import ContentEntry
from ledger.audit.bundle.event_lines import EventLine
from ledger.audit.bundle.rows import Row
from ledger.compression import unpack
from ledger.errors import RunNotFound
from ledger.following.leaves import START, LeafQueries
from ledger.projections.rows import CaseRow, RunRow, StepRow, ToolRow
from ledger.reading import query
from ledger.schema import agent_step, case_library, content, diagnosis_run, tool_invocation

PAGE_EVENTS = 1_000
PAGE_ROWS = 500
PAGE_CONTENTS = 100
SMALL_BYTES = 65_536
"""Contents of more are fetched one by one."""

_limit = sa.bindparam("limit", type_=sa.Integer)
_stream_id, _digest = sa.bindparam("stream_id", type_=sa.Text), sa.bindparam("digest", type_=sa.Text)
_of_stream = sa.and_(content.c.stream_id == _stream_id, content.c.digest > _digest)
CONTENT_FACTS = (
    sa.select(
        content.c.digest,
        content.c.salt,
        content.c.size_bytes,
        content.c.media_type,
        content.c.state,
        content.c.erased_seq,
    )
    .where(_of_stream)
    .order_by(content.c.digest)
    .limit(_limit)
)
STORED = (
    sa.select(
        content.c.digest,
        content.c.encoding,
        content.c.size_bytes,
        sa.case((sa.func.length(content.c.data) <= SMALL_BYTES, content.c.data)).label("small"),
    )
    .where(_of_stream, content.c.state == "stored")
    .order_by(content.c.digest)
    .limit(_limit)
)
DATA = sa.select(content.c.data).where(content.c.stream_id == _stream_id, content.c.digest == _digest)


class _Table(NamedTuple):
    row: type[Row]
    statement: sa.Select[Any]
    number_at: int
    """Where a row has what they are ordered by."""


def _table(row: type[Row], table: sa.Table, key: str, order: str, first: object) -> _Table:
    # What events add up to in JSON is compared as text.
    columns = [
        sa.cast(table.c[name], sa.Text).label(name) if isinstance(table.c[name].type, sa.JSON) else table.c[name]
        for name in row._fields
    ]
    after = sa.bindparam("after", first, type_=table.c[order].type)
    statement = sa.select(*columns).where(table.c[key] == sa.bindparam("run_id"), table.c[order] > after)
    return _Table(row, statement.order_by(table.c[order]).limit(PAGE_ROWS), row._fields.index(order))


TABLES = (
    _table(RunRow, diagnosis_run, "run_id", "run_id", ""),
    _table(StepRow, agent_step, "run_id", "step_no", 0),
    _table(ToolRow, tool_invocation, "run_id", "invocation_no", 0),
    _table(CaseRow, case_library, "diagnosis_id", "case_id", ""),
)


class RunRecord:
    """One run of a session; `RunNotFound` for an unknown run and another session's alike."""

    def __init__(self, connection: sa.Connection, queries: LeafQueries, session_id: str, run_id: str) -> None:
        self._connection = connection
        self._queries = queries
        self._run_id = run_id
        self._keys = {"stream_id": run_stream(run_id), "session_id": session_id}
        if connection.execute(query.RUN_STREAM, self._keys).one_or_none() is None:
            raise RunNotFound(session_id, run_id)

    def events(self) -> Iterator[EventLine]:
        """All events in order; those that have no place in the public order yet are the last."""
        seq, leaf_index = 0, START
        while True:
            values = {**self._keys, "after": leaf_index, "limit": PAGE_EVENTS}
            page = self._connection.execute(self._queries.run, values).all()
            for row in page:
                seq, leaf_index = row.seq, row.leaf_index
                yield EventLine(leaf_index, seq, row.recorded_us, bytes(row.link), bytes(row.body))
            if len(page) < PAGE_EVENTS:
                break
        while True:
            values = {**self._keys, "after_seq": seq, "limit": PAGE_EVENTS}
            page = self._connection.execute(query.EVENTS, values).all()
            for row in page:
                seq = row.seq
                yield EventLine(None, seq, row.recorded_us, bytes(row.link), bytes(row.body))
            if len(page) < PAGE_EVENTS:
                return

    def rows(self) -> Iterator[Row]:
        """The rows of the run's projections, table by table and in order."""
        for table in TABLES:
            values: dict[str, object] = {"run_id": self._run_id}
            while page := self._connection.execute(table.statement, values).all():
                yield from (table.row(*row) for row in page)
                values["after"] = page[-1][table.number_at]

    def contents(self, *, is_withheld: bool) -> Iterator[ContentEntry]:
        """What is known of every content, but for its data; of one that is withheld also not its salt."""
        for row in self._contents(CONTENT_FACTS):
            is_stored_and_withheld = is_withheld and row.state == "stored"
            fields = {
                "digest": row.digest,
                "erased_seq": row.erased_seq if row.state == "erased" else None,
                "media_type": row.media_type,
                "salt": None if is_withheld or row.salt is None else bytes(row.salt).hex(),
                "size_bytes": row.size_bytes,
                "state": "withheld" if is_stored_and_withheld else row.state,
            }
            yield ContentEntry.model_validate(fields)

    def stored(self) -> Iterator[tuple[str, bytes]]:
        """The data of every content that is stored; `DamagedContent` for what is not what was packed."""
        for row in self._contents(STORED):
            packed = row.small
            if packed is None:
                packed = self._connection.execute(DATA, {**self._keys, "digest": row.digest}).scalar_one()
            yield row.digest, unpack(bytes(packed), row.encoding, row.size_bytes)

    def _contents(self, statement: sa.Select[Any]) -> Iterator[Any]:
        values = {**self._keys, "digest": "", "limit": PAGE_CONTENTS}
        while page := self._connection.execute(statement, values).all():
            yield from page
            values["digest"] = page[-1].digest
