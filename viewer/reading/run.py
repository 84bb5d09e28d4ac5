"""One run as a page needs it, without reading a big one whole."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ledger.audit.walking.past import overview_at, steps_at, tools_at
from ledger.audit.walking.replay import NoSuchEvent
from ledger.errors import RunUnreadable
from ledger.records import RecordedEvent, RunTrace
from viewer.reading.reader import Reader
from viewer.reading.replays import Place, Replays

EVENTS_PER_READ = 200
ROWS_PER_READ = 500
TIMELINE_EVENTS_MAX = 2_000
"""Up to here the timeline is drawn from every event; above it from steps and tools."""
TAIL_EVENTS = 40
"""Of a longer run, how many of the last events are looked at for what ended it."""


@dataclass(frozen=True, slots=True)
class RunReading:
    """One run as a page needs it; every part is of the same moment, that of `whole`."""

    trace: RunTrace
    """The run as it is shown: as it is now, or as it was at `place`."""
    whole: RunTrace
    """The run as it is now."""
    events: Sequence[RecordedEvent]
    """All events, or of a long run only the last ones."""
    complete: bool
    """Whether `events` are all of them."""
    page: Sequence[RecordedEvent]
    """The events to list."""
    selected: RecordedEvent | None
    """The event to show in full."""
    place: Place | None = None
    """The event at which the run is shown, where it is not shown as it is now."""
    lost: str = ""
    """Why it cannot be shown at the event that was asked for."""

    @property
    def past_events(self) -> Sequence[RecordedEvent]:
        """Those of `events` that had happened by then."""
        return [event for event in self.events if event.seq <= self.trace.run.event_count]


async def read_run(
    reader: Reader,
    replays: Replays,
    session_id: str,
    run_id: str,
    *,
    after_seq: int = 0,
    event_seq: int | None = None,
    at_seq: int | None = None,
) -> RunReading:
    """Read the trace, then the events up to the trace's own head: what came since belongs to the next reading."""
    whole = await reader.trace(session_id, run_id)
    trace, place, lost = whole, None, ""
    if at_seq is not None:
        try:
            place = await _place(replays, whole, at_seq)
            trace = await _trace_at(reader, place, whole)
        except (NoSuchEvent, RunUnreadable) as error:
            lost = str(error)
    events = _Events(reader, session_id, run_id, whole.run.event_count)
    complete = whole.run.event_count <= TIMELINE_EVENTS_MAX
    known = await events.stretch(0 if complete else whole.run.event_count - TAIL_EVENTS, TIMELINE_EVENTS_MAX)
    head = trace.run.event_count
    length = min(EVENTS_PER_READ, max(head - after_seq, 0))
    page = known[after_seq : after_seq + length] if complete else await events.stretch(after_seq, length)
    seq = event_seq if event_seq is not None else place.moment.seq if place else deciding_seq(whole, known)
    selected = next((event for event in [*page, *known] if event.seq == seq), None)
    if selected is None:
        selected = next(iter(await events.stretch(seq - 1, 1)), None) if seq > 0 else None
    if selected is not None and selected.seq > head:
        selected = None
    return RunReading(trace, whole, known, complete, page, selected, place, lost)


class _Events:
    """The events of a run up to its head at one moment."""

    def __init__(self, reader: Reader, session_id: str, run_id: str, head_seq: int) -> None:
        self._reader = reader
        self._keys = (session_id, run_id)
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


async def _place(replays: Replays, whole: RunTrace, seq: int) -> Place:
    if seq > whole.run.event_count:
        raise NoSuchEvent(seq, whole.run.event_count)
    return await replays.at(whole.run.summary.session_id, whole.run.summary.run_id, seq)


async def _trace_at(reader: Reader, place: Place, whole: RunTrace) -> RunTrace:
    """The trace with every step and invocation as it was."""
    moment = place.moment
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
    trace = await overview_at(reader, moment, whole.chat_session)
    return replace(trace, agent_steps=tuple(steps), tool_invocations=tuple(tools))


def deciding_seq(trace: RunTrace, events: Sequence[RecordedEvent]) -> int:
    """The event that says most about how the run ended: the refusal that stopped it, else its end, else the last."""
    wanted = ("reservation.rejected",) if trace.run.summary.status == "BUDGET_EXHAUSTED" else ()
    for event_type in (*wanted, "run.terminated"):
        # What a nested scope refused ended that scope alone.
        found = [event.seq for event in events if event.type == event_type and "scope_id" not in event.fields]
        if found:
            return found[-1]
    return events[-1].seq if events else 0
