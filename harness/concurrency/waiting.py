"""Waiting in an event loop for futures that other threads complete, without ever cancelling them."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


async def result_of(future: Future[T]) -> T:
    """The future's result. Cancelling the waiting task leaves the future alone, unlike `asyncio.wrap_future`."""
    if not future.done():
        await _woken_by(future)
    return future.result()


async def wait_through(future: Future[Any], until_s: float) -> asyncio.CancelledError | None:
    """Wait until the future is done, or the loop's time is `until_s`, whatever cancels the waiting task meanwhile.

    The latest such cancellation is returned, for the caller to raise once it has done what it must.
    """
    cancelled: asyncio.CancelledError | None = None
    now_s = asyncio.get_running_loop().time
    woken = _woken_by(future)
    # Not `asyncio.timeout`: before Python 3.11.4 it cannot tell its own end from a cancellation that came earlier.
    while not woken.done() and (left_s := until_s - now_s()) > 0:
        try:
            await asyncio.wait({woken}, timeout=left_s)
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


def _woken_by(future: Future[Any]) -> asyncio.Future[None]:
    """A future of the running loop that is done as soon as `future` is, and says nothing of its result."""
    loop = asyncio.get_running_loop()
    wakening = _WAKENINGS.setdefault(loop, _Wakening())
    woken = loop.create_future()
    future.add_done_callback(lambda _: wakening.add(woken))
    return woken


class _Wakening:
    """Wakes a loop once for all that is done until it is awake, however many futures a thread completes at once."""

    def __init__(self) -> None:
        self._to_wake: deque[asyncio.Future[None]] = deque()
        self._is_due = False

    def add(self, woken: asyncio.Future[None]) -> None:
        """Any thread may call."""
        self._to_wake.append(woken)
        if not self._is_due:
            self._is_due = True
            try:
                woken.get_loop().call_soon_threadsafe(self._wake)
            except RuntimeError:
                self._to_wake.clear()  # A loop that has closed has nobody left to wake.

    def _wake(self) -> None:
        # What is added from here on is either taken below or due once more.
        self._is_due = False
        while self._to_wake:
            woken = self._to_wake.popleft()
            if not woken.done():
                woken.set_result(None)


_WAKENINGS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Wakening] = WeakKeyDictionary()
