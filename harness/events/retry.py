"""The decision after a failed attempt (SPEC H6)."""

from typing import Literal

from harness.events.attempt import AttemptEvent
from harness.events.base import Code, Count


class RetryScheduled(AttemptEvent):
    """`attempt_id` failed; attempt number `next_attempt` is due after `delay_us`."""

    type: Literal["retry.scheduled"] = "retry.scheduled"
    version: Literal[1] = 1
    failure: Code
    next_attempt: Count
    delay_us: Count


class RetryRefused(AttemptEvent):
    """The policy would have allowed another attempt, but the run does not: `reason` says why."""

    type: Literal["retry.refused"] = "retry.refused"
    version: Literal[1] = 1
    failure: Code
    reason: Code
