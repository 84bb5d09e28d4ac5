"""The failures of LangChain's chat models and parsers, told by type, and by the SDK's exception within (SPEC H6)."""

from __future__ import annotations

from collections.abc import Iterator

from harness.adapters import anthropic, httpx, openai
from harness.adapters.replies import SYSTEM_WALL_CLOCK, loaded
from harness.clock import WallClock
from harness.retry import FailureType, TypedFailure

KINDS = {
    "ContextOverflowError": FailureType.REJECTED_REQUEST,
    "ModelRefusalError": FailureType.BUSINESS_REJECTION,
    "OutputParserException": FailureType.MALFORMED_REPLY,
    "ModelTimeoutError": FailureType.TIMEOUT,
    "ModelConnectionError": FailureType.TRANSPORT,
    "ModelRateLimitError": FailureType.RATE_LIMITED,
    "ModelNotFoundError": FailureType.NOT_FOUND,
    "ModelAPIError": FailureType.PROVIDER_ERROR,
    "ModelAuthenticationError": FailureType.REJECTED_REQUEST,
    "ModelPermissionDeniedError": FailureType.REJECTED_REQUEST,
    "ModelInvalidRequestError": FailureType.REJECTED_REQUEST,
}
"""By the name of the exception in `langchain_core.exceptions`, of which older versions have fewer."""


def classify(error: BaseException, *, wall_clock: WallClock = SYSTEM_WALL_CLOCK) -> FailureType | TypedFailure | None:
    """What is known of LangChain's exceptions and of those that it lets through, with the delay that was asked for."""
    exceptions = loaded("langchain_core.exceptions")
    if exceptions is None or not isinstance(error, exceptions.LangChainException):
        return _of_provider(error, wall_clock)
    by_type = next((failure for name, failure in KINDS.items() if _is_a(error, exceptions, name)), None)
    told = next((told for inner in _within(error) if (told := _of_provider(inner, wall_clock))), None)
    if isinstance(told, TypedFailure) and by_type is not None:
        return TypedFailure(by_type, by_type.value, usage=told.usage, retry_after_s=told.retry_after_s)
    return by_type or told


def _is_a(error: BaseException, exceptions: object, name: str) -> bool:
    kind = getattr(exceptions, name, None)
    return kind is not None and isinstance(error, kind)


def _within(error: BaseException) -> Iterator[BaseException]:
    """The exception, which may be the SDK's as well, and those that it was raised from."""
    seen: list[BaseException] = []
    inner: BaseException | None = error
    while inner is not None and inner not in seen:
        yield inner
        seen.append(inner)
        inner = inner.__cause__


def _of_provider(error: BaseException, wall_clock: WallClock) -> FailureType | TypedFailure | None:
    for classifier in (openai.classify, anthropic.classify, httpx.classify):
        told = classifier(error, wall_clock=wall_clock)
        if told is not None:
            return told
    return error if isinstance(error, TypedFailure) else None
