"""A future as light as what it stands for: an append, of which each boundary has two and a queue a hundred thousand.

One of the standard library makes a lock and two queues for threads that might wait for it, which are most of its weight
and of the time that it takes to make. Hardly any thread ever does: who awaits an append is called back. So they are
made when the first one comes.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

FINISHED = "FINISHED"
# Re-entrant, as a signal handler may come while this thread has it, and keep another promise.
_lock = threading.RLock()
"""Of all promises, for as long as it takes to change one or two attributes."""


class Promise(Future[T]):
    """A future that is completed once, and that whoever waits for it cannot cancel."""

    def __init__(self) -> None:
        # What the inherited methods know of a future, but for its `_condition`.
        self._state = "RUNNING"
        self._result: T | None = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Callable[[Future[T]], object]] = []

    @classmethod
    def kept(cls, result: T) -> Promise[T]:
        """One that is completed from its beginning, as nobody else has it yet."""
        promise = cls()
        promise._state, promise._result = FINISHED, result
        return promise

    def __getattr__(self, name: str) -> Any:
        if name != "_condition":
            raise AttributeError(name)
        made = threading.Condition()
        with _lock:
            return self.__dict__.setdefault("_condition", made)

    def cancel(self) -> bool:
        return False

    def done(self) -> bool:
        return self._state == FINISHED

    def result(self, timeout: float | None = None) -> T:
        if self._state != FINISHED or self._exception is not None:
            return super().result(timeout)
        return self._result  # type: ignore[return-value]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return self._exception if self._state == FINISHED else super().exception(timeout)

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        with _lock:
            if self._state != FINISHED:
                self._done_callbacks.append(fn)
                return
        super().add_done_callback(fn)

    def set_result(self, result: T) -> None:
        self._finish(result, None)

    def set_exception(self, exception: BaseException | None) -> None:
        self._finish(None, exception)

    def _finish(self, result: T | None, exception: BaseException | None) -> None:
        with _lock:
            assert self._state != FINISHED, "a promise is kept once"
            self._result, self._exception = result, exception
            self._state = FINISHED
            condition: threading.Condition | None = self.__dict__.get("_condition")
        # Whoever had it made before looks at the state with it, and has either seen the new one or waits by now.
        if condition is not None:
            with condition:
                for waiter in self._waiters:
                    waiter.add_exception(self) if exception is not None else waiter.add_result(self)
                condition.notify_all()
        self._invoke_callbacks()

    def _invoke_callbacks(self) -> None:
        # As the inherited one, but `SystemExit` from one does not keep the others from hearing either.
        for callback in self._done_callbacks:
            try:
                callback(self)
            except BaseException:
                log.exception("what waited for a promise raised")


def _renew_lock() -> None:
    """In a forked child: another thread may have had the lock, and is not there to give it back."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
