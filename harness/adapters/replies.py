"""What an HTTP reply tells of a failure: which it is, and how long the server asks to be left alone (RFC 9110).

The adapters share it. An SDK whose exception is at hand has been imported already, so none is imported for this.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz
from typing import Any

from harness.clock import SystemWallClock, WallClock
from harness.retry import FailureType, TypedFailure

SYSTEM_WALL_CLOCK = SystemWallClock()

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_BY_STATUS = {
    404: FailureType.NOT_FOUND,
    408: FailureType.TIMEOUT,
    410: FailureType.NOT_FOUND,
    429: FailureType.RATE_LIMITED,
}


def loaded(module: str) -> Any:
    """The module if it was imported by now, else None: then no exception can be of it."""
    return sys.modules.get(module)


def failure_of_status(status: int) -> FailureType:
    """What a status that is no success says; in the middle of a stream that began well it is the provider's error."""
    if status >= 500 or status < 300:
        return FailureType.PROVIDER_ERROR
    return _BY_STATUS.get(status, FailureType.REJECTED_REQUEST)


def told_by_reply(failure: FailureType, headers: Mapping[str, str], wall_clock: WallClock) -> TypedFailure:
    """The failure, with the delay that the reply asks for."""
    return TypedFailure(failure, failure.value, retry_after_s=retry_after_s(headers, wall_clock))


def retry_after_s(headers: Mapping[str, str], wall_clock: WallClock) -> float | None:
    """Seconds to wait by `retry-after-ms`, or by `Retry-After` as seconds or as a date; None if neither is readable.

    A date is taken from the reply's own `Date`, and only without that from the wall clock, which may be off.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None:
        return seconds
    due = _date(asked)
    if due is None:
        return None
    now = _date(headers.get("date")) or _EPOCH + timedelta(microseconds=wall_clock.now_us())
    return max(0.0, (due - now).total_seconds())


def _number(header: str | None) -> float | None:
    return float(header) if header is not None and _NUMBER.fullmatch(header.strip()) else None


def _date(header: str | None) -> datetime | None:
    """A date in any of the three forms of HTTP; None for anything else."""
    fields = parsedate_tz(header) if header else None
    if fields is None:
        return None
    try:
        return datetime(*fields[:6], tzinfo=UTC) - timedelta(seconds=fields[9] or 0)
    except (ValueError, OverflowError):
        return None


def classify_sdk_error(sdk: Any, error: BaseException, wall_clock: WallClock) -> FailureType | TypedFailure | None:
    """What is known of an exception of `openai` or `anthropic`, whose exceptions are of the same build."""
    kinds: tuple[tuple[type[Exception], FailureType], ...] = (
        (sdk.APITimeoutError, FailureType.TIMEOUT),
        (sdk.APIConnectionError, FailureType.TRANSPORT),
        (sdk.APIResponseValidationError, FailureType.MALFORMED_REPLY),
        (sdk.RateLimitError, FailureType.RATE_LIMITED),
        (sdk.NotFoundError, FailureType.NOT_FOUND),
        (sdk.InternalServerError, FailureType.PROVIDER_ERROR),
    )
    failure = next((failure for kind, failure in kinds if isinstance(error, kind)), None)
    if isinstance(error, sdk.APIStatusError):
        return told_by_reply(failure or failure_of_status(error.status_code), error.response.headers, wall_clock)
    # In the middle of a stream the SDK has nothing nearer than the base of its exceptions.
    return FailureType.PROVIDER_ERROR if type(error) is sdk.APIError else failure
