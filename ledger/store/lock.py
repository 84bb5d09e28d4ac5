"""Locks between processes that the kernel releases when their holder dies: `flock` on files beside the ledger.

SQLite's own busy time-outs starve under several writers, and its last closing connection checkpoints; so everything
that writes a ledger's file holds one lock, and takes it with a deadline.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from harness.errors import LedgerUnavailable

POLL_S = 0.0005
POLL_MAX_S = 0.004


class FileLock:
    """An exclusive lock on one file, for this process and one thread of it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _OPEN.add(self)

    @property
    def is_open(self) -> bool:
        """Whether the file is open; in a forked child it is not."""
        return self._descriptor >= 0

    def try_acquire(self) -> bool:
        """Take the lock if it is free."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def acquire(self, timeout_s: float) -> None:
        """Take the lock; `LedgerUnavailable` if others hold it for `timeout_s`."""
        if self.try_acquire():
            return
        until = time.monotonic() + timeout_s
        pause_s = POLL_S
        while True:
            time.sleep(pause_s)
            if self.try_acquire():
                return
            if time.monotonic() >= until:
                raise LedgerUnavailable(f"another process has held {self.path.name} for {timeout_s:g} s")
            pause_s = min(pause_s * 1.5, POLL_MAX_S)

    def release(self) -> None:
        """Let others have the lock."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        """The lock for the length of a block."""
        self.acquire(timeout_s)
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        """Give up the file, and the lock with it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_OPEN: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _close_in_child() -> None:
    """A forked child shares its parent's locks: it lets go of the files, and never unlocks."""
    for lock in list(_OPEN):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)
