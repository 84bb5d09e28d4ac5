"""Where each run stands: the head of its stream and the fold of its events, remembered between transactions.

What is remembered is trusted while nobody else has written. Afterwards a run's stream row says whether anything was
added to it, and only that is folded anew. A stream only grows, so what is stored of it can be folded before the lock
is taken, and in the transaction only what came since.

Memory: the runs that this ledger's owner has open, however many, and `MAX_RUNS` others. Of each it is the run's row,
what is open or unsettled, and at most 200 transitions; not what has ended. A run that its harness could not end stays
until the ledger is closed.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import orjson

from harness.errors import UnknownEvent
from harness.events import Event, parse_event
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import run_stream
from ledger.errors import RunUnreadable
from ledger.projections.run import Changes, RunProjection, project_all
from ledger.store import statements

MAX_RUNS = 256
"""Runs remembered beside those that this ledger's own owner has open: ended ones, and those of other owners."""
PAGE_EVENTS = 500
UNTRUSTED = -1
"""A data version that no transaction has."""


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
    """The heads of the runs that are appended to."""

    def __init__(self, connection: sqlite3.Connection, owner_id: str) -> None:
        self._connection = connection
        self._owner_id = owner_id
        self._own: dict[str, tuple[RunHead, int]] = {}
        self._others: OrderedDict[str, tuple[RunHead, int]] = OrderedDict()
        self._data_version = UNTRUSTED
        self._last_pos: int | None = None

    def warm(self, run_ids: Sequence[str]) -> None:
        """Fold what is stored of runs that were not remembered; call without a transaction, and so without the lock."""
        for run_id in run_ids:
            if run_id not in self._own:
                # Whatever is wrong comes up again in the transaction, and is its error.
                with contextlib.suppress(RunUnreadable, sqlite3.Error):
                    head = self._load(run_id)
                    if head is not None:
                        self._remember(run_id, head, UNTRUSTED)

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
        """The run's head as of this transaction; None if there is no such run, `RunUnreadable` if it is not known."""
        known = self._known(run_id)
        head = known[0] if known is not None and known[1] == self._data_version else self._load(run_id)
        if head is not None:
            self.put(run_id, head)
        return head

    def put(self, run_id: str, head: RunHead) -> None:
        """Remember the head that this transaction leaves."""
        self._remember(run_id, head, self._data_version)

    def forget(self) -> None:
        """Trust nothing any more."""
        self._own.clear()
        self._others.clear()
        self._last_pos = None

    def _known(self, run_id: str) -> tuple[RunHead, int] | None:
        return self._own.get(run_id) or self._others.get(run_id)

    def _remember(self, run_id: str, head: RunHead, data_version: int) -> None:
        if head.owner_id == self._owner_id:
            self._others.pop(run_id, None)
            self._own[run_id] = (head, data_version)
            return
        self._own.pop(run_id, None)
        self._others[run_id] = (head, data_version)
        self._others.move_to_end(run_id)
        if len(self._others) > MAX_RUNS:
            self._others.popitem(last=False)

    def _load(self, run_id: str) -> RunHead | None:
        row = self._connection.execute(statements.STREAM_HEAD, (run_stream(run_id),)).fetchone()
        if row is None:
            return None
        session_id, seq, link, owner_id, owner_epoch = row
        known = self._known(run_id)
        if known is None:
            start, after_seq = None, 0
        elif (known[0].seq, known[0].link) == (seq, link):
            return replace(known[0], owner_id=owner_id, owner_epoch=owner_epoch)
        else:
            start, after_seq = known[0].projection, known[0].seq
        projection = start
        for projection, _ in fold_pages(self._connection, run_id, start, after_seq, seq):  # noqa: B007 - the last counts
            pass
        if projection is None:
            raise RunUnreadable(run_id, "none of its events is known")
        return RunHead(session_id, seq, link, owner_id, owner_epoch, projection)


def fold_pages(
    connection: sqlite3.Connection,
    run_id: str,
    start: RunProjection | None = None,
    after_seq: int = 0,
    last_seq: int = MAX_SAFE_INTEGER,
) -> Iterator[tuple[RunProjection, Changes]]:
    """The run as it is after each page of its events, and the rows that the page changed."""
    run = start
    try:
        for page in stored_pages(connection, run_stream(run_id), after_seq, last_seq):
            changes = Changes()
            run = project_all(run, page, changes)
            if run is not None:
                yield run, changes
    except sqlite3.Error:
        raise
    except Exception as error:
        # Bytes that are no event, or events in an order that this program's rules do not know.
        raise RunUnreadable(run_id, str(error).partition("\n")[0]) from error


def stored_pages(
    connection: sqlite3.Connection, stream_id: str, after_seq: int = 0, last_seq: int = MAX_SAFE_INTEGER
) -> Iterator[list[Event]]:
    """A stream's events between two positions, page by page; types and versions unknown here are passed over."""
    while True:
        rows = connection.execute(statements.BODIES_BETWEEN, (stream_id, after_seq, last_seq, PAGE_EVENTS)).fetchall()
        yield list(_known_events(rows))
        if len(rows) < PAGE_EVENTS:
            return
        after_seq = rows[-1][0]


def _known_events(rows: Sequence[tuple[int, bytes]]) -> Iterator[Event]:
    for _, body in rows:
        fields = orjson.loads(body)
        if not isinstance(fields, dict):
            raise ValueError("a body is a JSON object")
        with contextlib.suppress(UnknownEvent):
            yield parse_event(fields)
