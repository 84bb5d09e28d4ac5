"""Where each run stands: the head of its stream and the fold of its events, remembered between transactions.

What is remembered is trusted while nobody else has written. Afterwards a run's stream row says whether anything was
added to it, and only that is folded anew.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import orjson

from harness.events import Event, parse_event
from harness.ids import run_stream
from ledger.projections.run import Changes, RunProjection, project_all
from ledger.store import statements

MAX_RUNS = 1024
"""Runs remembered; one more than that is folded again when it is next appended to."""
PAGE_EVENTS = 500


@dataclass(frozen=True, slots=True)
class RunHead:
    """The end of a run's stream, and what the stream adds up to."""

    session_id: str
    seq: int
    link: bytes
    owner_id: str | None
    owner_epoch: int
    projection: RunProjection


class RunHeads:
    """The heads of the runs that were lately appended to."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: OrderedDict[str, tuple[RunHead, int]] = OrderedDict()
        self._data_version = -1
        self._last_pos: int | None = None

    def begin(self) -> None:
        """A write transaction has begun: look whether others wrote since the last one."""
        data_version = int(self._connection.execute(statements.DATA_VERSION).fetchone()[0])
        if data_version != self._data_version or self._last_pos is None:
            self._data_version = data_version
            self._last_pos = int(self._connection.execute(statements.LAST_POS).fetchone()[0])

    @property
    def last_pos(self) -> int:
        """The last position of the log, as of this transaction."""
        assert self._last_pos is not None, "a transaction has begun"
        return self._last_pos

    def moved(self, last_pos: int) -> None:
        """The transaction leaves the log at this position."""
        self._last_pos = last_pos

    def get(self, run_id: str) -> RunHead | None:
        """The run's head as of this transaction; None if there is no such run."""
        known = self._known.get(run_id)
        if known is not None and known[1] == self._data_version:
            self._known.move_to_end(run_id)
            return known[0]
        head = self._load(run_id, known[0] if known is not None else None)
        if head is not None:
            self.put(run_id, head)
        return head

    def put(self, run_id: str, head: RunHead) -> None:
        """Remember the head that this transaction leaves."""
        self._known[run_id] = (head, self._data_version)
        self._known.move_to_end(run_id)
        if len(self._known) > MAX_RUNS:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Trust nothing any more."""
        self._known.clear()
        self._last_pos = None

    def _load(self, run_id: str, known: RunHead | None) -> RunHead | None:
        stream_id = run_stream(run_id)
        row = self._connection.execute(statements.STREAM_HEAD, (stream_id,)).fetchone()
        if row is None:
            return None
        session_id, seq, link, owner_id, owner_epoch = row
        if known is not None and known.seq == seq and known.link == link:
            return replace(known, owner_id=owner_id, owner_epoch=owner_epoch)
        start, after_seq = (known.projection, known.seq) if known is not None else (None, 0)
        projection = project_all(start, stored_events(self._connection, stream_id, after_seq), Changes())
        assert projection is not None, "a run's stream has at least one event"
        return RunHead(session_id, seq, link, owner_id, owner_epoch, projection)


def stored_events(connection: sqlite3.Connection, stream_id: str, after_seq: int = 0) -> Iterator[Event]:
    """The stream's events after a position, read page by page; types this version does not know are passed over."""
    while True:
        rows = connection.execute(statements.BODIES_AFTER, (stream_id, after_seq, PAGE_EVENTS)).fetchall()
        for _, body in rows:
            fields = orjson.loads(body)
            try:
                event = parse_event(fields)
            except LookupError:
                continue
            yield event
        if len(rows) < PAGE_EVENTS:
            return
        after_seq = rows[-1][0]
