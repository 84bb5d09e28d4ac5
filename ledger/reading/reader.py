"""The read side: sessions, run lists, traces and events, over connections that cannot write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import sqlalchemy as sa

from harness.clock import SystemWallClock, WallClock
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_id
from ledger.audit.signing.stored import StoredCheckpoint, StoredTree
from ledger.errors import Place
from ledger.following.following import Follower, Following, Tail
from ledger.following.lag import Lag, read_lag
from ledger.following.leaves import START, LeafQueries, Leaves, Wanted, last_leaf, read_leaves
from ledger.reading import moment as reading
from ledger.reading.lists import PAGE_RUNS_MAX, Lists, check_number
from ledger.reading.parts import RunPart, WholeRun
from ledger.reading.reads import Reads
from ledger.reading.related import Related, related
from ledger.reading.room import ReadingRoom, reads_of
from ledger.records import (
    AgentStep,
    ChatSession,
    ContentView,
    RecordedEvent,
    RunTrace,
    ToolInvocation,
    UsefulCase,
    Vitals,
)

# Who only reads needs nothing of what verifying takes.
if TYPE_CHECKING:
    from ledger.verifying.run_check import RunCheck
    from ledger.verifying.sharing import Verifiable

T = TypeVar("T")

PAGE_ROWS_MAX = 500
PAGE_EVENTS_MAX = 5_000


class LedgerReader(Lists):
    """Reads a ledger while others may be writing it. Every answer is of one moment."""

    def __init__(self, reads: Reads, clock: WallClock) -> None:
        super().__init__(ReadingRoom(reads), clock)
        self._reads = reads
        self._following = Following(self)

    @classmethod
    async def open(cls, url: str | Path, *, wall_clock: WallClock | None = None) -> LedgerReader:
        """Open a ledger for reading. A `LedgerFileError` says what else it is, and leaves it alone."""
        reads = await reads_of(url)
        return cls(reads, wall_clock or SystemWallClock())

    @property
    def place(self) -> Place:
        """Where the ledger is, without any password."""
        return self._reads.place

    async def session(self, session_id: str) -> ChatSession:
        """The session's metadata; `SessionNotFound` if there is none."""
        check_id("session_id", session_id)
        return await self._room.read(reading.session, session_id, self._clock.now_us())

    async def cases(self, limit: int = 50) -> list[UsefulCase]:
        """The newest cases of useful feedback; none that was withdrawn, or of which query or answer was erased."""
        check_number("limit", limit, 1, PAGE_RUNS_MAX)
        return await self._room.read(reading.cases, limit)

    async def trace(self, session_id: str, run_id: str) -> RunTrace:
        """Exactly one run (SPEC R4); `RunNotFound` for an unknown one and for another session's alike."""
        return await self._room.read(reading.trace, reading.keys_of(session_id, run_id), self._clock.now_us())

    async def whole(self, session_id: str, run_id: str, events_max: int) -> WholeRun | None:
        """As `trace`, with all of its events; None where the run has more than so many."""
        keys = reading.keys_of(session_id, run_id)
        check_number("events_max", events_max, 1, PAGE_EVENTS_MAX)
        return await self._room.read(reading.whole, keys, self._clock.now_us(), events_max)

    async def overview(self, session_id: str, run_id: str) -> RunTrace:
        """As `trace`, without the steps and invocations, which `steps` and `tools` give page by page."""
        return await self._room.read(reading.overview, reading.keys_of(session_id, run_id), self._clock.now_us())

    async def part(
        self, session_id: str, run_id: str, steps_after: int = 0, tools_after: int = 0, limit: int = 50
    ) -> RunPart:
        """A page of the run's steps and one of its invocations, each after the one of a number, with all their
        contents; and of every one what can be said without any. `RunNotFound` as for `trace`."""
        keys = reading.keys_of(session_id, run_id)
        for name, number in (("steps_after", steps_after), ("tools_after", tools_after)):
            check_number(name, number, 0, MAX_SAFE_INTEGER)
        check_number("limit", limit, 1, PAGE_ROWS_MAX)
        return await self._room.read(reading.part, keys, self._clock.now_us(), steps_after, tools_after, limit)

    async def steps(self, session_id: str, run_id: str, after_no: int = 0, limit: int = 200) -> list[AgentStep]:
        """The run's model steps after the one of that number, in order; `RunNotFound` as for `trace`."""
        keys = reading.keys_of(session_id, run_id)
        check_number("after_no", after_no, 0, MAX_SAFE_INTEGER)
        check_number("limit", limit, 1, PAGE_ROWS_MAX)
        return await self._room.read(reading.steps, keys, after_no, limit)

    async def tools(self, session_id: str, run_id: str, after_no: int = 0, limit: int = 200) -> list[ToolInvocation]:
        """The run's tool invocations after the one of that number, in order; `RunNotFound` as for `trace`."""
        keys = reading.keys_of(session_id, run_id)
        check_number("after_no", after_no, 0, MAX_SAFE_INTEGER)
        check_number("limit", limit, 1, PAGE_ROWS_MAX)
        return await self._room.read(reading.tools, keys, after_no, limit)

    async def status(self, session_id: str, run_id: str) -> str:
        """`RUNNING`, or how the run ended; `RunNotFound` as for `trace`."""
        return await self._room.read(reading.status, reading.keys_of(session_id, run_id))

    async def related(self, session_id: str, run_id: str) -> Related:
        """The runs of the session that this one names, and that name it; `RunNotFound` as for `trace`."""
        return await self._room.read(related, reading.keys_of(session_id, run_id))

    async def events(self, session_id: str, run_id: str, after_seq: int = 0, limit: int = 200) -> list[RecordedEvent]:
        """The run's events after a position, in order; `RunNotFound` as for `trace`."""
        keys = reading.keys_of(session_id, run_id)
        check_number("after_seq", after_seq, 0, MAX_SAFE_INTEGER)
        check_number("limit", limit, 1, PAGE_EVENTS_MAX)
        return await self._room.read(reading.events, keys, after_seq, limit)

    async def contents(self, session_id: str, run_id: str, digests: Iterable[str]) -> dict[str, ContentView]:
        """Those of the run's contents that have these digests, by digest; `RunNotFound` as for `trace`."""
        return await self._room.read(reading.contents, reading.keys_of(session_id, run_id), frozenset(digests))

    async def salts(self, session_id: str, run_id: str, digests: Iterable[str]) -> dict[str, bytes]:
        """The salts of the digests, of those contents that were not erased; `RunNotFound` as for `trace`."""
        return await self._room.read(reading.salts, reading.keys_of(session_id, run_id), frozenset(digests))

    async def system_events(self, after_seq: int = 0, limit: int = 200) -> list[RecordedEvent]:
        """What was decided about the ledger itself after a position of that stream, in order (SPEC D2)."""
        check_number("after_seq", after_seq, 0, MAX_SAFE_INTEGER)
        check_number("limit", limit, 1, PAGE_EVENTS_MAX)
        return await self._room.read(reading.system_events, after_seq, limit)

    def follow(
        self, after: int | None = None, *, run: tuple[str, str] | None = None, session: str | None = None
    ) -> Follower:
        """Every event after that place of the public order, once and in order, waiting for those to come (SPEC E8).

        Iterate over it: `async for leaf_index, event in reader.follow(): ...`; None is the beginning. `run`, a session
        and a run id, or `session` picks out theirs. `AheadOfLog` where the log ends before `after`.
        """
        if after is not None:
            check_number("after", after, START, MAX_SAFE_INTEGER)
        return Follower(self._following, Wanted.of(run, session), START if after is None else after)

    async def last_leaf(self) -> int:
        """The place of the last event in the public order; -1 where there is none."""
        return await self._room.read(last_leaf, self._reads.leaf_queries)

    async def leaves(self, wanted: Wanted, after: int, limit: int) -> Leaves:
        """As `ledger.following.following.Source`: a page of the public order."""
        return await self._room.read(read_leaves, self._reads.leaf_queries, wanted, after, limit)

    def tail(self) -> Tail:
        """As `ledger.following.following.Source`."""
        return self._reads.tail()

    async def vitals(self) -> Vitals:
        """What there is to count in the ledger at little cost."""
        runs_open, lag = await self._room.read(self._count)
        waiting = lag.unsequenced
        return Vitals(
            runs_open=runs_open,
            followers=self._following.waiting_count,
            wal_bytes=self._reads.wal_bytes(),
            last_leaf=lag.last_leaf,
            unsequenced=None if waiting is None else waiting.count,
            unsequenced_s=None if waiting is None else waiting.age_s(self._clock.now_us()),
            follower_lags=lag.followers,
        )

    async def unsequenced(self) -> int:
        """How many events were committed and have no place in the public order yet; on a file there are none."""
        waiting = await self._room.read(self._reads.unsequenced)
        return 0 if waiting is None else waiting.count

    async def on_tree(self, look: Callable[[StoredTree], T]) -> T:
        """Do it with the Merkle tree and the checkpoints of one moment (SPEC E9)."""
        return await self.in_one_moment(lambda connection, queries: look(StoredTree(connection, queries)))

    async def in_one_moment(self, work: Callable[[sa.Connection, LeafQueries], T]) -> T:
        """Do it in one transaction that cannot write; on PostgreSQL in this loop, which waits.

        The queries say what the public order is.
        """
        return await self._room.read(work, self._reads.leaf_queries)

    async def newest_checkpoint(self) -> StoredCheckpoint | None:
        """The largest checkpoint under the origin that something was signed under last, whoever signed it."""
        return await self.on_tree(lambda tree: tree.newest())

    def verifiable(self) -> AbstractAsyncContextManager[Verifiable]:
        """The same ledger over connections of their own, to be looked at from all sides."""
        return self._reads.verifiable()

    async def check_run(self, session_id: str, run_id: str) -> RunCheck:
        """Look at that run from all sides, as it is now; takes as long as the run is. `RunNotFound` as for `trace`."""
        from ledger.verifying.run_check import check_run

        keys = reading.keys_of(session_id, run_id)
        return await check_run(self, keys["session_id"], keys["run_id"], self._clock.now_us())

    async def ledger_id(self) -> str:
        """The permanent id of the ledger."""
        return await self._room.read(reading.ledger_id)

    async def erased_runs(self, after: tuple[str, int] = ("", 0), limit: int = 200) -> list[tuple[str, int, str]]:
        """Runs of which content was erased, at which position each says so, and the erasure; in order of streams."""
        check_number("limit", limit, 1, PAGE_EVENTS_MAX)
        return await self._room.read(reading.erased_runs, after, limit)

    async def close(self) -> None:
        """Let go of the ledger, once the reads under way have ended; whoever reads later gets `LedgerUnreadable`."""
        self._room.shut()
        await self._following.close()
        await self._room.close()

    async def __aenter__(self) -> LedgerReader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _count(self, connection: sa.Connection) -> tuple[int, Lag]:
        lag = read_lag(connection, self._reads.leaf_queries, self._reads.unsequenced(connection))
        return reading.runs_open(connection), lag
