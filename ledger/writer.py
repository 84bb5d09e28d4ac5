"""The ledger's one writer: a thread that takes what is waiting and makes it durable, in the order it came.

Appends that wait together share one transaction, so the next group forms while the last one commits, and an idle
ledger adds no delay. The writer knows nothing of the database: `Store` does.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from harness.errors import LedgerUnavailable
from harness.journal import Permit, Recorded, Submission
from ledger.lanes import Lanes, Waiting, answer, lost_before, refused_in_child
from ledger.measures import Measures, Meter
from ledger.permits import Permits
from ledger.prepared import Append, prepare
from ledger.requests import OnRequest, Requests
from ledger.store.batch import Batch

log = logging.getLogger(__name__)

T = TypeVar("T")

CROWDED_APPENDS = 512
"""Where more wait, what comes keeps only its bytes meanwhile."""


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """How much the writer holds at once."""

    permits_max: int = 1_024
    """Boundaries under way; a further one waits."""
    queue_bytes_max: int = 64 * 1024 * 1024
    """Bytes waiting to be written; above it no new boundary is let in, while ends still are."""
    batch_appends_max: int = 256
    """Appends in one transaction."""
    batch_bytes_max: int = 8 * 1024 * 1024
    """Bytes in one transaction, unless one append alone has more."""
    broken_runs_max: int = 10_000
    """Runs remembered for having lost a submission; an older one's events are still checked by the fold."""
    linger_s: float = 0.005
    """How long what no work waits for may be held back, to share the commit of what comes next."""
    rest_after_s: float = 0.5
    """Idle time after which the store may tidy up."""
    exit_timeout_s: float = 5.0
    """How long a process that ends without closing waits for what it submitted."""


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


@dataclass(frozen=True, slots=True)
class _Job:
    action: Callable[[], Any]
    future: Future[Any]


_Item = Waiting | _Job | None


class Writer:
    """A `harness.journal.Journal` whose submissions one thread writes."""

    def __init__(
        self,
        store: Store,
        limits: WriterLimits,
        requests: Requests | None = None,
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_written` is called, in the writer's thread, after each transaction."""
        self._store = store
        self._requests = requests or Requests()
        self._on_written = on_written
        self._limits = limits
        self._permits = Permits(permits_max=limits.permits_max, bytes_max=limits.queue_bytes_max)
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        # A collection may come while this thread has it, and end a run.
        self._lock = threading.RLock()
        self._closing = False
        self._stopped = False
        self._lanes = Lanes(limits.broken_runs_max)
        self._meter = Meter()
        self._process_id = os.getpid()
        self._thread = threading.Thread(target=self._work, name="ledger-writer", daemon=True)
        self._thread.start()
        atexit.register(self._flush_at_exit)

    def request_permit(self, timeout_s: float) -> Future[Permit]:
        """As `harness.journal.Journal`."""
        if self._is_forked():
            return refused_in_child()
        return self._permits.request(timeout_s)

    def submit(self, submission: Submission, *, seq_expected: int | None = None) -> Future[Recorded]:
        """As `harness.journal.Journal`. With `seq_expected`, `AppendConflict` unless the run is at that position."""
        append = prepare(submission, seq_expected=seq_expected)
        if self._is_forked():
            return refused_in_child()
        future: Future[Recorded] = Future()
        future.set_running_or_notify_cancel()
        if self._permits.add_bytes(append.size_bytes) > CROWDED_APPENDS:
            append.shrink()
        self._put(Waiting(append, future))
        return future

    def watch(self, run_id: str, on_request: OnRequest) -> Callable[[], None]:
        """As `harness.journal.Journal`."""
        return self._requests.watch(run_id, on_request)

    def run(self, job: Callable[[Batch], T], run_ids: Sequence[str] = ()) -> Future[T]:
        """Run `job` in a write transaction of its own, in turn; `run_ids` are the runs that it looks at."""
        return self.call(lambda: self._store.run(job, run_ids))

    def call(self, action: Callable[[], T]) -> Future[T]:
        """Call `action` in the writer's thread, in turn and outside any transaction."""
        if self._is_forked():
            return refused_in_child()
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        self._put(_Job(action, future))
        return future

    def measures(self) -> Measures:
        """What was counted since the ledger was opened."""
        return self._meter.measures(self._permits.load())

    def close(self, timeout_s: float | None = None) -> None:
        """Write what was submitted, then stop; blocks. Whatever comes later fails."""
        if self._is_forked():
            return
        atexit.unregister(self._flush_at_exit)
        self._permits.close()
        with self._lock:
            if not self._closing:
                self._closing = True
                self._queue.put(None)
        self._thread.join(timeout_s)

    def _is_forked(self) -> bool:
        # The thread is the parent's, and its locks may have been held when the process was forked.
        return os.getpid() != self._process_id

    def _flush_at_exit(self) -> None:
        self.close(self._limits.exit_timeout_s)

    def _put(self, item: Waiting | _Job) -> None:
        with self._lock:
            if not self._stopped:
                self._queue.put(item)
                return
        self._refuse(item)

    def _refuse(self, item: Waiting | _Job) -> None:
        if isinstance(item, Waiting):
            self._permits.remove_bytes(item.append.size_bytes)
        answer(item.future, LedgerUnavailable("the ledger is closed"))

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
            if isinstance(pending, _Job):
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
            if isinstance(item, _Job):
                return group, item, False
            size_bytes += item.append.size_bytes
            if size_bytes > self._limits.batch_bytes_max:
                return group, item, False
            group.append(item)
            is_awaited = is_awaited or item.append.is_awaited
        return group, None, False

    def _write(self, group: list[Waiting]) -> None:
        taken = [waiting for waiting in group if self._admit(waiting)]
        if not taken:
            return
        appends = [waiting.append for waiting in taken]
        results: Sequence[Recorded | Exception]
        try:
            results = self._store.append_all(appends)
        except Exception as error:
            if not isinstance(error, LedgerUnavailable):
                log.exception("the ledger's writer failed")
            problem = error.problem if isinstance(error, LedgerUnavailable) else type(error).__name__
            results = [LedgerUnavailable(problem) for _ in taken]
            self._lanes.lose(appends)
        for waiting, result in zip(taken, results, strict=True):
            self._permits.remove_bytes(waiting.append.size_bytes)
            answer(waiting.future, result)
        self._meter.appended(taken, results)
        self._on_written()

    def _admit(self, waiting: Waiting) -> bool:
        if self._lanes.admits(waiting.append):
            return True
        self._permits.remove_bytes(waiting.append.size_bytes)
        self._meter.failed(lost := lost_before())
        answer(waiting.future, lost)
        return False

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

    def _run(self, item: _Job) -> None:
        try:
            result = item.action()
        except Exception as error:  # noqa: BLE001 - it is the caller's to see
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
