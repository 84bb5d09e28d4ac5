"""One write transaction of SQLite: what is decided in it is looked up in it, and written with few statements."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

import orjson

from harness.ids import run_stream, session_stream
from ledger.append.deciding import Draft, RunHead, Setting, StoredEvent, StreamRow
from ledger.failpoints import reached
from ledger.store import statements
from ledger.store.heads import RunHeads
from ledger.store.rows import insert_rows, write_changes, write_rows
from ledger.store.texts import NAMING, index_runs


class _InTransaction:
    """The log as the transaction sees it."""

    def __init__(self, connection: sqlite3.Connection, heads: RunHeads) -> None:
        self._connection = connection
        self._heads = heads

    def head(self, run_id: str) -> RunHead | None:
        return self._heads.get(run_id)

    def stored(self, stream_id: str, event_ids: Sequence[str]) -> dict[str, StoredEvent]:
        rows = self._connection.execute(statements.FIND_EVENTS, (orjson.dumps(event_ids).decode(), stream_id))
        return {event_id: StoredEvent(*place) for event_id, *place in rows}

    def has_session(self, session_id: str) -> bool:
        stream_id = session_stream(session_id)
        return self._connection.execute(statements.STREAM_EXISTS, (stream_id,)).fetchone() is not None

    def stream(self, stream_id: str) -> StreamRow | None:
        row = self._connection.execute(statements.STREAM, (stream_id,)).fetchone()
        return None if row is None else StreamRow(*row)


class Batch(Draft):
    """The appends of one transaction. Nothing is written before `write`."""

    def __init__(self, connection: sqlite3.Connection, heads: RunHeads, setting: Setting, recorded_us: int) -> None:
        super().__init__(_InTransaction(connection, heads), setting, recorded_us)
        self.connection = connection
        self._heads = heads
        self._last_pos = heads.last_pos

    @contextlib.contextmanager
    def single(self) -> Iterator[Batch]:
        """A batch of its own in the same transaction, written at the block's end; an error takes back only its part."""
        self.connection.execute("SAVEPOINT single")
        single = Batch(self.connection, self._heads, self.setting, self.recorded_us)
        try:
            yield single
            single.write()
        except Exception as error:
            # After any other error of the database the whole transaction is lost.
            if isinstance(error, sqlite3.IntegrityError) or not isinstance(error, sqlite3.Error):
                self.connection.execute("ROLLBACK TO single")
                self.connection.execute("RELEASE single")
            raise
        self.connection.execute("RELEASE single")
        single.committed()

    def undo(self) -> None:
        """Take back what was done on the connection so far; the transaction goes on as if it had just begun."""
        self.connection.execute("ROLLBACK")
        self.connection.execute(statements.BEGIN)

    def write(self) -> None:
        """Write all that was taken."""
        new: list[StreamRow] = list(self.sessions.values())
        moved: list[tuple[object, ...]] = []
        disowned: list[tuple[object, ...]] = []
        for run_id, head in self.runs.items():
            if run_id in self.begun:
                new.append(self.run_row(run_id))
            elif head.owner_id is not None:
                moved.append((head.seq, head.link, run_stream(run_id)))
            else:
                disowned.append((head.seq, head.link, None, head.owner_epoch, run_stream(run_id)))
        added = Counter(event.stream_id for event in self.events) if self.others else {}
        for stream_id, row in self.others.items():
            if row.head_seq == added[stream_id]:
                new.append(row)
            else:
                moved.append((row.head_seq, row.head_link, stream_id))
        insert_rows(self.connection, statements.INSERT_STREAM, new)
        events = [(pos, *event) for pos, event in enumerate(self.events, self._last_pos + 1)]
        insert_rows(self.connection, statements.INSERT_EVENT, events)
        reached("between rows")
        insert_rows(self.connection, statements.INSERT_CONTENT, self.contents)
        write_rows(self.connection, statements.MOVE_STREAM, moved)
        write_rows(self.connection, statements.UPDATE_STREAM, disowned)
        write_changes(self.connection, self.changes)
        index_runs(self.connection, {str(event.run_id) for event in self.events if event.type in NAMING})

    def committed(self) -> None:
        """Remember where the log and the runs stand now."""
        if self.events:
            self._heads.moved(self._last_pos + len(self.events))
        for run_id, head in self.runs.items():
            self._heads.put(run_id, head)
