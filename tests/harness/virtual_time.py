"""Time that goes by only as it is looked at and waited for: a run under it has the same record every time."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from harness import MemoryJournal
from harness.concurrency.threads import ToolThreads
from harness.errors import LedgerUnavailable
from harness.journal import Permit, Recorded, Submission

LOOK_NS = 1_000
"""What one look at the clock takes, so that something may have come between any two of them."""
WAIT_FOR_EVER_S = 30


class VirtualClock:
    """Both clocks; `looks` are the times that it has shown."""

    def __init__(self) -> None:
        self.ns = 0
        self.looks: list[int] = []

    def now_ns(self) -> int:
        self.ns += LOOK_NS
        self.looks.append(self.ns)
        return self.ns

    def now_us(self) -> int:
        return 1_800_000_000_000_000 + self.ns // 1_000


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waits for a timer by setting the clock to it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        super().__init__(_Selector(clock))

    def time(self) -> float:
        return self.clock.ns / 1e9


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(WAIT_FOR_EVER_S)
            assert ready, "nothing is left that could wake the loop"
            return ready
        self._clock.ns += max(0, round(timeout * 1e9))
        return super().select(0)


class LaterJournal(MemoryJournal):
    """Says what it stored, and gives room, only after a pause; `stored` is called after each submission."""

    def __init__(self, pause_s: Callable[[], float], stored: Callable[[Submission], None]) -> None:
        super().__init__()
        self._pause_s = pause_s
        self._stored = stored
        self._last_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    def request_permit(self, timeout_s: float) -> Future[Permit]:
        permit: Future[Permit] = Future()
        loop, pause_s = asyncio.get_running_loop(), self._pause_s()
        self._loop = loop
        if pause_s > timeout_s:
            loop.call_later(timeout_s, _settle, permit, LedgerUnavailable("no room in the queue"))
        else:
            loop.call_later(pause_s, _settle, permit, self._permit.result())
        return permit

    def submit(self, submission: Submission) -> Future[Recorded]:
        done, known, loop = super().submit(submission), Future[Recorded](), self._loop
        assert loop is not None, "a permit was asked for"
        # In the order of the submissions, as a ledger does.
        self._last_s = max(self._last_s, loop.time() + self._pause_s())
        loop.call_at(self._last_s, _settle, known, done.exception() or done.result())
        self._stored(submission)
        return known


class LaterThreads(ToolThreads):
    """Calls are made in the loop: each begins after a pause, as if all threads were busy, and is done after another."""

    def __init__(self, pause_s: Callable[[], float]) -> None:
        super().__init__()
        self._pause_s = pause_s

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        asyncio.get_running_loop().call_later(self._pause_s(), self._begin, call, future)
        return future

    def _begin(self, call: Callable[[], Any], future: Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            told = call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
            told = error
        asyncio.get_running_loop().call_later(self._pause_s(), _settle, future, told)


def _settle(future: Future[Any], told: Any) -> None:
    if future.cancelled():
        return
    if isinstance(told, BaseException):
        future.set_exception(told)
    else:
        future.set_result(told)
