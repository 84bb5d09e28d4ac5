"""A lock under which a run decides, and after which it tells others what was decided."""

from __future__ import annotations

import threading
from collections.abc import Callable


class RunLock:
    """A re-entrant lock; what is put off under it happens as soon as its holder has let go of it entirely.

    Callbacks of applications must never run under a run's lock: one that waits for a thread which needs the same run
    would wait for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._put_off: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        due = None
        if self._put_off and self._depth == 0:
            due, self._put_off = self._put_off, []
        self._lock.release()
        for action in due or ():
            action()

    def put_off(self, action: Callable[[], None]) -> None:
        """Do `action` once the lock is free again; call with the lock held."""
        self._put_off.append(action)
