"""An event loop on a daemon thread of its own: plain threads have work done in it, and wait for the result."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from harness.errors import HarnessClosed, OtherProcess, RunningLoop

T = TypeVar("T")
log = logging.getLogger(__name__)

JOIN_TIMEOUT_S = 10.0
"""How long closing waits for the thread, which first cancels what applications left running in the loop."""


def refuse_in_a_loop() -> None:
    """`RunningLoop` on a thread whose event loop would be kept from turning, if this waited."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RunningLoop


class LoopThread:
    """Started when it is first used, in the one process that it then belongs to: no thread outlives a fork.

    It does not end while anybody waits for it, or has entered it to wait more than once.
    """

    def __init__(self) -> None:
        # A collection may come while this thread has it, and leave another run.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process_id: int | None = None
        self._users = 0
        self._is_closed = False

    def enter(self) -> None:
        """Keep the thread until `leave`.

        `RunningLoop` on the thread of an event loop, `HarnessClosed` after `close`, `OtherProcess` after a fork.
        """
        refuse_in_a_loop()
        self._take(is_new=True)

    def leave(self) -> None:
        """Let the thread go; once for each `enter`."""
        if self.is_here:
            with self._lock:
                self._users -= 1
                self._stop_if_unused()

    def close(self) -> None:
        """Let nobody enter any more. The thread ends now, or once the last who entered has left."""
        if not self.is_here:
            return
        with self._lock:
            self._is_closed = True
            self._stop_if_unused()
            ending = self._thread if self._loop is None else None
        if ending is not None and ending is not threading.current_thread():
            ending.join(JOIN_TIMEOUT_S)

    @property
    def is_here(self) -> bool:
        """Whether this is the process that the thread belongs to, or it belongs to none yet."""
        return self._process_id in (None, os.getpid())

    def wait(self, start: Callable[[], Awaitable[T]], *, may_cancel: bool = True) -> T:
        """The result of what `start` returns, awaited in the loop; `start` itself is called here, by who waits.

        What interrupts the waiting thread, such as KeyboardInterrupt, cancels the work if it may, and is raised once
        that has ended. A second interruption does not wait for it.
        """
        loop = self._take()
        try:
            return _wait(loop, start(), may_cancel)
        finally:
            self.leave()

    def _take(self, *, is_new: bool = False) -> asyncio.AbstractEventLoop:
        if not self.is_here:
            raise OtherProcess
        # Before the lock, which a fork in this moment would leave locked in the child.
        self._process_id = os.getpid()
        if threading.current_thread() is self._thread:
            raise RunningLoop
        with self._lock:
            if self._is_closed and (is_new or self._loop is None):
                raise HarnessClosed
            loop = self._loop = self._loop or self._begin()
            self._users += 1
            return loop

    def _begin(self) -> asyncio.AbstractEventLoop:
        begun: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=_turn, args=(begun,), name="harness-loop", daemon=True)
        self._thread.start()
        loop = begun.result()
        # Who forgets to close does not keep the thread.
        weakref.finalize(self, _stop, loop).atexit = False
        return loop

    def _stop_if_unused(self) -> None:
        if self._is_closed and not self._users and self._loop is not None:
            _stop(self._loop)
            self._loop = None


def _turn(begun: Future[asyncio.AbstractEventLoop]) -> None:
    """The thread: turn a loop until it is told to stop; then cancel and await what is left in it."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        begun.set_result(loop)
        while True:
            try:
                loop.run_forever()
            except BaseException as error:  # noqa: BLE001 - SystemExit in a task leaves the loop, but ends no thread
                log.warning("the loop of a harness goes on after %s", type(error).__name__)
            else:
                return


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # It has closed.
        loop.call_soon_threadsafe(loop.stop)


def _wait(loop: asyncio.AbstractEventLoop, work: Awaitable[T], may_cancel: bool) -> T:
    done: Future[T] = Future()
    tasks: list[asyncio.Future[T]] = []

    def begin() -> None:
        tasks.append(asyncio.ensure_future(work))
        tasks[0].add_done_callback(lambda task: _hand_over(task, done))

    def be_interrupted() -> None:
        if not tasks:
            begin()
        if may_cancel:
            tasks[0].cancel()

    try:
        loop.call_soon_threadsafe(begin)
        return done.result()
    except BaseException:
        if not done.done():
            loop.call_soon_threadsafe(be_interrupted)
            wait([done])
        raise


def _hand_over(task: asyncio.Future[T], done: Future[T]) -> None:
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        done.set_result(task.result())
    else:
        done.set_exception(error)
