"""What the viewer needs of a ledger's read side, and how a page reads one run without reading a big one whole."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.records import (
    AgentStep,
    ChatSession,
    ContentView,
    Page,
    RecordedEvent,
    RunSummary,
    RunTrace,
    ToolInvocation,
)
from ledger.verifying import RunCheck

EVENTS_PER_READ = 200
TIMELINE_EVENTS_MAX = 2_000
"""Up to here the timeline is drawn from every event; above it from steps and tools."""
TAIL_EVENTS = 40
"""Of a longer run, how many of the last events are looked at for what ended it."""


class Follower(Protocol):
    """The part of `ledger.Follower` that the viewer uses."""

    async def page(self) -> list[tuple[int, RecordedEvent]]:
        """The next events with their places, at least one, as soon as there are any."""


class Reader(Protocol):
    """The part of `ledger.LedgerReader` that the viewer uses."""

    async def session(self, session_id: str) -> ChatSession:
        """The session; an error with code `session_not_found`."""

    async def session_runs(self, session_id: str, limit: int = ..., cursor: str | None = ...) -> Page[RunSummary]:
        """Its runs, newest first."""

    async def recent_runs(self, limit: int = ..., cursor: str | None = ...) -> Page[RunSummary]:
        """Runs of all sessions, newest first."""

    async def trace(self, session_id: str, run_id: str) -> RunTrace:
        """Exactly one run; an error with code `run_not_found`, the same for a foreign run and an unknown one."""

    async def overview(self, session_id: str, run_id: str) -> RunTrace:
        """As `trace`, without the steps and invocations."""

    async def steps(self, session_id: str, run_id: str, after_no: int = ..., limit: int = ...) -> Sequence[AgentStep]:
        """Model steps of one run after the one of that number, in order."""

    async def tools(
        self, session_id: str, run_id: str, after_no: int = ..., limit: int = ...
    ) -> Sequence[ToolInvocation]:
        """Tool invocations of one run after the one of that number, in order."""

    async def events(
        self, session_id: str, run_id: str, after_seq: int = ..., limit: int = ...
    ) -> Sequence[RecordedEvent]:
        """Events of one run in their order."""

    async def contents(self, session_id: str, run_id: str, digests: Iterable[str]) -> Mapping[str, ContentView]:
        """Those of the run's contents that have the digests."""

    async def status(self, session_id: str, run_id: str) -> str:
        """`RUNNING`, or how the run ended; errors as for `trace`."""

    async def last_leaf(self) -> int:
        """The last place of the public order."""

    async def newest_checkpoint(self) -> StoredCheckpoint | None:
        """What was signed last; None if nothing ever was."""

    async def check_run(self, session_id: str, run_id: str) -> RunCheck:
        """Look at one run from all sides."""

    def follow(self, after: int | None = ..., *, run: tuple[str, str] | None = ...) -> Follower:
        """The events of one run after that place."""


@dataclass(frozen=True, slots=True)
class RunReading:
    """One run as a page needs it; every part is of the same moment, that of `trace`."""

    trace: RunTrace
    events: Sequence[RecordedEvent]
    """All events, or of a long run only the last ones."""
    complete: bool
    """Whether `events` are all of them."""
    page: Sequence[RecordedEvent]
    """The events to list."""
    selected: RecordedEvent | None
    """The event to show in full."""


async def read_run(
    reader: Reader, session_id: str, run_id: str, *, after_seq: int = 0, event_seq: int | None = None
) -> RunReading:
    """Read the trace, then the events up to the trace's own head: what came since belongs to the next reading."""
    trace = await reader.trace(session_id, run_id)
    total = trace.run.event_count

    async def stretch(after: int, length: int) -> list[RecordedEvent]:
        found: list[RecordedEvent] = []
        while len(found) < length:
            limit = min(EVENTS_PER_READ, length - len(found))
            rows = await reader.events(session_id, run_id, after_seq=after + len(found), limit=limit)
            found += [row for row in rows if row.seq <= total]
            if len(rows) < limit:
                break
        return found

    complete = total <= TIMELINE_EVENTS_MAX
    events = await stretch(0, total) if complete else await stretch(total - TAIL_EVENTS, TAIL_EVENTS)
    page = events[after_seq : after_seq + EVENTS_PER_READ] if complete else await stretch(after_seq, EVENTS_PER_READ)
    seq = event_seq if event_seq is not None else deciding_seq(trace, events)
    near = next((event for event in [*page, *events] if event.seq == seq), None)
    if near is None and 1 <= seq <= total:
        near = next(iter(await stretch(seq - 1, 1)), None)
    return RunReading(trace, events, complete, page, near)


def deciding_seq(trace: RunTrace, events: Sequence[RecordedEvent]) -> int:
    """The event that says most about how the run ended: the refusal that stopped it, else its end, else the last."""
    wanted = ("reservation.rejected",) if trace.run.summary.status == "BUDGET_EXHAUSTED" else ()
    for event_type in (*wanted, "run.terminated"):
        # What a nested scope refused ended that scope alone.
        found = [event.seq for event in events if event.type == event_type and "scope_id" not in event.fields]
        if found:
            return found[-1]
    return events[-1].seq if events else 0
