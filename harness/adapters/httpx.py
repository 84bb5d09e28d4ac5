"""The failures of `httpx` and `httpx2`, told by type; a status is one where `raise_for_status` made it so (SPEC H6)."""

from __future__ import annotations

from typing import Any

from harness.adapters.replies import SYSTEM_WALL_CLOCK, failure_of_status, loaded, told_by_reply
from harness.clock import WallClock
from harness.retry import FailureType, TypedFailure


def classify(error: BaseException, *, wall_clock: WallClock = SYSTEM_WALL_CLOCK) -> FailureType | TypedFailure | None:
    """What is known of the exceptions of both, with the delay that the server asked for; None of any other."""
    for name in ("httpx", "httpx2"):
        library = loaded(name)
        if library is not None and (told := _told(library, error, wall_clock)) is not None:
            return told
    return None


def _told(library: Any, error: BaseException, wall_clock: WallClock) -> FailureType | TypedFailure | None:
    if isinstance(error, library.HTTPStatusError):
        response = error.response
        return told_by_reply(failure_of_status(response.status_code), response.headers, wall_clock)
    kinds: tuple[tuple[type[Exception], FailureType], ...] = (
        (library.TimeoutException, FailureType.TIMEOUT),
        (library.UnsupportedProtocol, FailureType.REJECTED_REQUEST),
        (library.LocalProtocolError, FailureType.REJECTED_REQUEST),
        (library.InvalidURL, FailureType.REJECTED_REQUEST),
        (library.TransportError, FailureType.TRANSPORT),
        (library.DecodingError, FailureType.MALFORMED_REPLY),
    )
    return next((failure for kind, failure in kinds if isinstance(error, kind)), None)
