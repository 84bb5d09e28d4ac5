"""An event loop that notices when nothing in it can go on, and then asks what is due.

Its selector is asked to wait only when nothing is ready to run. Then the record is asked first; if that has nothing to
give, time is skipped to the next timer, so that nobody waits for a pause; if there is none, the loop is stuck.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, Protocol

from harness.concurrency.interruption import Interruption

SKIPS_MAX = 100_000
"""Times that a re-execution skips to a timer; a program that polls on for ever is stuck."""
QUIET_S = 0.5
"""How long a loop in which nothing can go on is given to be woken by what it cannot know of, such as a thread."""


class Prompter(Protocol):
    """Who knows what is due."""

    def act(self) -> bool:
        """Make something ready to run; False if nothing is due that could be."""

    def is_patient(self, skipped_s: float) -> bool:
        """Whether time may be skipped, so much in all."""

    def be_stuck(self) -> None:
        """Nothing can go on: say so, or let something go on after all."""


class ReplayLoop(asyncio.SelectorEventLoop):
    """The loop in which a run is executed again."""

    def __init__(self, prompter: Prompter, quiet_s: float = QUIET_S) -> None:
        self.jobs_count = 0
        """Jobs on threads that this loop was asked for, and that have not ended, or wait for work in it."""
        self.skipped_s = 0.0
        super().__init__(_Selector(self, prompter, quiet_s))

    def time(self) -> float:
        return super().time() + self.skipped_s

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """As ever, but deadlines and time-outs of the harness never come by themselves: the record says when."""
        if isinstance(getattr(callback, "__self__", None), Interruption):
            return asyncio.TimerHandle(when, callback, args, self, context)
        return super().call_at(when, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self.jobs_count += 1
        future.add_done_callback(self._note_done)
        return future

    def _note_done(self, _: object) -> None:
        self.jobs_count -= 1


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: ReplayLoop, prompter: Prompter, quiet_s: float) -> None:
        super().__init__()
        self._loop = loop
        self._prompter = prompter
        self._quiet_s = quiet_s
        self._skips = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0) or self._prompter.act():
            return ready
        if self._loop.jobs_count > 0:
            return super().select(timeout)
        # The loop's own waker is one; whatever else is open in it may bring something.
        if len(self.get_map()) > 1 and (ready := super().select(min(timeout or self._quiet_s, self._quiet_s))):
            return ready
        if timeout is not None and self._may_skip(timeout):
            self._skips += 1
            self._loop.skipped_s += timeout
            return []
        ready = super().select(self._quiet_s)
        if not ready:
            self._prompter.be_stuck()
        return ready

    def _may_skip(self, timeout_s: float) -> bool:
        return self._skips < SKIPS_MAX and self._prompter.is_patient(self._loop.skipped_s + timeout_s)
