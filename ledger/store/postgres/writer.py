"""The writer of a ledger on PostgreSQL: runs side by side over several connections, each run in its own order.

What waits for one run goes out together, in one statement. Callers only await futures, and never touch a connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import asyncpg

from harness.journal import Recorded
from ledger.append.deciding import Draft
from ledger.append.front import Front, Job, WriterLimits
from ledger.append.lanes import Waiting, answer
from ledger.loop_thread import LoopThread
from ledger.requests import Requests
from ledger.store.postgres.appends import Appends
from ledger.store.postgres.faults import violated
from ledger.store.postgres.link import Link
from ledger.store.postgres.place import PostgresPlace

log = logging.getLogger(__name__)

T = TypeVar("T")

CONNECTIONS_MAX = 8
"""Statements under way at once."""


@dataclass(slots=True)
class _Lane:
    """What waits for one run."""

    run_id: str | None
    items: deque[Waiting | Job] = field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None
    is_taken: bool = False
    """Whether it is in the queue of lanes, or at work."""


class PostgresWriter(Front):
    """A `harness.journal.Journal` over a pool of connections, in a thread of its own."""

    def __init__(
        self,
        place: PostgresPlace,
        appends: Appends,
        thread: LoopThread,
        requests: Requests,
        limits: WriterLimits,
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_written` is called after each statement, in the ledger's loop."""
        super().__init__(limits, requests, on_written)
        self._place = place
        self._appends = appends
        self._thread = thread
        self._inbox: list[Waiting | Job] = []
        self._is_closed = False
        self._closing: Future[None] | None = None
        # From here on only the thread's loop touches them.
        self._lanes: dict[str | None, _Lane] = {}
        self._queue: asyncio.Queue[_Lane | None] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        self._idle = 0
        self._is_draining = False
        self._drained = asyncio.Event()

    def run(self, job: Callable[[Draft], T], run_ids: Sequence[str] = ()) -> Future[T]:
        """Write what `job` drafts for the one run it looks at, in that run's turn; it may be asked several times."""
        (run_id,) = run_ids or (None,)
        return self._put_job(job, run_id)

    def _put(self, item: Waiting | Job) -> None:
        with self._lock:
            if not self._is_closed:
                self._inbox.append(item)
                if len(self._inbox) == 1:
                    self._thread.loop.call_soon_threadsafe(self._take_in)
                return
        self._refuse(item)

    def _stop(self, timeout_s: float | None) -> None:
        with self._lock:
            self._is_closed = True
            if self._closing is None:
                self._closing = self._thread.call(self._drain())
        try:
            self._closing.result(timeout_s)
        except TimeoutError:
            log.warning("the ledger was left before everything was written")

    def _take_in(self) -> None:
        with self._lock:
            items, self._inbox = self._inbox, []
        for item in items:
            run_id = item.append.run_id if isinstance(item, Waiting) else item.run_id
            lane = self._lanes.setdefault(run_id, _Lane(run_id))
            lane.items.append(item)
            if not lane.is_taken:
                self._schedule(lane)

    def _schedule(self, lane: _Lane) -> None:
        """Put the lane in the queue; in a moment, where no work waits for what it holds."""
        if self._is_draining or any(isinstance(item, Job) or item.append.is_awaited for item in lane.items):
            self._enqueue(lane)
        elif lane.timer is None:
            lane.timer = self._thread.loop.call_later(self._limits.linger_s, self._enqueue, lane)

    def _enqueue(self, lane: _Lane) -> None:
        if lane.timer is not None:
            lane.timer.cancel()
            lane.timer = None
        lane.is_taken = True
        self._queue.put_nowait(lane)
        if self._idle < self._queue.qsize() and len(self._workers) < CONNECTIONS_MAX:
            self._workers.append(self._thread.loop.create_task(self._work()))

    async def _work(self) -> None:
        link = Link(self._place)
        while True:
            self._idle += 1
            lane = await self._queue.get()
            self._idle -= 1
            if lane is None:
                break
            await self._write_next(link, lane)
            lane.is_taken = False
            if lane.items:
                self._schedule(lane)
            else:
                del self._lanes[lane.run_id]
                if self._is_draining and not self._lanes:
                    self._drained.set()
        await link.close()

    async def _write_next(self, link: Link, lane: _Lane) -> None:
        first = lane.items[0]
        if isinstance(first, Job):
            lane.items.popleft()
            answer(first.future, await self._outcome(link, first))
            self._on_written()
            return
        group = self._admitted(self._gather(lane))
        if not group:
            return
        appends = [waiting.append for waiting in group]
        outcome: Sequence[Recorded | Exception] | Exception
        try:
            outcome = await self._appends.append_all(link, appends[0].run_id, appends)
        except Exception as error:  # noqa: BLE001 - it is told to all who wait
            outcome = error
        self._answer(group, outcome)

    def _gather(self, lane: _Lane) -> list[Waiting]:
        """Everything that waits in the lane and fits into one statement."""
        group: list[Waiting] = []
        size_bytes = 0
        while lane.items and len(group) < self._limits.batch_appends_max:
            item = lane.items[0]
            if isinstance(item, Job):
                break
            size_bytes += item.append.size_bytes
            if group and size_bytes > self._limits.batch_bytes_max:
                break
            group.append(item)
            lane.items.popleft()
        return group

    async def _outcome(self, link: Link, item: Job) -> Any:
        try:
            return await self._appends.decide(link, item.action, item.run_id)
        except asyncpg.IntegrityConstraintViolationError as error:
            return violated(error, "a job")
        except Exception as error:  # noqa: BLE001 - it is the caller's to see
            return error

    async def _drain(self) -> None:
        """Write all that has come, and say goodbye."""
        self._is_draining = True
        self._take_in()
        for lane in self._lanes.values():
            if not lane.is_taken:
                self._enqueue(lane)
        if self._lanes:
            await self._drained.wait()
        for _ in self._workers:
            self._queue.put_nowait(None)
        await asyncio.gather(*self._workers)
