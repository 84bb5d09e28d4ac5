"""A run event by event: its state at any of them, by the one fold that the ledger itself uses.

Going back costs what going on does: the state is kept at the end of every page of events, and of one page the state at
each event. A run of 60,000 events is a few hundred such marks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ledger.errors import LedgerError, RunUnreadable
from ledger.projections.changes import Changes
from ledger.projections.fold import project_all
from ledger.projections.run import RunProjection
from ledger.records import RecordedEvent
from ledger.stored_events import events_of
from ledger.words.event_lines import is_failure
from ledger.words.text import first_line

PAGE_EVENTS = 200
"""Events between two marks."""
PAGES_PER_READ = 5
"""On the way to a moment far ahead."""

Pages = Callable[[int, int], Awaitable[Sequence[RecordedEvent]]]
"""The events of one run after a position, at most so many."""


class NoSuchEvent(LedgerError):
    """The run has no event of that number."""

    code = "event_not_found"

    def __init__(self, seq: int, event_count: int) -> None:
        super().__init__(f"there is no event {seq}: the run has {event_count}, from 1")
        self.seq = seq
        self.event_count = event_count


class Moment(NamedTuple):
    """The run just after one of its events."""

    event: RecordedEvent
    run: RunProjection
    elapsed_us: int
    """The latest time since the start that the run's owner wrote."""
    node: str | None
    """The graph's node that was entered last."""
    is_known: bool
    """False for an event of a type that this program does not know, which therefore changed nothing."""

    @property
    def seq(self) -> int:
        """From 1."""
        return self.event.seq


class _Page(NamedTuple):
    number: int
    moments: Sequence[Moment]
    """The run after each of its events,"""
    problem: RunUnreadable | None = None
    """up to where they make no sense."""


class EventReader(Protocol):
    """The part of `ledger.LedgerReader` that a replay uses."""

    async def events(
        self, session_id: str, run_id: str, after_seq: int = ..., limit: int = ...
    ) -> Sequence[RecordedEvent]:
        """Events of one run in their order."""


class Replay:
    """One run to walk through, forward and back. Not for several tasks at once."""

    def __init__(self, pages: Pages, page_events: int = PAGE_EVENTS) -> None:
        self._pages = pages
        self._page_events = page_events
        self._marks: list[Moment | None] = [None]
        """Before each page of which all earlier ones are whole."""
        self._page = _Page(-1, ())
        """The one at hand."""
        self._last_seq = 0
        """As far as was looked."""

    @classmethod
    def of(cls, events: Sequence[RecordedEvent], page_events: int = PAGE_EVENTS) -> Replay:
        """Of a run whose events are all in memory, in their order from the first."""

        async def pages(after_seq: int, limit: int) -> Sequence[RecordedEvent]:
            return events[after_seq : after_seq + limit]

        return cls(pages, page_events)

    @classmethod
    def read(cls, reader: EventReader, session_id: str, run_id: str) -> Replay:
        """Of a run in a ledger, read page by page. What it appends meanwhile is seen when it is asked for."""

        async def pages(after_seq: int, limit: int) -> Sequence[RecordedEvent]:
            return await reader.events(session_id, run_id, after_seq, limit)

        return cls(pages)

    async def at(self, seq: int) -> Moment:
        """The run just after event `seq`; `NoSuchEvent`, or `RunUnreadable` from where its events make no sense."""
        if seq < 1:
            raise NoSuchEvent(seq, await self.event_count())
        wanted, place = divmod(seq - 1, self._page_events)
        while len(self._marks) <= wanted:
            if not await self._mark(wanted + 1 - len(self._marks)):
                raise self._missing(seq, await self._fold(len(self._marks) - 1))
        page = self._page
        if page.number != wanted or place >= len(page.moments):
            page = await self._fold(wanted)
        if place >= len(page.moments):
            raise self._missing(seq, page)
        return page.moments[place]

    async def before(self, seq: int) -> Moment | None:
        """The run just before event `seq`; None before its first."""
        return None if seq == 1 else await self.at(seq - 1)

    async def moments(self, after_seq: int = 0) -> AsyncIterator[Moment]:
        """The run after each of its events behind `after_seq`, in order."""
        seq = after_seq
        while True:
            seq += 1
            try:
                moment = await self.at(seq)
            except NoSuchEvent:
                return
            yield moment

    async def first_failure(self, after_seq: int = 0) -> int | None:
        """The first event behind `after_seq` where something went wrong: an attempt, refused work, the run's end."""
        while page := await self._pages(after_seq, self._page_events):
            found = next((event.seq for event in page if is_failure(event.type, event.fields)), None)
            if found is not None:
                return found
            after_seq = page[-1].seq
        return None

    async def event_count(self) -> int:
        """How many events the run has by now."""
        while page := await self._pages(self._last_seq, self._page_events):
            self._last_seq = page[-1].seq
        return self._last_seq

    @property
    def mark_count(self) -> int:
        """How many marks there are by now."""
        return len(self._marks) - 1

    async def _mark(self, most: int) -> bool:
        """Set the next marks, at most so many; False if there is none to set."""
        size, number = self._page_events, len(self._marks) - 1
        events = await self._pages(number * size, min(most, PAGES_PER_READ) * size)
        for start in range(0, len(events) - size + 1, size):
            try:
                self._marks.append(after_all(self._marks[-1], events[start : start + size]))
            except RunUnreadable:
                break  # which of them it is, is found where they are folded one by one
        return len(self._marks) - 1 > number

    async def _fold(self, number: int) -> _Page:
        """The page of that number, from its mark."""
        last, problem = self._marks[number], None
        found: list[Moment] = []
        try:
            for event in await self._pages(number * self._page_events, self._page_events):
                last = after(last, event)
                found.append(last)
        except RunUnreadable as error:
            problem = error  # what comes before it can be looked at
        self._page = _Page(number, found, problem)
        if len(found) == self._page_events and len(self._marks) == number + 1:
            self._marks.append(last)
        return self._page

    def _missing(self, seq: int, page: _Page) -> LedgerError:
        """Why there is no such event, of which `page` should be, or comes before the one that should."""
        return page.problem or NoSuchEvent(seq, page.number * self._page_events + len(page.moments))


def after(before: Moment | None, event: RecordedEvent) -> Moment:
    """The run after `event`; `RunUnreadable` where it cannot come there."""
    return after_all(before, [event])


def after_all(before: Moment | None, events: Sequence[RecordedEvent]) -> Moment:
    """The run after the last of `events`, of which there is one at least; `RunUnreadable` where they make no sense."""
    last = events[-1]
    run = None if before is None else before.run
    elapsed_us = 0 if before is None else before.elapsed_us
    node = None if before is None else before.node
    try:
        known: Sequence[Any] = events_of(event.body for event in events)
        run = project_all(run, known, Changes())
        elapsed_us = max(elapsed_us, *(event.elapsed_us or 0 for event in events))
        entered = [node, *(event.to_node for event in known if event.type == "graph.transitioned")]
    except Exception as error:
        # As in any other fold of what is stored: bytes that are no event, or events in an order that is unknown here.
        raise RunUnreadable(str(last.fields.get("run_id")), f"event {last.seq}: {first_line(error)}") from error
    if run is None:
        raise RunUnreadable(str(last.fields.get("run_id")), f"event {last.seq}: a run begins with run.started")
    return Moment(last, run, elapsed_us, entered[-1], is_known=bool(known))
