"""Cancellation is layered and cooperative: later boundaries are refused, registered callbacks let go of resources.

A synchronous call in flight is not interrupted; its result arrives late and is recorded as late (SPEC H3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from harness.errors import InvalidInput
from harness.events import outcome_of_signal
from harness.lifecycle import Outcome

log = logging.getLogger(__name__)

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
    HIDDEN_RETRY = "HIDDEN_RETRY"

    @property
    def outcome(self) -> Outcome:
        """The outcome of a run that is stopped for this reason."""
        return Outcome(outcome_of_signal(self.value))


Callback: TypeAlias = Callable[[CancelReason], object]


class Callbacks:
    """Whom to tell when the run is told to stop; add, remove and take them with the run's lock held."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._waiting: dict[object, Callback] = {}

    def add(self, callback: Callback) -> object:
        """A key with which to remove it again."""
        if len(self._waiting) >= MAX_CALLBACKS:
            raise InvalidInput("callback", f"would be one more than {MAX_CALLBACKS} on this run")
        key = object()
        self._waiting[key] = callback
        return key

    def remove(self, key: object) -> None:
        self._waiting.pop(key, None)

    def take(self) -> list[Callback]:
        """All of them, in the order in which they came; each is taken once."""
        taken, self._waiting = list(self._waiting.values()), {}
        return taken

    def tell(self, callbacks: list[Callback], reason: CancelReason) -> None:
        """Call each, without the run's lock; one that raises does not keep the others from running (SPEC H3)."""
        for callback in callbacks:
            try:
                callback(reason)
            except BaseException as error:  # noqa: BLE001 - it is the application's, the thread may be the ledger's
                log.warning("run %s: a cancellation callback raised %s", self._run_id, type(error).__name__)
