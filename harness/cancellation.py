"""Cancellation is layered and cooperative: later boundaries are refused, registered callbacks let go of resources.

A synchronous call in flight is not interrupted; its result arrives late and is recorded as late (SPEC H3).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from harness.lifecycle import Outcome

if TYPE_CHECKING:
    from harness.live import LiveRun

MAX_CALLBACKS = 10_000


class CancelReason(Enum):
    """Why a run was told to stop."""

    CLIENT_DISCONNECTED = "CLIENT_DISCONNECTED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    USER_REQUESTED = "USER_REQUESTED"
    TASK_CANCELLED = "TASK_CANCELLED"
    SHUTDOWN = "SHUTDOWN"
    LEDGER_UNAVAILABLE = "LEDGER_UNAVAILABLE"

    @property
    def outcome(self) -> Outcome:
        """The outcome of a run that is stopped for this reason."""
        return _OUTCOMES.get(self, Outcome.CANCELLED)


_OUTCOMES = {
    CancelReason.DEADLINE_EXCEEDED: Outcome.TIMED_OUT,
    CancelReason.BUDGET_EXHAUSTED: Outcome.BUDGET_EXHAUSTED,
    CancelReason.LEDGER_UNAVAILABLE: Outcome.FAILED,
}


class Cancellation:
    """Whether and why a run was told to stop, and whom to tell."""

    __slots__ = ("_live",)

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    @property
    def reason(self) -> CancelReason | None:
        """The first reason, which stays; None while nobody has signalled."""
        return self._live.cancel_reason

    @property
    def is_signalled(self) -> bool:
        return self._live.cancel_reason is not None

    def signal(self, reason: CancelReason) -> bool:
        """Tell the run to stop; False if it had already ended or been told, and then nothing has changed."""
        return self._live.stop(reason).decided

    def on_signal(self, callback: Callable[[CancelReason], object]) -> Callable[[], None]:
        """Call `callback` once, when the run is told to stop, or at once if it was; returns how to take it back.

        Callbacks run on the thread that signals and must not block. One that raises is logged without payloads.
        """
        return self._live.add_callback(callback)
