"""A deadline is a point in time, so passing it down never extends it (SPEC H2)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.clock import MonotonicClock
from harness.errors import InvalidInput

MAX_TIMEOUT_S = 366 * 24 * 3600
REMAINING_HEADER = "tachograph-remaining-ms"
"""The header, in HTTP or any other, that tells another process how many milliseconds are left."""

_MILLISECONDS = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a run must have stopped, on one monotonic clock."""

    at_ns: int
    """Nanoseconds on the clock that made this deadline."""

    def __post_init__(self) -> None:
        if isinstance(self.at_ns, bool) or not isinstance(self.at_ns, int):
            raise InvalidInput("at_ns", f"must be a whole number of nanoseconds, not {type(self.at_ns).__name__}")

    @classmethod
    def after(cls, timeout_s: float, clock: MonotonicClock) -> Deadline:
        """The point `timeout_s` seconds from now; `InvalidInput` unless it is positive, finite and below a year."""
        return cls(clock.now_ns() + round(check_timeout("timeout_s", timeout_s) * 1_000_000_000))

    @classmethod
    def from_header(cls, value: object, clock: MonotonicClock, *, max_s: float) -> Deadline:
        """The deadline of another process, from what is left there; at most `max_s` seconds from now.

        A longer one is cut to `max_s`, since the caller's patience is no promise of ours. 0 is a deadline that has
        passed. `InvalidInput` for anything but 1 to 15 digits.
        """
        longest_s = check_timeout("max_s", max_s)
        if not isinstance(value, str) or not _MILLISECONDS.fullmatch(value):
            given = f"not {value[:40]!a}" if isinstance(value, str) else f"not {type(value).__name__}"
            raise InvalidInput(REMAINING_HEADER, f"must be 1 to 15 digits, a number of milliseconds, {given}")
        return cls(clock.now_ns() + min(int(value) * 1_000_000, round(longest_s * 1_000_000_000)))

    def to_header(self, clock: MonotonicClock) -> str:
        """What is left, for `REMAINING_HEADER`: whole milliseconds, rounded down; no two processes share a clock."""
        return str(self.remaining_ns(clock) // 1_000_000)

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
    if not 0 < value <= MAX_TIMEOUT_S:
        raise InvalidInput(field, f"must be above 0 and at most {MAX_TIMEOUT_S} seconds, not {value!r}")
    return float(value)
