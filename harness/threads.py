"""Threads for synchronous operations, which nothing can stop once they run.

They are daemon threads: an operation that never returns must not keep the process from exiting. Its attempt was
recorded as abandoned by then, or is by recovery.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

MAX_TOOL_THREADS = 64
"""Synchronous operations that run at once in one harness; a further one waits for a thread."""


class ToolThreads:
    """Runs each call on a thread of its own, at most `limit` at once, in the order of submission."""

    def __init__(self, limit: int = MAX_TOOL_THREADS) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """The result of `call`, once a thread has run it; it can be cancelled until a thread begins."""
        future: Future[Any] = Future()
        with self._lock:
            if self._running == self._limit:
                self._waiting.append((call, future))
                return future
            self._running += 1
        try:
            threading.Thread(target=self._work, args=(call, future), name="harness-tool", daemon=True).start()
        except BaseException:
            with self._lock:
                self._running -= 1
            raise
        return future

    def _work(self, call: Callable[[], Any], future: Future[Any]) -> None:
        while True:
            _run(call, future)
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                call, future = self._waiting.popleft()


def _run(call: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
        future.set_exception(error)
    else:
        future.set_result(result)
