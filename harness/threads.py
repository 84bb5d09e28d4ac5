"""Threads for synchronous operations, which nothing can stop once they run.

They are daemon threads: an operation that never returns must not keep the process from exiting. Its attempt was
recorded as abandoned by then, or is by recovery.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

MAX_TOOL_THREADS = 64
"""Synchronous operations that run at once in one harness; a further one waits for a thread."""

Job: TypeAlias = tuple[Callable[[], Any], Future[Any]]


class ToolThreads:
    """Runs each call on a thread, at most `limit` at once, in the order of submission.

    A thread that has nothing to do for `idle_s` seconds ends.
    """

    def __init__(self, limit: int = MAX_TOOL_THREADS, *, idle_s: float = 5.0) -> None:
        self._limit = limit
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._waiting = 0
        self._threads = 0
        self._idle = 0

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """The result of `call`, once a thread has run it; it can be cancelled until a thread begins."""
        future: Future[Any] = Future()
        with self._lock:
            if self._waiting >= self._idle and self._threads < self._limit:
                threading.Thread(target=self._work, name="harness-tool", daemon=True).start()
                self._threads += 1
            self._waiting += 1
        self._jobs.put((call, future))
        return future

    def _work(self) -> None:
        while (job := self._next()) is not None:
            _run(*job)
            del job

    def _next(self) -> Job | None:
        """The job that has waited longest; None if there was none for so long that this thread is to end."""
        with self._lock:
            self._idle += 1
        while True:
            try:
                job = self._jobs.get(timeout=self._idle_s)
            except Empty:
                job = None
            with self._lock:
                if job is None and self._waiting >= self._idle:
                    continue  # A job is on its way, and no other thread is free for it.
                self._idle -= 1
                if job is None:
                    self._threads -= 1
                else:
                    self._waiting -= 1
                return job


def _run(call: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
        future.set_exception(error)
    else:
        future.set_result(result)
