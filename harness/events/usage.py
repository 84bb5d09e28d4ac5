"""What a model attempt really used (SPEC H4a)."""

from typing import Literal

from harness.events.attempt import AttemptEvent
from harness.events.base import CountMap


class UsageSettled(AttemptEvent):
    """Actual token usage as it was reported, above a limit or not."""

    type: Literal["usage.settled"] = "usage.settled"
    version: Literal[1] = 1
    usage: CountMap | None = None
    """Left out where nobody reported it: unknown, never 0. What was reserved of it and not used is given back."""
    complete: bool
    """False where input or output tokens are unknown; a reservation for what is unknown is kept."""
