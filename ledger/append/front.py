"""What every writer is to those who submit: room, order, answers and an end. How it writes is the engine's affair."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from harness.errors import LedgerUnavailable
from harness.journal import Permit, Recorded, Submission
from harness.promise import Promise
from ledger.append.lanes import Lanes, Waiting, answer, lost_before, refused_in_child
from ledger.append.permits import Permits
from ledger.append.prepared import prepare
from ledger.failpoints import reached
from ledger.measures import Measures, Meter
from ledger.requests import OnRequest, Requests

log = logging.getLogger(__name__)

CROWDED_APPENDS = 2_048
"""Where more wait, what comes keeps only its bytes meanwhile. All boundaries under way have no more, with both ends."""


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


@dataclass(frozen=True, slots=True)
class Job:
    """Something else than an append that has its turn in the queue."""

    action: Callable[..., Any]
    """What it is called with is the engine's affair."""
    future: Future[Any]
    run_id: str | None = None
    """The run whose turn it takes, where runs have turns of their own."""


class Front(ABC):
    """A `harness.journal.Journal` up to the queue; an engine takes what is put there, and says what became of it.

    Every method without an underscore may be called from any thread.
    """

    def __init__(self, limits: WriterLimits, requests: Requests, on_written: Callable[[], None]) -> None:
        """`on_written` is called, where the engine writes, after each transaction."""
        self._limits = limits
        self._requests = requests
        self._on_written = on_written
        self._permits = Permits(permits_max=limits.permits_max, bytes_max=limits.queue_bytes_max)
        # A collection may come while this thread has it, and end a run.
        self._lock = threading.RLock()
        self._broken = Lanes(limits.broken_runs_max)
        self._meter = Meter()
        self._on_ended: Callable[[], None] = lambda: None
        self._process_id = os.getpid()
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
        future: Future[Recorded] = Promise()
        if self._permits.add_bytes(append.size_bytes) > CROWDED_APPENDS:
            append.shrink()
        self._put(Waiting(append, future, perf_counter()))
        return future

    def watch(self, run_id: str, on_request: OnRequest) -> Callable[[], None]:
        """As `harness.journal.Journal`."""
        return self._requests.watch(run_id, on_request)

    def watch_ends(self, on_ended: Callable[[], None]) -> None:
        """Call `on_ended`, where the engine writes, after each transaction in which runs have ended."""
        self._on_ended = on_ended

    def measures(self) -> Measures:
        """What was counted since the ledger was opened."""
        return self._meter.measures(self._permits.load())

    def close(self, timeout_s: float | None = None) -> None:
        """Write what was submitted, then stop; blocks. Whatever comes later fails."""
        if self._is_forked():
            return
        atexit.unregister(self._flush_at_exit)
        self._permits.close()
        self._stop(timeout_s)

    @abstractmethod
    def _put(self, item: Waiting | Job) -> None:
        """Let the item wait for its turn, or `_refuse` it."""

    @abstractmethod
    def _stop(self, timeout_s: float | None) -> None:
        """Write what waits, then stop; blocks."""

    def _put_job(self, action: Callable[..., Any], run_id: str | None = None) -> Future[Any]:
        if self._is_forked():
            return refused_in_child()
        future: Future[Any] = Promise()
        self._put(Job(action, future, run_id))
        return future

    def _refuse(self, item: Waiting | Job) -> None:
        """It came after the end."""
        if isinstance(item, Waiting):
            self._permits.remove_bytes(item.append.size_bytes)
        answer(item.future, LedgerUnavailable("the ledger is closed"))

    def _admitted(self, group: Sequence[Waiting]) -> list[Waiting]:
        """Those of the group whose runs have their turn; the others are answered. Only the engine's thread asks."""
        admitted: list[Waiting] = []
        for waiting in group:
            if self._broken.admits(waiting.append):
                admitted.append(waiting)
                continue
            self._permits.remove_bytes(waiting.append.size_bytes)
            self._meter.failed(lost := lost_before())
            answer(waiting.future, lost)
        return admitted

    def _answer(self, group: Sequence[Waiting], outcome: Sequence[Recorded | Exception] | Exception) -> None:
        """Tell those of one transaction what became of them; an error is that nothing was stored."""
        results: Sequence[Recorded | Exception]
        if isinstance(outcome, Exception):
            if not isinstance(outcome, LedgerUnavailable):
                log.error("the ledger's writer failed", exc_info=outcome)
            problem = outcome.problem if isinstance(outcome, LedgerUnavailable) else type(outcome).__name__
            results = [LedgerUnavailable(problem) for _ in group]
            self._broken.lose(waiting.append for waiting in group)
        else:
            results = outcome
        reached("before acknowledgement")
        self._permits.remove_bytes(sum([waiting.append.size_bytes for waiting in group]), len(group))
        self._meter.appended(group, results)
        self._on_written()
        # Last of all, as whoever wakes up has to wait for this thread to be done.
        for waiting, result in zip(group, results, strict=True):
            answer(waiting.future, result)
        if any(waiting.append.ends_run for waiting in group):
            self._on_ended()

    def _is_forked(self) -> bool:
        # The thread is the parent's, and its locks may have been held when the process was forked.
        return os.getpid() != self._process_id

    def _flush_at_exit(self) -> None:
        self.close(self._limits.exit_timeout_s)
