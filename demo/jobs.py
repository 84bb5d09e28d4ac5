"""Work that requests started: bounded in number, and stopped when nobody waits for it any more."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from demo.errors import DemoError
from harness import CancelReason, RunContext

T = TypeVar("T")


class TooManyRuns(DemoError):
    """As many runs as are allowed at once are under way."""

    code = "too_many_runs"


class Job(Generic[T]):
    """One piece of work in a task of its own, and the run it has begun, if it has."""

    def __init__(self, work: Callable[[Callable[[RunContext], object]], Awaitable[T]]) -> None:
        self.run: RunContext | None = None
        self.task: asyncio.Task[T] = asyncio.create_task(self._do(work))

    async def _do(self, work: Callable[[Callable[[RunContext], object]], Awaitable[T]]) -> T:
        return await work(self._started)

    def _started(self, run: RunContext) -> None:
        self.run = run

    async def result(self) -> T:
        """What it comes to; a request that its server cancels stops it."""
        try:
            await asyncio.wait({self.task})
        finally:
            self.stop(CancelReason.SHUTDOWN)
        return self.task.result()

    def stop(self, reason: CancelReason) -> None:
        """Tell the run why, then cancel the task; a job that is done is left as it is."""
        if not self.task.done():
            if self.run is not None:
                self.run.cancellation.signal(reason)
            self.task.cancel()


class Jobs:
    """The jobs of one application."""

    def __init__(self, active_max: int) -> None:
        self._active_max = active_max
        self._active: set[Job[object]] = set()

    def start(self, work: Callable[[Callable[[RunContext], object]], Awaitable[T]]) -> Job[T]:
        """Start `work(started)`, or `TooManyRuns`."""
        if len(self._active) >= self._active_max:
            raise TooManyRuns(f"{self._active_max} runs are under way; try again in a moment")
        job = Job(work)
        self._active.add(job)  # type: ignore[arg-type]
        job.task.add_done_callback(lambda _: self._active.discard(job))
        # Nobody may be left to read an error; it is recorded with the run.
        job.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return job

    async def close(self) -> None:
        """Stop what is under way, and wait until its end is recorded."""
        jobs = list(self._active)
        for job in jobs:
            job.stop(CancelReason.SHUTDOWN)
        await asyncio.gather(*(job.task for job in jobs), return_exceptions=True)
