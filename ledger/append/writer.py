"""The ledger's one writer: a thread that takes what is waiting and makes it durable, in the order it came.

Appends that wait together share one transaction, so the next group forms while the last one commits, and an idle
ledger adds no delay. The writer knows nothing of the database: `Store` does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from harness.errors import LedgerUnavailable
from harness.journal import Recorded
from ledger.append.front import Front, Job, WriterLimits
from ledger.append.lanes import Waiting, answer
from ledger.append.prepared import Append
from ledger.requests import Requests
from ledger.store.batch import Batch

log = logging.getLogger(__name__)

T = TypeVar("T")


class Store(Protocol):
    """What the writer needs of a database; one thread calls it."""

    def append_all(self, appends: Sequence[Append]) -> list[Recorded | Exception]:
        """What became of each append; raises `LedgerUnavailable` if nothing was stored."""

    def run(self, job: Callable[[Batch], T], run_ids: Sequence[str] = ()) -> T:
        """Whatever `job` does, in a transaction of its own; `run_ids` are the runs that it looks at."""

    def tidy(self, *, is_idle: bool) -> bool:
        """A moment between two transactions, `is_idle` if nothing is waiting; whether nothing is left for the next."""

    def close(self) -> None:
        """Nothing more will come."""


_Item = Waiting | Job | None


class Writer(Front):
    """A `harness.journal.Journal` whose submissions one thread writes."""

    def __init__(
        self,
        store: Store,
        limits: WriterLimits,
        requests: Requests | None = None,
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_written` is called, in the writer's thread, after each transaction."""
        super().__init__(limits, requests or Requests(), on_written)
        self._store = store
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._closing = False
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="ledger-writer", daemon=True)
        self._thread.start()

    def run(self, job: Callable[[Batch], T], run_ids: Sequence[str] = ()) -> Future[T]:
        """Run `job` in a write transaction of its own, in turn; `run_ids` are the runs that it looks at."""
        return self.call(lambda: self._store.run(job, run_ids))

    def call(self, action: Callable[[], T]) -> Future[T]:
        """Call `action` in the writer's thread, in turn and outside any transaction."""
        return self._put_job(action)

    def _put(self, item: Waiting | Job) -> None:
        with self._lock:
            if not self._stopped:
                self._queue.put(item)
                return
        self._refuse(item)

    def _stop(self, timeout_s: float | None) -> None:
        with self._lock:
            if not self._closing:
                self._closing = True
                self._queue.put(None)
        self._thread.join(timeout_s)

    def _work(self) -> None:
        pending: _Item = None
        is_tidy = True
        while True:
            if pending is None:
                try:
                    pending = self._queue.get(timeout=None if is_tidy else self._limits.rest_after_s)
                except Empty:
                    is_tidy = self._tidy(is_idle=True)
                    continue
                if pending is None:
                    break
                is_tidy = False
            if isinstance(pending, Job):
                self._run(pending)
                pending = None
                continue
            group, pending, is_last = self._gather(pending)
            self._write(group)
            self._tidy(is_idle=False)
            if is_last:
                break
        self._finish()

    def _gather(self, first: Waiting) -> tuple[list[Waiting], _Item, bool]:
        """Everything that waits and fits with `first`; the next item if it does not; whether the end was seen."""
        group, size_bytes, is_awaited = [first], first.append.size_bytes, first.append.is_awaited
        until_s = time.monotonic() + self._limits.linger_s
        while len(group) < self._limits.batch_appends_max:
            pause_s = 0.0 if is_awaited else until_s - time.monotonic()
            try:
                item = self._queue.get(timeout=pause_s) if pause_s > 0 else self._queue.get_nowait()
            except Empty:
                return group, None, False
            if item is None:
                return group, None, True
            if isinstance(item, Job):
                return group, item, False
            size_bytes += item.append.size_bytes
            if size_bytes > self._limits.batch_bytes_max:
                return group, item, False
            group.append(item)
            is_awaited = is_awaited or item.append.is_awaited
        return group, None, False

    def _write(self, group: list[Waiting]) -> None:
        taken = self._admitted(group)
        if not taken:
            return
        outcome: Sequence[Recorded | Exception] | Exception
        try:
            outcome = self._store.append_all([waiting.append for waiting in taken])
        except Exception as error:  # noqa: BLE001 - it is told to all who wait
            outcome = error
        self._answer(taken, outcome)

    def _tidy(self, *, is_idle: bool) -> bool:
        """Whether that is done with; while others are writing it is put off."""
        try:
            return self._store.tidy(is_idle=is_idle)
        except LedgerUnavailable:
            log.debug("others are writing: tidying the ledger is put off")
            return False
        except Exception:
            log.exception("the ledger could not be tidied")
        return True

    def _run(self, item: Job) -> None:
        try:
            result = item.action()
        except BaseException as error:  # noqa: BLE001 - it is the caller's to see, and ends no thread
            result = error
        answer(item.future, result)
        self._on_written()

    def _finish(self) -> None:
        with self._lock:
            self._stopped = True
        while True:
            try:
                item = self._queue.get_nowait()
            except Empty:
                break
            if item is not None:
                self._refuse(item)
        self._store.close()
