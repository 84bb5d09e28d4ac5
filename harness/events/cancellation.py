"""Two events: anyone may request a cancellation, only the owner signals it (SPEC D3)."""

from typing import Literal

from harness.events.base import BoundaryEvent, Code, Name, RunEvent
from harness.events.run import TerminalOutcome

REQUESTABLE = frozenset({"USER_REQUESTED", "CLIENT_DISCONNECTED", "SHUTDOWN"})
"""The reasons for which others may ask that a run be cancelled."""


class CancellationRequested(RunEvent):
    """Someone asked that the run stop."""

    type: Literal["cancellation.requested"] = "cancellation.requested"
    version: Literal[1] = 1
    reason: Code
    actor: Name | None = None


class CancellationSignalled(BoundaryEvent):
    """The owner told everything in the run to stop; `reason` is the first one and stays."""

    type: Literal["cancellation.signalled"] = "cancellation.signalled"
    version: Literal[1] = 1
    reason: Code


def outcome_of_signal(reason: str) -> TerminalOutcome:
    """The outcome of a run that its owner told to stop for `reason`: the one that this signal decided."""
    match reason:
        case "DEADLINE_EXCEEDED":
            return "TIMED_OUT"
        case "BUDGET_EXHAUSTED":
            return "BUDGET_EXHAUSTED"
        case "LEDGER_UNAVAILABLE" | "HIDDEN_RETRY":
            return "FAILED"
        case _:
            return "CANCELLED"
