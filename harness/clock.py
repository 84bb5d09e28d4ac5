"""Two clocks: a monotonic one measures and expires, a wall clock only stamps (SPEC D8)."""

from __future__ import annotations

import time
from typing import Protocol


class MonotonicClock(Protocol):
    """A clock that never steps back."""

    def now_ns(self) -> int:
        """Nanoseconds since an arbitrary point."""


class WallClock(Protocol):
    """The time of day, which may step in any direction."""

    def now_us(self) -> int:
        """Microseconds since the Unix epoch."""


class SystemMonotonicClock:
    """The operating system's monotonic clock."""

    now_ns = staticmethod(time.monotonic_ns)


class SystemWallClock:
    """The operating system's time of day."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000


class ManualClock:
    """Both clocks at once, moved by hand: for tests of code that a harness governs.

    `Harness(journal, monotonic_clock=clock, wall_clock=clock)`. Moving it wakes nobody: what waits, waits in real time,
    and the next boundary notices the deadline that it passed.
    """

    def __init__(self, *, wall_us: int = 1_800_000_000_000_000, monotonic_ns: int = 0) -> None:
        self.wall_us = wall_us
        self.monotonic_ns = monotonic_ns

    def now_ns(self) -> int:
        return self.monotonic_ns

    def now_us(self) -> int:
        return self.wall_us

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.monotonic_ns += round(seconds * 1_000_000_000)
        self.wall_us += round(seconds * 1_000_000)

    def step_wall(self, seconds: float) -> None:
        """Set the time of day back or forward, as an operator or NTP would; the monotonic clock does not notice."""
        self.wall_us += round(seconds * 1_000_000)
