"""What the viewer needs of a ledger's read side."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from ledger.audit.signing.stored import StoredCheckpoint, StoredTree
from ledger.lists import RunPage, RunValues, SessionPage, Tallies
from ledger.reading.parts import RunPart, WholeRun
from ledger.reading.related import Related
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
from ledger.run_filter import RunFilter
from ledger.verifying import RunCheck

T = TypeVar("T")


class Follower(Protocol):
    """The part of `ledger.Follower` that the viewer uses."""

    async def page(self) -> list[tuple[int, RecordedEvent]]:
        """The next events with their places, at least one, as soon as there are any."""

    def at_hand(self) -> list[tuple[int, RecordedEvent]]:
        """The next ones that need neither waiting nor reading, perhaps none."""


class Reader(Protocol):
    """The part of `ledger.LedgerReader` that the viewer uses."""

    async def session(self, session_id: str) -> ChatSession:
        """The session; an error with code `session_not_found`."""

    async def session_runs(self, session_id: str, limit: int = ..., cursor: str | None = ...) -> Page[RunSummary]:
        """Its runs, newest first."""

    async def runs(self, wanted: RunFilter = ..., limit: int = ..., cursor: str | None = ...) -> RunPage:
        """Runs of all sessions that fit, newest first."""

    async def sessions(self, limit: int = ..., cursor: str | None = ..., prefix: str | None = ...) -> SessionPage:
        """All sessions, or those whose ids begin so, the one that was last active first."""

    async def tallies(self, since_us: int = ...) -> Tallies:
        """What the runs since then add up to by agent, and which to look at first."""

    async def run_values(self, wanted: RunFilter = ...) -> RunValues:
        """What a filter of runs may be set to, as runs of the sessions have it that it names."""

    async def recent_runs(self, limit: int = ..., cursor: str | None = ...) -> Page[RunSummary]:
        """Runs of all sessions, newest first."""

    async def trace(self, session_id: str, run_id: str) -> RunTrace:
        """Exactly one run; an error with code `run_not_found`, the same for a foreign run and an unknown one."""

    async def whole(self, session_id: str, run_id: str, events_max: int) -> WholeRun | None:
        """As `trace`, with all of its events, of the same moment; None where the run has more than so many."""

    async def overview(self, session_id: str, run_id: str) -> RunTrace:
        """As `trace`, without the steps and invocations."""

    async def part(
        self, session_id: str, run_id: str, steps_after: int = ..., tools_after: int = ..., limit: int = ...
    ) -> RunPart:
        """A page of its steps and one of its invocations, and a line of each."""

    async def steps(self, session_id: str, run_id: str, after_no: int = ..., limit: int = ...) -> Sequence[AgentStep]:
        """Model steps of one run after the one of that number, in order."""

    async def tools(
        self, session_id: str, run_id: str, after_no: int = ..., limit: int = ...
    ) -> Sequence[ToolInvocation]:
        """Tool invocations of one run after the one of that number, in order."""

    async def contents(self, session_id: str, run_id: str, digests: Iterable[str]) -> Mapping[str, ContentView]:
        """Those of the run's contents that have these digests, by digest."""

    async def events(
        self, session_id: str, run_id: str, after_seq: int = ..., limit: int = ...
    ) -> Sequence[RecordedEvent]:
        """Events of one run in their order."""

    async def status(self, session_id: str, run_id: str) -> str:
        """`RUNNING`, or how the run ended; errors as for `trace`."""

    async def related(self, session_id: str, run_id: str) -> Related:
        """The runs of the session that have to do with it."""

    async def last_leaf(self) -> int:
        """The last place of the public order."""

    async def ledger_id(self) -> str:
        """The permanent id of the ledger."""

    async def newest_checkpoint(self) -> StoredCheckpoint | None:
        """What was signed last; None if nothing ever was."""

    async def system_events(self, after_seq: int = ..., limit: int = ...) -> list[RecordedEvent]:
        """What was decided about the ledger itself."""

    async def on_tree(self, look: Callable[[StoredTree], T]) -> T:
        """Do it with the Merkle tree and the checkpoints of one moment."""

    async def check_run(self, session_id: str, run_id: str) -> RunCheck:
        """Look at one run from all sides."""

    def follow(self, after: int | None = ..., *, run: tuple[str, str] | None = ...) -> Follower:
        """The events of one run after that place."""
