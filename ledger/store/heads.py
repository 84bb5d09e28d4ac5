"""Where each run stands in an SQLite ledger, remembered between transactions.

What is remembered is trusted while nobody else has written. Afterwards a run's stream row says whether anything was
added to it, and only that is folded anew. A stream only grows, so what is stored of it can be folded before the lock
is taken, and in the transaction only what came since.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator

from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import run_stream
from ledger.append.deciding import RunHead
from ledger.append.folding import PAGE_EVENTS, fold
from ledger.append.remembered import Remembered
from ledger.errors import RunUnreadable
from ledger.projections.changes import Changes
from ledger.projections.run import RunProjection
from ledger.store import statements

UNTRUSTED = -1
"""A data version that no transaction has."""


class RunHeads:
    """The heads of the runs that are appended to."""

    def __init__(self, connection: sqlite3.Connection, owner_id: str) -> None:
        self.remembered = Remembered(owner_id)
        self._connection = connection
        self._data_version = UNTRUSTED
        self._last_pos: int | None = None

    def warm(self, run_ids: Iterable[str]) -> None:
        """Fold what is stored of runs that were not remembered; call without a transaction, and so without the lock."""
        for run_id in run_ids:
            if not self.remembered.is_own(run_id):
                # Whatever is wrong comes up again in the transaction, and is its error.
                with contextlib.suppress(RunUnreadable, sqlite3.Error):
                    head = self._load(run_id)
                    if head is not None:
                        self.remembered.put(run_id, head, UNTRUSTED)

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
        known = self.remembered.get(run_id)
        if known is not None and known.version == self._data_version:
            return known.head
        head = self._load(run_id)
        if head is not None:
            self.put(run_id, head)
        return head

    def put(self, run_id: str, head: RunHead) -> None:
        """Remember the head that this transaction leaves."""
        self.remembered.put(run_id, head, self._data_version)

    def forget(self) -> None:
        """Trust nothing any more."""
        self.remembered.forget()
        self._last_pos = None

    def _load(self, run_id: str) -> RunHead | None:
        row = self._connection.execute(statements.STREAM_HEAD, (run_stream(run_id),)).fetchone()
        if row is None:
            return None
        session_id, seq, link, owner_id, owner_epoch = row
        known = self.remembered.get(run_id)
        if known is None:
            start, after_seq = None, 0
        elif (known.head.seq, known.head.link) == (seq, link):
            return known.head._replace(owner_id=owner_id, owner_epoch=owner_epoch)
        else:
            start, after_seq = known.head.projection, known.head.seq
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
    for bodies in stored_pages(connection, run_stream(run_id), after_seq, last_seq):
        run, changes = fold(run_id, run, bodies)
        if run is not None:
            yield run, changes


def stored_pages(
    connection: sqlite3.Connection, stream_id: str, after_seq: int = 0, last_seq: int = MAX_SAFE_INTEGER
) -> Iterator[list[bytes]]:
    """The bodies of a stream's events between two positions, page by page."""
    while True:
        rows = connection.execute(statements.BODIES_BETWEEN, (stream_id, after_seq, last_seq, PAGE_EVENTS)).fetchall()
        yield [row[1] for row in rows]
        if len(rows) < PAGE_EVENTS:
            return
        after_seq = rows[-1][0]
