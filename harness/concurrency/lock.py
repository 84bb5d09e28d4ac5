"""A lock under which a run decides, and after which it tells others what was decided."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class RunLock:
    """A re-entrant lock; what is put off under it happens as soon as its holder has let go of it entirely.

    Callbacks of applications must never run under a run's lock: one that waits for a thread which needs the same run
    would wait for ever. And no decision must be taken in the middle of another: what may come anywhere, such as from
    a signal handler or a garbage collection, acts `when_free`.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._put_off: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth:
            self._lock.release()
            return
        while True:
            due: list[Callable[[], object]] = []
            if self._put_off:
                due, self._put_off = self._put_off, due
            self._lock.release()
            for action in due:
                action()
            # Something may have come anywhere, even since these were taken.
            if not self._put_off:
                return
            self._lock.acquire()

    def put_off(self, action: Callable[[], object]) -> None:
        """Do `action` once the lock is free again; call with the lock held."""
        self._put_off.append(action)

    def when_free(self, action: Callable[[], T]) -> T | None:
        """What `action` gives, which takes the lock itself; None if this thread holds it, and `action` is put off."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._put_off.append(action)
            return None
        return action()
