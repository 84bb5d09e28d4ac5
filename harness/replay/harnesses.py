"""Harnesses for code that is executed again: as any other, over another engine, and on the loop of the re-execution."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from harness.block.opening import Opening
from harness.block.run import RunBlock
from harness.calls import Calls
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import HarnessClosed
from harness.replay.director import Director
from harness.replay.loop import ReplayLoop
from harness.run import Harness
from harness.statements import Statements
from harness.sync.harness import SyncHarness
from harness.sync.loop_thread import LoopThread, refuse_in_a_loop

T = TypeVar("T")


class ReplayHarness(Harness):
    """Everything is as in any harness, but for the engine."""

    def __init__(self, engine: Engine, director: Director) -> None:
        Calls.__init__(self, engine)
        self._director = director

    def run(self, **fields: Any) -> RunBlock:
        return _ReplayBlock(self._engine, super().run(**fields)._opening, self._director)


class ReplaySyncHarness(SyncHarness):
    """The same for plain threads."""

    def __init__(self, engine: Engine, director: Director, loop: ReplayLoop) -> None:
        Statements.__init__(self, engine)
        self._harness = ReplayHarness(engine, director)
        self._loop_thread = _ReplayThread(director, loop)


class _ReplayBlock(RunBlock):
    def __init__(self, engine: Engine, opening: Opening, director: Director) -> None:
        super().__init__(engine, opening)
        self._director = director

    async def __aenter__(self) -> RunContext:
        run = await super().__aenter__()
        self._director.opened(run.live)
        return run


class _ReplayThread(LoopThread):
    """Waits for work in the loop of the re-execution, which then knows that this thread has come to a stop."""

    def __init__(self, director: Director, loop: ReplayLoop) -> None:
        super().__init__()
        self._director = director
        self._replay_loop = loop

    def enter(self) -> None:
        refuse_in_a_loop()

    def leave(self) -> None:
        """It is not this thread's loop."""

    def close(self) -> None:
        """Neither here."""

    def wait(self, start: Callable[[], Awaitable[T]], *, may_cancel: bool = True) -> T:
        if may_cancel and self._director.is_over:
            raise HarnessClosed
        work, done = start(), Future[T]()
        self._replay_loop.call_soon_threadsafe(self._begin_work, work, done)
        return done.result()

    def _begin_work(self, work: Awaitable[T], done: Future[T]) -> None:
        self._replay_loop.jobs_count -= 1
        asyncio.ensure_future(work).add_done_callback(lambda task: self._end_work(task, done))

    def _end_work(self, task: asyncio.Future[T], done: Future[T]) -> None:
        self._replay_loop.jobs_count += 1
        if task.cancelled():
            done.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(task.result())
