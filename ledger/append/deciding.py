"""What an append does to its run, decided in memory: whether it may come, its place and links, and the rows it changes.

No database is asked here. An engine looks up what a decision needs (`Log`), and writes what a `Draft` has gathered.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from harness.errors import AlreadyTerminated
from harness.events import ACCEPTED_AFTER_TERMINATION, RunStarted, SessionOpened
from harness.ids import run_stream, session_stream
from harness.journal import Recorded
from harness.state import RUNNING
from ledger.append.prepared import Append, PreparedEvent, prepare_event
from ledger.bytes import genesis_link, next_link
from ledger.errors import AppendConflict, EventIdReused, OwnedElsewhere, RunIdTaken
from ledger.projections.changes import Changes
from ledger.projections.fold import project_all
from ledger.projections.rows import SessionShare
from ledger.projections.run import RunProjection

OPEN_TO_ALL = frozenset(
    {"cancellation.requested", "evaluation.recorded", "feedback.recorded", "case.recorded", "content.erased"}
)
"""Events that others than a running run's owner may append."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all decisions of one open ledger share."""

    ledger_id: str
    owner_id: str
    new_event_id: Callable[[], str]
    """Ids for the events that the ledger itself writes."""
    session_ttl_us: int | None = None


def numbered(writer_id: str) -> Callable[[], str]:
    """Event ids of one writer, one after the other."""
    numbers = itertools.count(1)
    return lambda: f"{writer_id}:{next(numbers)}"


class RunHead(NamedTuple):
    """The end of a run's stream, and what the stream adds up to."""

    session_id: str
    seq: int
    link: bytes
    owner_id: str | None
    owner_epoch: int
    projection: RunProjection


class StoredEvent(NamedTuple):
    """Where an event is, and what it is."""

    seq: int
    body_hash: bytes
    link: bytes


class StreamRow(NamedTuple):
    """A row of `stream`."""

    stream_id: str
    kind: str
    session_id: str | None
    run_id: str | None
    head_seq: int
    head_link: bytes
    owner_id: str | None
    owner_epoch: int


class EventRow(NamedTuple):
    """A row of `event`, but for its position in the log."""

    stream_id: str
    seq: int
    event_id: str
    type: str
    version: int
    session_id: str | None
    run_id: str | None
    occurred_us: int
    recorded_us: int
    body: bytes
    body_hash: bytes
    link: bytes


class ContentRow(NamedTuple):
    """A row of `content`."""

    stream_id: str
    digest: str
    salt: bytes | None
    """None once it was erased."""
    size_bytes: int
    media_type: str
    encoding: str | None
    data: bytes | None
    state: str


class Log(Protocol):
    """What is stored, as far as a decision has to know it."""

    def head(self, run_id: str) -> RunHead | None:
        """Where the run stands; None if there is no such run, `RunUnreadable` if it is not known."""

    def stored(self, stream_id: str, event_ids: Sequence[str]) -> dict[str, StoredEvent]:
        """Those of the events that are in the stream."""

    def has_session(self, session_id: str) -> bool:
        """Whether the session's stream is known to be there."""

    def stream(self, stream_id: str) -> StreamRow | None:
        """Where the stream stands, be it a session's or the ledger's own; None if there is no such stream."""


class Draft:
    """Appends taken one after another, and all that is to be written for them; a refused one leaves no trace."""

    def __init__(self, log: Log, setting: Setting, recorded_us: int) -> None:
        self.setting = setting
        self.recorded_us = recorded_us
        self.runs: dict[str, RunHead] = {}
        """Where the runs stand that were appended to."""
        self.begun: set[str] = set()
        """Those of them that are new."""
        self.sessions: dict[str, StreamRow] = {}
        """The sessions that are new."""
        self.others: dict[str, StreamRow] = {}
        """Streams that are no run's and were appended to, by id; those that are new have no event but these."""
        self.events: list[EventRow] = []
        self.contents: list[ContentRow] = []
        self.changes = Changes()
        self.log = log
        self._taken: dict[str, dict[str, EventRow]] = {}
        """The events, by stream and id."""

    def head(self, run_id: str) -> RunHead | None:
        """Where the run stands, with what was taken here already; None if there is no such run."""
        return self.runs.get(run_id) or self.log.head(run_id)

    def append(self, append: Append, *, looks: bool = True) -> Recorded:
        """Take the append, or find that it was taken before; raises what the future of `Journal.submit` fails with.

        Where it `looks` not whether it is stored already, what is stored twice is refused by the database.
        """
        head = self.head(append.run_id)
        if head is not None:
            if head.session_id != append.session_id:
                raise RunIdTaken(append.run_id)
            known = self.find(append.stream_id, append.events, looks=looks)
            if known is not None:
                return known
        check(append, head, self.setting.owner_id)
        return self.extend(append, head)

    def extend(self, append: Append, head: RunHead | None) -> Recorded:
        """Put the append after `head`, whoever owns the run; `IllegalEvent` if its events cannot come there."""
        changes = Changes()
        events = (prepared.event for prepared in append.events)
        projection = project_all(head.projection if head is not None else None, events, changes)
        assert projection is not None, "an append has at least one event"
        if head is None:
            self.open_session(append.session_id, append.events[0].event.occurred_us)
            self.begun.add(append.run_id)
        stream_id = append.stream_id
        seq, link = (head.seq, head.link) if head else (0, genesis_link(self.setting.ledger_id, stream_id))
        first_seq = seq + 1
        for prepared in append.events:
            seq, link = self.add_event(stream_id, append.session_id, append.run_id, prepared, seq, link)
        for content in append.contents:
            self.contents.append(ContentRow(stream_id, *content))
        owner_id, owner_epoch = (head.owner_id, head.owner_epoch) if head else (self.setting.owner_id, 1)
        if projection.state.outcome != RUNNING:
            owner_id = None
        self.runs[append.run_id] = RunHead(append.session_id, seq, link, owner_id, owner_epoch, projection)
        self.changes.merge(changes)
        return Recorded(first_seq, seq, link, projection.erasure_count)

    def open_session(self, session_id: str, occurred_us: int) -> None:
        """Make the session's stream, unless it is there."""
        if session_id in self.sessions or self.log.has_session(session_id):
            return
        stream_id = session_stream(session_id)
        opened = SessionOpened(
            event_id=self.setting.new_event_id(),
            stream_id=stream_id,
            session_id=session_id,
            occurred_us=occurred_us,
            ttl_us=self.setting.session_ttl_us,
        )
        genesis = genesis_link(self.setting.ledger_id, stream_id)
        seq, link = self.add_event(stream_id, session_id, None, prepare_event(opened), 0, genesis)
        self.sessions[session_id] = StreamRow(stream_id, "session", session_id, None, seq, link, None, 0)
        self.changes.share(SessionShare(session_id, occurred_us, occurred_us, 0, opened.ttl_us))

    def run_row(self, run_id: str) -> StreamRow:
        """The row of a run that was appended to."""
        head = self.runs[run_id]
        of_head = (head.seq, head.link, head.owner_id, head.owner_epoch)
        return StreamRow(run_stream(run_id), "run", head.session_id, run_id, *of_head)

    def find(self, stream_id: str, events: Sequence[PreparedEvent], *, looks: bool = True) -> Recorded | None:
        """Where the very same events are already, in the log or among what was taken here."""
        taken = self._taken.get(stream_id)
        if not (looks or taken):
            return None
        event_ids = [prepared.event.event_id for prepared in events]
        found: dict[str, StoredEvent | EventRow] = dict(self.log.stored(stream_id, event_ids)) if looks else {}
        if taken:
            found |= {event_id: taken[event_id] for event_id in event_ids if event_id in taken}
        return known(events, found) if found else None

    def add_event(
        self, stream_id: str, session_id: str | None, run_id: str | None, prepared: PreparedEvent, seq: int, link: bytes
    ) -> tuple[int, bytes]:
        """Put the event after `seq` and `link` of its stream; its own are returned."""
        event = prepared.event
        seq += 1
        link = next_link(link, seq, self.recorded_us, prepared.hash)
        row = EventRow(
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
        taken = self._taken.get(stream_id)
        if taken is None:
            taken = self._taken[stream_id] = {}
        taken[row.event_id] = row
        self.events.append(row)
        return seq, link


def known(events: Sequence[PreparedEvent], found: Mapping[str, StoredEvent | EventRow]) -> Recorded:
    """Where the append is whose events were `found`; `EventIdReused` unless all of them are there (SPEC D22)."""
    places: list[StoredEvent | EventRow] = []
    for prepared in events:
        place = found.get(prepared.event.event_id)
        if place is None:
            raise EventIdReused(
                prepared.event.type, prepared.event.event_id, "is new, but others of its append are stored already"
            )
        if place.body_hash != prepared.hash:
            raise EventIdReused(prepared.event.type, prepared.event.event_id, "is stored with another body")
        places.append(place)
    return Recorded(places[0].seq, places[-1].seq, places[-1].link)


def check(append: Append, head: RunHead | None, owner_id: str) -> None:
    """Raise what is against the append by `owner_id`, whatever its events are."""
    found = head.seq if head is not None else 0
    if append.seq_expected is not None and append.seq_expected != found:
        raise AppendConflict(append.stream_id, append.event_type, seq_expected=append.seq_expected, seq_found=found)
    if head is None:
        return
    if isinstance(append.events[0].event, RunStarted):
        raise RunIdTaken(append.run_id)
    state = head.projection.state
    if state.outcome == RUNNING and head.owner_id == owner_id:
        return
    types = {prepared.event.type for prepared in append.events}
    if state.outcome != RUNNING:
        if not types <= ACCEPTED_AFTER_TERMINATION:
            raise AlreadyTerminated(append.run_id, outcome=state.outcome, reason=state.reason or state.outcome)
    elif not types <= OPEN_TO_ALL:
        raise OwnedElsewhere(append.run_id, append.event_type)
