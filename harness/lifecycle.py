"""A run is RUNNING and then takes exactly one terminal outcome; the first wins (SPEC H5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from harness.budget import Excess
from harness.errors import InvalidInput
from harness.ids import check_code

if TYPE_CHECKING:
    from harness.live import LiveRun


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


class Lifecycle:
    """The run's outcome as it stands."""

    __slots__ = ("_live",)

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    @property
    def termination(self) -> Termination | None:
        """The decision, or None while the run is running. Provisional until the run's end is durable (SPEC D1)."""
        return self._live.termination

    @property
    def is_running(self) -> bool:
        return self._live.termination is None

    def finish(self, outcome: Outcome, reason: str) -> bool:
        """Decide the outcome; False if it was decided before, and then nothing has changed.

        `reason` is a code. At the deadline or after it there is no SUCCESS: the run ends TIMED_OUT, and this is False.
        """
        if not isinstance(outcome, Outcome):
            raise InvalidInput("outcome", f"must be an Outcome, not {type(outcome).__name__}")
        return self._live.decide(outcome, check_code("reason", reason))
