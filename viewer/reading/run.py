"""One run as a page needs it, without reading a big one whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ledger.audit.walking.past import overview_at, steps_at, tools_at, works_at
from ledger.audit.walking.replay import NoSuchEvent
from ledger.errors import RunUnreadable
from ledger.reading.links import links_hold
from ledger.reading.parts import RunPart, WorkLine
from ledger.records import AgentStep, ContentView, RecordedEvent, RunTrace, ToolInvocation
from viewer.reading.reader import Reader
from viewer.reading.replays import Place, Replays
from viewer.reading.searching import FOUND_MAX, EventFilter, Found, digests_of, search

EVENTS_PER_READ = FOUND_MAX
ROWS_PER_PAGE = 50
"""Steps, and tool invocations."""
ROWS_PER_READ = 500
TIMELINE_EVENTS_MAX = 2_000
"""Up to here the timeline is drawn from every event; above it from steps and tools."""
TAIL_EVENTS = 40
"""Of a longer run, how many of the last events are looked at for what ended it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a run is asked for."""

    session_id: str
    run_id: str
    after_seq: int = 0
    """Events behind this one are listed,"""
    wanted: EventFilter = field(default_factory=EventFilter)
    """those that are wanted;"""
    event_seq: int | None = None
    """one is shown in full;"""
    at_seq: int | None = None
    """and the run as it was just after that one."""
    steps_after: int = 0
    tools_after: int = 0
    lists_events: bool = True
    """Whether they are shown; else nobody asks whether they are linked."""

    @property
    def keys(self) -> tuple[str, str]:
        """The run."""
        return self.session_id, self.run_id


@dataclass(frozen=True, slots=True)
class RunReading:
    """One run as a page needs it; every part is of the same moment, that of `whole`."""

    trace: RunTrace
    """The run as it is shown, as it is now or as it was at `place`; with all of its steps and invocations if
    `complete`, else with a page."""
    works: Sequence[WorkLine]
    """Every step and invocation, as the run is shown."""
    steps: Sequence[AgentStep]
    """A page of the steps,"""
    tools: Sequence[ToolInvocation]
    """and one of the invocations."""
    whole: RunTrace
    """The run as it is now, likewise."""
    whole_works: Sequence[WorkLine]
    events: Sequence[RecordedEvent]
    """All events, or of a long run only the last ones."""
    complete: bool
    """Whether `events` are all of them."""
    page: Found
    """The events to list."""
    links: Sequence[bool]
    """For each of them, whether it is what was hashed, and linked to what is before it; none for what was searched, nor
    where they are not shown."""
    selected: RecordedEvent | None
    """The event to show in full."""
    named: Mapping[str, ContentView]
    """What that event names by digest: its `input`, its `answer`."""
    place: Place | None = None
    """The event at which the run is shown, where it is not shown as it is now."""
    lost: str = ""
    """Why it cannot be shown at the event that was asked for."""

    @property
    def past_events(self) -> Sequence[RecordedEvent]:
        """Those of `events` that had happened by then."""
        return [event for event in self.events if event.seq <= self.trace.run.event_count]


async def read_run(reader: Reader, replays: Replays, asked: Asked) -> RunReading:
    """Read the run and its events up to its head as it was read: what came since belongs to the next reading."""
    entire = await reader.whole(*asked.keys, TIMELINE_EVENTS_MAX)
    complete = entire is not None
    part = RunPart.of(entire.trace) if entire is not None else await _page_of(reader, asked)
    whole, total = part.trace, part.trace.run.event_count
    shown, place, lost = part, None, ""
    if asked.at_seq is not None:
        try:
            place = await _place(replays, whole, asked.at_seq)
            shown = await _part_at(reader, place, part, asked, complete=complete)
        except (NoSuchEvent, RunUnreadable) as error:
            lost = str(error)
    head = shown.trace.run.event_count
    events = Events(reader, asked.keys, total)
    known = entire.events if entire is not None else await events.stretch(total - TAIL_EVENTS, TAIL_EVENTS)
    page = await _listed(reader, events, asked, known if complete else None, head)
    seq = asked.event_seq if asked.event_seq is not None else place.moment.seq if place else deciding_seq(whole, known)
    selected = await events.one(seq, [*page.events, *known]) if seq <= head else None
    skipped = (asked.steps_after, asked.tools_after) if complete else (0, 0)
    return RunReading(
        trace=shown.trace,
        works=shown.works,
        steps=shown.trace.agent_steps[skipped[0] : skipped[0] + ROWS_PER_PAGE],
        tools=shown.trace.tool_invocations[skipped[1] : skipped[1] + ROWS_PER_PAGE],
        whole=whole,
        whole_works=part.works,
        events=known,
        complete=complete,
        page=page,
        links=await events.links(page.events) if asked.lists_events and not asked.wanted else (),
        selected=selected,
        named=await _named(reader, asked, selected),
        place=place,
        lost=lost,
    )


class Events:
    """The events of a run up to its head at one moment."""

    def __init__(self, reader: Reader, keys: tuple[str, str], head_seq: int) -> None:
        self._reader = reader
        self._keys = keys
        self._head_seq = head_seq

    async def stretch(self, after: int, length: int) -> list[RecordedEvent]:
        """At most so many after a position."""
        found: list[RecordedEvent] = []
        while len(found) < length:
            limit = min(EVENTS_PER_READ, length - len(found))
            rows = await self._reader.events(*self._keys, after_seq=after + len(found), limit=limit)
            found += [row for row in rows if row.seq <= self._head_seq]
            if len(rows) < limit or rows[-1].seq >= self._head_seq:
                break
        return found

    async def one(self, seq: int, known: Sequence[RecordedEvent]) -> RecordedEvent | None:
        """The event of that number, from those that are known if it is among them."""
        found = next((event for event in known if event.seq == seq), None)
        if found is not None or not 1 <= seq <= self._head_seq:
            return found
        return next(iter(await self.stretch(seq - 1, 1)), None)

    async def links(self, listed: Sequence[RecordedEvent]) -> Sequence[bool]:
        """For each of these, which follow one another, whether it is what was hashed, and linked to what is before."""
        if not listed:
            return ()
        before = await self.one(listed[0].seq - 1, ())
        return tuple(links_hold(listed, before, await self._reader.ledger_id()))


async def _page_of(reader: Reader, asked: Asked) -> RunPart:
    """Of a run that is too long to be read as a whole."""
    return await reader.part(*asked.keys, asked.steps_after, asked.tools_after, ROWS_PER_PAGE)


async def _place(replays: Replays, whole: RunTrace, seq: int) -> Place:
    if seq > whole.run.event_count:
        raise NoSuchEvent(seq, whole.run.event_count)
    return await replays.at(whole.run.summary.session_id, whole.run.summary.run_id, seq)


async def _part_at(reader: Reader, place: Place, now: RunPart, asked: Asked, *, complete: bool) -> RunPart:
    """The same of the run as it was."""
    moment = place.moment
    trace = await overview_at(reader, moment, now.trace.chat_session)
    if complete:
        steps = [
            step
            for skipped in range(0, moment.run.step_count, ROWS_PER_READ)
            for step in await steps_at(reader, moment, skipped, ROWS_PER_READ)
        ]
        tools = [
            tool
            for skipped in range(0, moment.run.tool_call_count, ROWS_PER_READ)
            for tool in await tools_at(reader, moment, skipped, ROWS_PER_READ)
        ]
    else:
        steps = await steps_at(reader, moment, asked.steps_after, ROWS_PER_PAGE)
        tools = await tools_at(reader, moment, asked.tools_after, ROWS_PER_PAGE)
    trace = replace(trace, agent_steps=tuple(steps), tool_invocations=tuple(tools))
    return RunPart(trace, works_at(moment, now.works))


async def _listed(
    reader: Reader, events: Events, asked: Asked, known: Sequence[RecordedEvent] | None, head_seq: int
) -> Found:
    """A page of the events, up to the head of the run as it is shown."""
    if asked.wanted:
        return await search(reader, asked.keys, asked.after_seq, head_seq, asked.wanted)
    length = min(EVENTS_PER_READ, max(head_seq - asked.after_seq, 0))
    if known is None:
        found: Sequence[RecordedEvent] = await events.stretch(asked.after_seq, length)
    else:
        found = known[asked.after_seq : asked.after_seq + length]
    return Found(found, found[-1].seq if found else asked.after_seq)


async def _named(reader: Reader, asked: Asked, event: RecordedEvent | None) -> Mapping[str, ContentView]:
    digests = digests_of(event.fields) if event is not None else {}
    contents = await reader.contents(*asked.keys, digests.values()) if digests else {}
    return {name: contents[digest] for name, digest in digests.items() if digest in contents}


def deciding_seq(trace: RunTrace, events: Sequence[RecordedEvent]) -> int:
    """The event that says most about how the run ended: the refusal that stopped it, else its end, else the last."""
    wanted = ("reservation.rejected",) if trace.run.summary.status == "BUDGET_EXHAUSTED" else ()
    for event_type in (*wanted, "run.terminated"):
        # What a nested scope refused ended that scope alone.
        found = [event.seq for event in events if event.type == event_type and "scope_id" not in event.fields]
        if found:
            return found[-1]
    return events[-1].seq if events else 0
