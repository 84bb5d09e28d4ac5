"""The public order, read: every event has one number in it, which never changes (SPEC E8).

On SQLite the number is the position less one; in a database with many writers it is what the sequencer gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from harness.ids import check_id, run_stream, session_stream
from ledger.reading import views
from ledger.reading.query import EVENT_COLUMNS
from ledger.records import RecordedEvent
from ledger.schema import Int, diagnosis_run, event, stream

RUN_PREFIX = sa.literal(run_stream(""))
SESSION_PREFIX = sa.literal(session_stream(""))

START = -1
"""The place before the first event."""
SCAN_EVENTS = 5_000
"""Of how many events at once those of a session are picked out."""

Leaf = tuple[int, RecordedEvent]
"""An event and its place in the public order."""


class Leaves(NamedTuple):
    """Some events in order, and the place up to which there are no others that were asked for."""

    events: Sequence[Leaf]
    position: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are followed: all, or those of one session, or of one run of it."""

    session_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, run: tuple[str, str] | None, session: str | None) -> Wanted:
        """`run` is a session and a run id; a run of another session has no events."""
        if run is not None:
            session_id, run_id = run
            return cls(check_id("session_id", session_id), check_id("run_id", run_id))
        return cls(None if session is None else check_id("session", session))

    @classmethod
    def with_it(cls, one: RecordedEvent) -> set[Wanted]:
        """Those that have this event among theirs."""
        session_id, run_id = one.fields.get("session_id"), one.fields.get("run_id")
        return {cls(), cls(session_id), cls(session_id, run_id)}

    def __str__(self) -> str:
        if self.run_id is not None:
            return f"run {self.session_id}/{self.run_id}"
        return "all" if self.session_id is None else f"session {self.session_id}"

    def has(self, one: RecordedEvent) -> bool:
        """Whether it is one of them."""
        return (self.session_id is None or one.fields.get("session_id") == self.session_id) and (
            self.run_id is None or one.fields.get("run_id") == self.run_id
        )


class LeafQueries:
    """The statements, for numbers that are `column` less `offset`."""

    def __init__(
        self,
        column: sa.ColumnElement[int],
        offset: int,
        source: sa.FromClause,
        packed_links: sa.TextClause | None = None,
    ) -> None:
        """`packed_links` gives those of `links` in one row, where rows are dear: place (64 bits) and link, as hex."""
        self.packed_links = packed_links
        after, until = sa.bindparam("after", type_=Int), sa.bindparam("until", type_=Int)
        limit = sa.bindparam("limit", type_=sa.Integer)
        self.last = sa.select(sa.func.max(column) - offset)
        self.heads = (
            sa.select(event.c.stream_id, column - offset)
            .select_from(
                source.join(stream, sa.and_(stream.c.stream_id == event.c.stream_id, stream.c.head_seq == event.c.seq))
            )
            .where(stream.c.stream_id.in_(sa.bindparam("stream_ids", expanding=True)))
        )
        page = sa.select((column - offset).label("leaf_index"), *EVENT_COLUMNS).select_from(source).limit(limit)
        page = page.where(column > after + offset)
        self.log = page.where(column <= until + offset).order_by(column)
        self.session = self.log.where(event.c.session_id == sa.bindparam("session_id"))
        # A stream's own order is also that of its leaves, and its index tells where each is.
        self.run = page.where(
            event.c.stream_id == sa.bindparam("stream_id"), event.c.session_id == sa.bindparam("session_id")
        ).order_by(event.c.seq)
        links = sa.select(event.c.link).select_from(source).order_by(column).limit(limit)
        self.links = links.where(column > after + offset)
        place = sa.select((column - offset).label("leaf_index"), event.c.link).select_from(source)
        self.place = place.where(
            event.c.stream_id == sa.bindparam("stream_id"), event.c.seq == sa.bindparam("seq", type_=Int)
        )
        # By streams, since those of a session are few, and what was appended by others meanwhile may be much.
        session_id = sa.bindparam("session_id", type_=sa.Text)
        streams = sa.union_all(
            sa.select((SESSION_PREFIX + session_id).label("stream_id")),
            sa.select(RUN_PREFIX + diagnosis_run.c.run_id).where(diagnosis_run.c.session_id == session_id),
        ).subquery()
        counted = sa.select(sa.func.count()).where(column > after + offset, event.c.session_id == session_id)
        self.count_of_run = counted.select_from(source).where(event.c.stream_id == sa.bindparam("stream_id"))
        self.count_of_session = counted.select_from(streams.join(source, event.c.stream_id == streams.c.stream_id))
        # There is no index of times: the whole log is looked at.
        since = sa.case((event.c.recorded_us >= sa.bindparam("from_us", type_=Int), column))
        until_then = sa.case((event.c.recorded_us < sa.bindparam("to_us", type_=Int), column))
        first, last = sa.func.min(since) - offset, sa.func.max(until_then) - offset
        self.period = sa.select(first, last, sa.func.max(column) - offset).select_from(source)


def read_leaves(connection: sa.Connection, queries: LeafQueries, wanted: Wanted, after: int, limit: int) -> Leaves:
    """The next events that are wanted, `limit` at most, and how far they reach: at most to where the log ends."""
    last = last_leaf(connection, queries)
    if after >= last:
        return Leaves((), last)
    values: dict[str, Any] = {"after": after, "limit": limit}
    statement, until = queries.log, last
    if wanted.run_id is not None:
        statement = queries.run
        values |= {"session_id": wanted.session_id, "stream_id": run_stream(wanted.run_id)}
    elif wanted.session_id is not None:
        statement, until = queries.session, min(last, after + SCAN_EVENTS)
        values |= {"session_id": wanted.session_id, "until": until}
    else:
        values["until"] = until
    rows = connection.execute(statement, values).mappings().all()
    events = [(row["leaf_index"], views.event_of(row)) for row in rows]
    return Leaves(events, events[-1][0] if len(events) == limit else until)


def last_leaf(connection: sa.Connection, queries: LeafQueries) -> int:
    """The last place of the public order; `START` where there is no event."""
    last = connection.execute(queries.last).scalar()
    return START if last is None else int(last)


def count_after(connection: sa.Connection, queries: LeafQueries, wanted: Wanted, place: int) -> int:
    """How many events after a place are wanted; below zero where the log ends before it."""
    last = last_leaf(connection, queries)
    if wanted.session_id is None or place >= last:
        return last - place
    values: dict[str, Any] = {"after": place, "session_id": wanted.session_id}
    if wanted.run_id is None:
        return int(connection.execute(queries.count_of_session, values).scalar_one())
    return int(connection.execute(queries.count_of_run, values | {"stream_id": run_stream(wanted.run_id)}).scalar_one())
