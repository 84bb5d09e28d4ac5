"""The failures of the `anthropic` client, told by type (SPEC H6)."""

from __future__ import annotations

import json

from harness.adapters.replies import SYSTEM_WALL_CLOCK, classify_sdk_error, loaded
from harness.clock import WallClock
from harness.retry import FailureType, TypedFailure


def classify(error: BaseException, *, wall_clock: WallClock = SYSTEM_WALL_CLOCK) -> FailureType | TypedFailure | None:
    """What is known of the client's exceptions, with the delay that the provider asked for; None of any other."""
    if isinstance(error, json.JSONDecodeError):
        return FailureType.MALFORMED_REPLY
    sdk = loaded("anthropic")
    return None if sdk is None else classify_sdk_error(sdk, error, wall_clock)
