"""What one harness brings to every run: clocks, ids, the journal, threads, and its policies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from harness.clock import MonotonicClock, SystemMonotonicClock, SystemWallClock, WallClock
from harness.content import CapturePolicy
from harness.ids import IdSource, RandomIds
from harness.journal import Journal, Permit
from harness.retry import Classifier
from harness.waiting import result_of

MAX_TOOL_THREADS = 64
"""Synchronous operations that run at once in one harness; a further one waits for a thread."""


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_TOOL_THREADS, thread_name_prefix="harness")


@dataclass(frozen=True, slots=True)
class Engine:
    """Everything that the runs of one harness share; none of it belongs to a run."""

    journal: Journal
    monotonic_clock: MonotonicClock = field(default_factory=SystemMonotonicClock)
    wall_clock: WallClock = field(default_factory=SystemWallClock)
    ids: IdSource = field(default_factory=RandomIds)
    capture: CapturePolicy = field(default_factory=CapturePolicy)
    classifiers: tuple[Classifier, ...] = ()
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    close_timeout_s: float = 10.0
    """How long the end of a run may take to become durable."""
    permit_timeout_s: float = 10.0
    """How long a boundary waits for room in the journal's queue."""
    threads: ThreadPoolExecutor = field(default_factory=_threads)

    async def permit(self, remaining_s: float) -> Permit:
        """Room for one boundary; `LedgerUnavailable` if there is none in time."""
        return await result_of(self.journal.request_permit(min(self.permit_timeout_s, remaining_s)))
