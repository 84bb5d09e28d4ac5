"""A reader over runs held in memory, with the methods and errors of `ledger.LedgerReader`."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from ledger.audit.signing.stored import StoredCheckpoint, StoredTree
from ledger.errors import LedgerError, LedgerUnreadable, RunNotFound, SessionNotFound
from ledger.reading.parts import RunPart, WholeRun
from ledger.reading.related import RELATED_MAX, Related, Runs
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
from tests.viewer.fake_lists import FakeLists, page_of
from tests.viewer.fake_run import FAKE_LEDGER, START_US, FakeRun

T = TypeVar("T")


class FakeReader(FakeLists):
    """Newest runs first; a cursor is the number of rows to skip."""

    def __init__(self, runs: Iterable[FakeRun] = (), empty_sessions: Iterable[str] = ()) -> None:
        self.held = {(run.session_id, run.run_id): run for run in runs}
        self.empty_sessions = set(empty_sessions)
        self.fails: Exception | None = None
        """Raised by every method, where set."""
        self.expired = False
        self.check: RunCheck | None = None
        """What is found of every run; where there is none, nothing can be."""

    async def session(self, session_id: str) -> ChatSession:
        self._check()
        for (owner, _), run in self.held.items():
            if owner == session_id:
                return run.trace().chat_session
        if session_id in self.empty_sessions:
            return ChatSession(session_id, "ACTIVE", 0, START_US, START_US, None)
        raise SessionNotFound(session_id)

    async def session_runs(self, session_id: str, limit: int = 50, cursor: str | None = None) -> Page[RunSummary]:
        await self.session(session_id)
        return self._page([run for (owner, _), run in self.held.items() if owner == session_id], limit, cursor)

    async def recent_runs(self, limit: int = 50, cursor: str | None = None) -> Page[RunSummary]:
        self._check()
        return self._page(list(self.held.values()), limit, cursor)

    async def trace(self, session_id: str, run_id: str) -> RunTrace:
        trace = self._run(session_id, run_id).trace()
        return replace(trace, chat_session=replace(trace.chat_session, status="EXPIRED")) if self.expired else trace

    async def whole(self, session_id: str, run_id: str, events_max: int) -> WholeRun | None:
        trace = await self.trace(session_id, run_id)
        if trace.run.event_count > events_max:
            return None
        return WholeRun(trace, await self.events(session_id, run_id, limit=trace.run.event_count))

    async def overview(self, session_id: str, run_id: str) -> RunTrace:
        return replace(self._run(session_id, run_id).trace(), agent_steps=(), tool_invocations=())

    async def part(
        self, session_id: str, run_id: str, steps_after: int = 0, tools_after: int = 0, limit: int = 50
    ) -> RunPart:
        whole = RunPart.of(await self.trace(session_id, run_id))
        steps, tools = whole.trace.agent_steps, whole.trace.tool_invocations
        steps, tools = steps[steps_after : steps_after + limit], tools[tools_after : tools_after + limit]
        return RunPart(replace(whole.trace, agent_steps=steps, tool_invocations=tools), whole.works)

    async def steps(self, session_id: str, run_id: str, after_no: int = 0, limit: int = 200) -> list[AgentStep]:
        return list(self._run(session_id, run_id).trace().agent_steps[after_no : after_no + limit])

    async def tools(self, session_id: str, run_id: str, after_no: int = 0, limit: int = 200) -> list[ToolInvocation]:
        return list(self._run(session_id, run_id).trace().tool_invocations[after_no : after_no + limit])

    async def contents(self, session_id: str, run_id: str, digests: Iterable[str]) -> dict[str, ContentView]:
        run, wanted = self._run(session_id, run_id), set(digests)
        trace = run.trace()
        rows: list[AgentStep | ToolInvocation] = [*trace.agent_steps, *trace.tool_invocations]
        found = [run.answer, *(each for row in rows for each in (row.input, row.output, row.error))]
        return {each.digest: each for each in found if each is not None and each.digest in wanted}

    async def events(self, session_id: str, run_id: str, after_seq: int = 0, limit: int = 200) -> list[RecordedEvent]:
        return self._run(session_id, run_id).events[after_seq : after_seq + limit]

    async def ledger_id(self) -> str:
        return FAKE_LEDGER

    async def status(self, session_id: str, run_id: str) -> str:
        return self._run(session_id, run_id).trace().run.summary.status

    async def related(self, session_id: str, run_id: str) -> Related:
        shown = self._run(session_id, run_id).trace().run
        own = {one.run_id: one.trace().run for (owner, _), one in self.held.items() if owner == session_id}
        children = [(key, run.summary.status) for key, run in own.items() if run.parent_run_id == run_id]
        later = [(key, run.summary.status) for key, run in own.items() if run.continues_run_id == run_id]
        known = frozenset(own.keys() & {shown.parent_run_id, shown.continues_run_id})
        return Related(known, Runs(tuple(children[:RELATED_MAX]), len(children)), Runs(tuple(later), len(later)))

    async def newest_checkpoint(self) -> StoredCheckpoint | None:
        return None if self.check is None else self.check.checkpoint

    async def check_run(self, session_id: str, run_id: str) -> RunCheck:
        if self.check is None:
            raise unreadable()
        return self.check

    async def system_events(self, after_seq: int = 0, limit: int = 200) -> list[RecordedEvent]:
        self._check()
        return []

    async def on_tree(self, look: Callable[[StoredTree], T]) -> T:
        return look(cast(StoredTree, NothingSigned()))

    async def last_leaf(self) -> int:
        return -1

    def follow(self, after: int | None = None, *, run: tuple[str, str] | None = None) -> "FakeFollower":
        return FakeFollower()

    def _run(self, session_id: str, run_id: str) -> FakeRun:
        self._check()
        run = self.held.get((session_id, run_id))
        if run is None:
            raise RunNotFound(session_id, run_id)
        return run

    def _page(self, runs: list[FakeRun], limit: int, cursor: str | None) -> Page[RunSummary]:
        newest = sorted(runs, key=lambda run: run.started_us, reverse=True)
        return Page(*page_of([run.trace().run.summary for run in newest], limit, cursor))

    def _held(self) -> Sequence[FakeRun]:
        self._check()
        return list(self.held.values())

    def _session_ids(self) -> Sequence[str]:
        return sorted({owner for owner, _ in self.held} | self.empty_sessions)

    def _check(self) -> None:
        if self.fails is not None:
            raise self.fails


class NothingSigned:
    """The tree of a log that nobody ever signed."""

    def newest(self) -> StoredCheckpoint | None:
        return None


class FakeFollower:
    """Of runs in memory nothing is told; whoever follows one has to ask."""

    async def page(self) -> list[tuple[int, RecordedEvent]]:
        await asyncio.Event().wait()
        return []

    def at_hand(self) -> list[tuple[int, RecordedEvent]]:
        return []


def unreadable() -> LedgerError:
    """What a reader raises whose file is gone."""
    return LedgerUnreadable(Path("/secret/place/runs.db"), "cannot be opened")
