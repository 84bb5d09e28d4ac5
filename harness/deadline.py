"""A deadline is a point in time, so passing it down never extends it (SPEC H2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.clock import MonotonicClock
from harness.errors import InvalidInput

MAX_TIMEOUT_S = 366 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a run must have stopped, on one monotonic clock."""

    at_ns: int
    """Nanoseconds on the clock that made this deadline."""

    @classmethod
    def after(cls, timeout_s: float, clock: MonotonicClock) -> Deadline:
        """The point `timeout_s` seconds from now; `InvalidInput` unless it is positive, finite and below a year."""
        return cls(clock.now_ns() + round(check_timeout("timeout_s", timeout_s) * 1_000_000_000))

    def remaining_ns(self, clock: MonotonicClock) -> int:
        """Nanoseconds left; 0, never negative, once it has passed."""
        return max(0, self.at_ns - clock.now_ns())

    def has_passed(self, clock: MonotonicClock) -> bool:
        """True at the deadline itself and after it."""
        return clock.now_ns() >= self.at_ns


def check_timeout(field: str, value: object) -> float:
    """Seconds as a float, or `InvalidInput` that names `field`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, f"must be a number of seconds, not {type(value).__name__}")
    if not math.isfinite(value) or not 0 < value <= MAX_TIMEOUT_S:
        raise InvalidInput(field, f"must be above 0 and at most {MAX_TIMEOUT_S} seconds, not {value!r}")
    return float(value)
