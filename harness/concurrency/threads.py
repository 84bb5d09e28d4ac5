"""Threads for synchronous operations, which nothing can stop once they run.

They are daemon threads: an operation that never returns must not keep the process from exiting. Its attempt was
recorded as abandoned by then, or is by recovery.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from harness.errors import OtherProcess

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
        self._process_id: int | None = None
        self._threads = 0
        self._jobs: deque[Job] = deque()
        """Waiting for a thread: there are any only while all threads are busy."""
        self._idle: list[SimpleQueue[Job]] = []
        """Where each idle thread waits for its next job."""

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """The result of `call`, once a thread has run it; it can be cancelled until a thread begins.

        `OtherProcess` after a fork, which has none of the threads.
        """
        if self._process_id not in (None, os.getpid()):
            raise OtherProcess
        # Before the lock, which a fork in this moment would leave locked in the child.
        self._process_id = os.getpid()
        job: Job = (call, Future())
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
            elif self._threads < self._limit:
                threading.Thread(target=self._work, args=(job,), name="harness-tool", daemon=True).start()
                self._threads += 1
            else:
                self._jobs.append(job)
        return job[1]

    def _work(self, job: Job | None) -> None:
        while job is not None:
            _run(*job)
            del job
            job = self._next()

    def _next(self) -> Job | None:
        """The thread's next job; None if there was none for so long that it is to end."""
        place: SimpleQueue[Job] = SimpleQueue()
        with self._lock:
            if self._jobs:
                return self._jobs.popleft()
            self._idle.append(place)
        try:
            return place.get(timeout=self._idle_s)
        except Empty:
            with self._lock:
                if place in self._idle:
                    self._idle.remove(place)
                    self._threads -= 1
                    return None
        return place.get()


def _run(call: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
        future.set_exception(error)
    else:
        future.set_result(result)
