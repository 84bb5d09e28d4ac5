"""One write transaction: appends are decided one after another in memory, then written with few statements."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from harness.errors import AlreadyTerminated
from harness.events import ACCEPTED_AFTER_TERMINATION, RunStarted, SessionOpened
from harness.ids import run_stream, session_stream
from harness.journal import Recorded
from harness.state import RUNNING
from ledger.bytes import genesis_link, next_link
from ledger.errors import AppendConflict, EventIdReused, OwnedElsewhere, RunIdTaken
from ledger.heads import RunHead, RunHeads
from ledger.prepared import Append, PreparedEvent, prepare_event
from ledger.projections.rows import SessionShare
from ledger.projections.run import Changes, project
from ledger.store import statements
from ledger.store.rows import write_changes, write_rows

OPEN_TO_ALL = frozenset({"cancellation.requested", "evaluation.recorded", "feedback.recorded", "case.recorded"})
"""Events that others than a running run's owner may append."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all transactions of one open ledger share."""

    ledger_id: str
    owner_id: str
    new_event_id: Callable[[], str]
    """Ids for the events that the ledger itself writes."""
    session_ttl_us: int | None = None


@dataclass(slots=True)
class _Rows:
    """What is to be inserted."""

    streams: list[tuple[object, ...]] = field(default_factory=list)
    events: list[tuple[object, ...]] = field(default_factory=list)
    contents: list[tuple[object, ...]] = field(default_factory=list)


class Batch:
    """The appends of one transaction. Nothing is written before `write`; an append that is refused leaves no trace."""

    def __init__(self, connection: sqlite3.Connection, heads: RunHeads, setting: Setting, recorded_us: int) -> None:
        self.connection = connection
        self.setting = setting
        self.recorded_us = recorded_us
        self._heads = heads
        self._last_pos = heads.last_pos
        self._rows = _Rows()
        self._changes = Changes()
        self._runs: dict[str, RunHead] = {}
        self._new_streams: set[str] = set()
        self._ids: dict[tuple[str, str], tuple[int, bytes, bytes]] = {}

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

    def head(self, run_id: str) -> RunHead | None:
        """Where the run stands, with what this batch has already taken; None if there is no such run."""
        return self._runs.get(run_id) or self._heads.get(run_id)

    def append(self, append: Append) -> Recorded:
        """Take the append, or find that it was taken before; raises what the future of `Journal.submit` fails with."""
        head = self.head(append.run_id)
        if head is not None:
            if head.session_id != append.session_id:
                raise RunIdTaken(append.run_id)
            known = self._find(append)
            if known is not None:
                return known
        self._check(append, head)
        return self.extend(append, head)

    def extend(self, append: Append, head: RunHead | None) -> Recorded:
        """Put the append after `head`, whoever owns the run; `IllegalEvent` if its events cannot come there."""
        projection = head.projection if head is not None else None
        changes = Changes()
        for prepared in append.events:
            projection = project(projection, prepared.event, changes)
        assert projection is not None, "an append has at least one event"
        if head is None:
            self.open_session(append.session_id, append.events[0].event.occurred_us)
        stream_id = append.stream_id
        seq, link = (head.seq, head.link) if head else (0, genesis_link(self.setting.ledger_id, stream_id))
        first_seq = seq + 1
        for prepared in append.events:
            seq, link = self._add_event(stream_id, append.session_id, append.run_id, prepared, seq, link)
        for content in append.contents:
            state = "digest_only" if content.data is None else "stored"
            row = (stream_id, content.digest, content.salt, content.size_bytes, content.media_type, content.data, state)
            self._rows.contents.append(row)
        if head is None:
            self._new_streams.add(stream_id)
        owner_id, owner_epoch = (head.owner_id, head.owner_epoch) if head else (self.setting.owner_id, 1)
        if projection.state.outcome != RUNNING:
            owner_id = None
        self._runs[append.run_id] = RunHead(append.session_id, seq, link, owner_id, owner_epoch, projection)
        self._changes.merge(changes)
        return Recorded(first_seq, seq, link)

    def open_session(self, session_id: str, occurred_us: int) -> None:
        """Make the session's stream, unless it is there."""
        stream_id = session_stream(session_id)
        if stream_id in self._new_streams:
            return
        if self.connection.execute(statements.STREAM_EXISTS, (stream_id,)).fetchone() is not None:
            return
        opened = SessionOpened(
            event_id=self.setting.new_event_id(),
            stream_id=stream_id,
            session_id=session_id,
            occurred_us=occurred_us,
            ttl_us=self.setting.session_ttl_us,
        )
        genesis = genesis_link(self.setting.ledger_id, stream_id)
        seq, link = self._add_event(stream_id, session_id, None, prepare_event(opened), 0, genesis)
        self._rows.streams.append((stream_id, "session", session_id, None, seq, link, None, 0))
        self._new_streams.add(stream_id)
        self._changes.share(SessionShare(session_id, occurred_us, occurred_us, 0, opened.ttl_us))

    def write(self) -> None:
        """Write all that was taken."""
        moved: list[tuple[object, ...]] = []
        for run_id, head in self._runs.items():
            stream_id = run_stream(run_id)
            if stream_id in self._new_streams:
                self._rows.streams.append(
                    (stream_id, "run", head.session_id, run_id, head.seq, head.link, head.owner_id, head.owner_epoch)
                )
            else:
                moved.append((head.seq, head.link, head.owner_id, head.owner_epoch, stream_id))
        write_rows(self.connection, statements.INSERT_STREAM, self._rows.streams)
        write_rows(self.connection, statements.INSERT_EVENT, self._rows.events)
        write_rows(self.connection, statements.INSERT_CONTENT, self._rows.contents)
        write_rows(self.connection, statements.UPDATE_STREAM, moved)
        write_changes(self.connection, self._changes)

    def committed(self) -> None:
        """Remember where the log and the runs stand now."""
        if self._rows.events:
            self._heads.moved(self._last_pos)
        for run_id, head in self._runs.items():
            self._heads.put(run_id, head)

    def _check(self, append: Append, head: RunHead | None) -> None:
        found = head.seq if head is not None else 0
        if append.seq_expected is not None and append.seq_expected != found:
            raise AppendConflict(append.run_id, append.event_type, seq_expected=append.seq_expected, seq_found=found)
        if head is None:
            return
        if isinstance(append.events[0].event, RunStarted):
            raise RunIdTaken(append.run_id)
        state = head.projection.state
        types = {prepared.event.type for prepared in append.events}
        if state.outcome != RUNNING:
            if not types <= ACCEPTED_AFTER_TERMINATION:
                raise AlreadyTerminated(append.run_id, outcome=state.outcome, reason=state.reason or state.outcome)
        elif head.owner_id != self.setting.owner_id and not types <= OPEN_TO_ALL:
            raise OwnedElsewhere(append.run_id, append.event_type)

    def _find(self, append: Append) -> Recorded | None:
        """Where the very same append is already; None if none of its events is there (SPEC D22)."""
        found = self._stored(append.stream_id, [prepared.event.event_id for prepared in append.events])
        if not found:
            return None
        rows = []
        for prepared in append.events:
            row = found.get(prepared.event.event_id)
            if row is None:
                raise EventIdReused(
                    prepared.event.type, prepared.event.event_id, "is new, but others of its append are stored already"
                )
            if row[1] != prepared.hash:
                raise EventIdReused(prepared.event.type, prepared.event.event_id, "is stored with another body")
            rows.append(row)
        return Recorded(rows[0][0], rows[-1][0], rows[-1][2])

    def _stored(self, stream_id: str, event_ids: Sequence[str]) -> dict[str, tuple[int, bytes, bytes]]:
        """Position, body hash and link of those of the events that are in the stream, or in this batch."""
        rows = self.connection.execute(statements.FIND_EVENTS, (orjson.dumps(event_ids).decode(), stream_id))
        found = {event_id: (seq, body_hash, link) for event_id, seq, body_hash, link in rows}
        for event_id in event_ids:
            taken = self._ids.get((stream_id, event_id))
            if taken is not None:
                found[event_id] = taken
        return found

    def _add_event(
        self, stream_id: str, session_id: str, run_id: str | None, prepared: PreparedEvent, seq: int, link: bytes
    ) -> tuple[int, bytes]:
        event = prepared.event
        seq += 1
        link = next_link(link, seq, self.recorded_us, prepared.hash)
        self._last_pos += 1
        self._ids[stream_id, event.event_id] = (seq, prepared.hash, link)
        self._rows.events.append(
            (
                self._last_pos,
                stream_id,
                seq,
                event.event_id,
                event.type,
                event.version,
                session_id,
                run_id,
                event.occurred_us,
                self.recorded_us,
                prepared.body,
                prepared.hash,
                link,
            )
        )
        return seq, link
