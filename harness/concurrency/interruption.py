"""What a task awaits is stopped from within the harness, and that is never taken for a cancellation from outside.

A crossing is interrupted by cancelling its task, as `asyncio.timeout` does it. Whether a `CancelledError` that comes
out was asked for here alone is told by the count of the task's requests, right on every Python from 3.11.0 on. A
request from outside always wins: it goes on unchanged (SPEC H3, CASES 18).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from harness.concurrency.lock import RunLock
from harness.errors import AttemptTimedOut
from harness.retry import FailureType, TypedFailure

DEADLINE_PASSED = TypedFailure(FailureType.DEADLINE_EXCEEDED, "stopped at the deadline")
RUN_STOPPED = TypedFailure(FailureType.CANCELLED, "stopped with the run")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a crossing is interrupted."""

    failure: Exception
    """As what the attempt in flight is recorded."""
    error: Callable[[], Exception]
    """Does what is due, and gives the error for the caller."""


class InFlight(Protocol):
    """What a run interrupts when it ends, and waits for."""

    @property
    def owner(self) -> object:
        """The task that is inside, if one is; who owns something in flight is not interrupted by himself."""

    @property
    def thread_id(self) -> int | None:
        """The thread that works for it at present, beside its task."""

    @property
    def is_lost(self) -> bool:
        """Whether nobody can interrupt it any more, as its loop has closed."""

    def interrupt(self, cause: Cause) -> None:
        """Interrupt as soon as its loop turns; safe from every thread."""


class Interrupted(BaseException):
    """Thrown where an operation must not go on; no `except Exception` of a client makes a retry of it."""

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        super().__init__(str(cause.failure))


class Interruption:
    """`with` it, the current task can be interrupted until the block is left.

    If the block ends in a `CancelledError` that was asked for here alone, the cause's error is raised in its place.
    """

    __slots__ = ("_cause", "_loop", "_others", "_outside", "_requests", "_task", "_timers", "thread_id")

    def __init__(self, others: Interruptions) -> None:
        self.thread_id: int | None = None
        """The thread that works for this crossing at present, beside its task."""
        self._others = others
        self._cause: Cause | None = None
        self._requests = 0
        self._timers: list[asyncio.TimerHandle] = []

    def __enter__(self) -> Interruption:
        task = asyncio.current_task()
        assert task is not None, "a boundary is crossed in a task"
        # A request that was made before, and has not been thrown yet, comes out in here.
        self._outside = task.cancelling() - bool(getattr(task, "_must_cancel", False))
        self._task: asyncio.Task[object] | None = task
        self._loop = task.get_loop()
        self._others.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._others.remove(self)
        self.disarm()
        cause, self._task = self.take(error), None
        if cause is not None and not isinstance(error, Interrupted):
            raise cause.error() from error

    @property
    def owner(self) -> asyncio.Task[object] | None:
        """The task that is inside; None once it has left."""
        return self._task

    @property
    def is_lost(self) -> bool:
        return self._loop.is_closed()

    @property
    def is_cancelling(self) -> bool:
        """Whether the task was asked to stop, from here or from outside; if not, a `CancelledError` was made within."""
        return self._task is not None and self._task.cancelling() > self._outside

    def arm(self, *bounds: tuple[float, Cause]) -> None:
        """Interrupt in so many seconds, for each bound; those of an earlier call are taken back."""
        self.disarm()
        self._timers = [self._loop.call_later(delay_s, self._stop, cause) for delay_s, cause in bounds]

    def disarm(self) -> None:
        """Take all timers back."""
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def interrupt(self, cause: Cause) -> None:
        with contextlib.suppress(RuntimeError):  # The loop may have closed.
            self._loop.call_soon_threadsafe(self._stop, cause)

    def take(self, error: BaseException | None) -> Cause | None:
        """The cause, if `error` is a cancellation that was asked for here alone, or was thrown as `Interrupted`.

        What was asked for here is settled.
        """
        cause, self._cause = self._cause, None
        is_alone = self._settle()
        if isinstance(error, asyncio.CancelledError):
            return cause if is_alone and self._task is not None else None
        return _thrown(error)

    def _settle(self) -> bool:
        """Take back what was asked for here; whether that was all."""
        asked, self._requests = self._requests, 0
        left = self._outside
        for _ in range(asked if self._task is not None else 0):
            left = self._task.uncancel()  # type: ignore[union-attr]
        return left <= self._outside

    def _stop(self, cause: Cause) -> None:
        # The loop calls this between two steps of the task, which is therefore inside the block, and waits.
        if self._task is None:
            return
        before = self._cause
        # Who is stopping is left to it; but one that has swallowed its own time-out is told of the end of its run.
        if before is None or isinstance(before.failure, AttemptTimedOut):
            self._requests += 1
            self._task.cancel()
        if before is None or not isinstance(cause.failure, AttemptTimedOut):
            self._cause = cause


class Interruptions:
    """What is in flight in one run. Any thread may use it."""

    __slots__ = ("_lock", "_open", "_waiting")

    def __init__(self, lock: RunLock) -> None:
        self._lock = lock
        self._open: dict[InFlight, None] = {}
        self._waiting: tuple[object, Future[None]] | None = None

    def open(self) -> Interruption:
        """One to enter."""
        return Interruption(self)

    def add(self, each: InFlight) -> None:
        # Without the lock: what comes after the run was told to stop sees that at its own next check.
        self._open[each] = None

    def remove(self, each: InFlight) -> None:
        self._open.pop(each, None)
        # Without the lock: who waits says so before he looks, so that one of both sees the other.
        if self._waiting is not None:
            self._lock.when_free(self._tell_if_all_left)

    def interrupt_others(self, cause: Cause) -> None:
        """Interrupt everything but what belongs to the task or thread that says so."""
        here, thread_id = _current_task(), threading.get_ident()
        with self._lock:
            told: set[object] = {here}
            for each in self._others(here):
                # A crossing within a crossing is stopped by what stops the outer one, which came first.
                if each.owner not in told and each.thread_id != thread_id:
                    told.add(each.owner)
                    each.interrupt(cause)

    def all_left(self) -> Future[None] | None:
        """Completes once nothing is in flight but in this task; None if nothing is."""
        left: Future[None] = Future()
        self._waiting = _current_task(), left
        self._tell_if_all_left()
        return None if left.done() else left

    def _tell_if_all_left(self) -> None:
        with self._lock:
            if self._waiting is not None and next(self._others(self._waiting[0]), None) is None:
                self._waiting[1].set_result(None)
                self._waiting = None

    def _others(self, here: object) -> Iterator[InFlight]:
        return (each for each in list(self._open) if each.owner is not here and not each.is_lost)


def _thrown(error: BaseException | None) -> Cause | None:
    """The cause that was thrown within an operation, perhaps in one of its own tasks."""
    if isinstance(error, BaseExceptionGroup):
        return next((cause for each in error.exceptions if (cause := _thrown(each)) is not None), None)
    return error.cause if isinstance(error, Interrupted) else None


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # This thread runs no loop.
        return None
