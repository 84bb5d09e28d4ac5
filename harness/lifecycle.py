"""A run is RUNNING and then takes exactly one terminal outcome; the first wins (SPEC H5)."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum

from harness.budget.usage import Excess
from harness.journal import Recorded


class Outcome(Enum):
    """How a run can end."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class Termination:
    """The one decision that ended a run."""

    outcome: Outcome
    reason: str
    """A code, such as `COMPLETED`, `DEADLINE_EXCEEDED` or `UNHANDLED_EXCEPTION`."""
    decided_us: int
    """Wall clock at the decision, microseconds since the Unix epoch."""
    elapsed_us: int
    """Monotonic microseconds from the run's start to the decision."""
    excess: Excess | None = None
    """The limit that ended the run, where one did."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What telling a run to stop came to."""

    decided: bool
    """Whether this call decided the run's outcome."""
    recorded: Future[Recorded] | None
