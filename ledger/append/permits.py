"""Room in the writer's queue, given out in the order it was asked for (SPEC D12).

A permit is room for one boundary: its start and its end. None is given while too many boundaries are under way or too
many bytes are waiting to be written; whoever asks then waits, up to a time-out of its own.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass

from harness.errors import LedgerUnavailable
from harness.journal import Permit
from harness.promise import Promise
from ledger.measures import Load


@dataclass(slots=True, eq=False)
class _Waiter:
    future: Future[Permit]
    timeout_s: float
    until_s: float


class _Granted:
    """One permit; giving it back twice is giving it back once."""

    __slots__ = ("_permits", "_released")

    def __init__(self, permits: Permits) -> None:
        self._permits = permits
        self._released = False

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._permits.give_back()


class Permits:
    """Counts boundaries under way and bytes waiting. Every method may be called from any thread, and never blocks."""

    def __init__(self, *, permits_max: int, bytes_max: int) -> None:
        self._permits_max = permits_max
        self._bytes_max = bytes_max
        # Re-entrant, as a collection may come while this thread has it, and give a permit back.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._granted = 0
        self._bytes = 0
        self._appends = 0
        self._waiters: deque[_Waiter] = deque()
        self._watch: threading.Thread | None = None
        self._closed = False

    def request(self, timeout_s: float) -> Future[Permit]:
        """A permit, now or within `timeout_s`; else the future fails with `LedgerUnavailable`."""
        with self._lock:
            if not self._closed and not self._waiters and self._has_room():
                self._granted += 1
                return Promise.kept(_Granted(self))
            future: Future[Permit] = Future()
            if not self._closed:
                self._waiters.append(_Waiter(future, timeout_s, time.monotonic() + timeout_s))
                self._watch_waiters()
                return future
        future.set_exception(LedgerUnavailable("the ledger is closed"))
        return future

    def give_back(self) -> None:
        """A boundary has crossed."""
        with self._lock:
            self._granted -= 1
        self._grant()

    def add_bytes(self, size_bytes: int) -> int:
        """Bytes joined the queue, and how many appends it has now.

        Ends and terminations always may, so the bound can be passed by them.
        """
        with self._lock:
            self._bytes += size_bytes
            self._appends += 1
            return self._appends

    def remove_bytes(self, size_bytes: int, appends: int = 1) -> None:
        """Bytes left the queue, of so many appends."""
        with self._lock:
            self._bytes -= size_bytes
            self._appends -= appends
        self._grant()

    def load(self) -> Load:
        """What is under way and waits."""
        with self._lock:
            return Load(self._appends, self._bytes, self._granted, len(self._waiters))

    def close(self) -> None:
        """Nobody gets a permit any more."""
        with self._lock:
            self._closed = True
            waiters = list(self._waiters)
            self._waiters.clear()
            self._changed.notify_all()
        for waiter in waiters:
            _fail(waiter, "the ledger is closed")

    def _has_room(self) -> bool:
        return self._granted < self._permits_max and self._bytes < self._bytes_max

    def _grant(self) -> None:
        """Give what there is to those who wait; futures are completed without the lock, as their callbacks may call."""
        while True:
            with self._lock:
                if not self._waiters or not self._has_room():
                    return
                waiter = self._waiters.popleft()
                self._granted += 1
            if waiter.future.set_running_or_notify_cancel():
                waiter.future.set_result(_Granted(self))
            else:
                with self._lock:
                    self._granted -= 1

    def _watch_waiters(self) -> None:
        if self._watch is None:
            self._watch = threading.Thread(target=self._expire, name="ledger-permits", daemon=True)
            self._watch.start()
        else:
            self._changed.notify_all()

    def _expire(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                now_s = time.monotonic()
                late = [waiter for waiter in list(self._waiters) if waiter.until_s <= now_s]
                expired = [waiter for waiter in late if self._remove(waiter)]
                if not expired:
                    nearest_s = min((waiter.until_s for waiter in list(self._waiters)), default=None)
                    self._changed.wait(None if nearest_s is None else nearest_s - now_s)
            for waiter in expired:
                _fail(waiter, f"its queue had no room for {waiter.timeout_s:g} s")

    def _remove(self, waiter: _Waiter) -> bool:
        """Whether it still waited."""
        try:
            self._waiters.remove(waiter)
        except ValueError:
            return False
        return True


def _fail(waiter: _Waiter, problem: str) -> None:
    if waiter.future.set_running_or_notify_cancel():
        waiter.future.set_exception(LedgerUnavailable(problem))
