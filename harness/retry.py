"""Retry is typed, bounded and recorded: which failures, how many attempts, how long between them (SPEC H6)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from hashlib import sha256
from types import MappingProxyType

from harness.budget.usage import TokenUsage
from harness.errors import (
    HarnessError,
    InvalidInput,
    LedgerUnavailable,
    RunEnded,
    ScopeExhausted,
    ScopeNotOpen,
    ToolDenied,
)
from harness.ids import check_code

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 10
MAX_DELAY_S = 24 * 3600
POLICY_DOMAIN = b"tachograph/policy/v1\0"


class OperationKind(StrEnum):
    """What an operation is for; decides its retry policy.

    Any other code may be a kind as well, where `RetryPolicies` have an explicit policy for it (SPEC H6).
    """

    INTENT_ROUTER = "INTENT_ROUTER"
    SEMANTIC_GUARD = "SEMANTIC_GUARD"
    DIAGNOSIS_AGENT = "DIAGNOSIS_AGENT"
    TOOL_CALL = "TOOL_CALL"
    EVIDENCE_REPAIR = "EVIDENCE_REPAIR"


class FailureType(Enum):
    """Why an attempt failed, told by the exception's type and never by its text."""

    TRANSPORT = "TRANSPORT"
    TIMEOUT = "TIMEOUT"
    RATE_LIMITED = "RATE_LIMITED"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    MALFORMED_REPLY = "MALFORMED_REPLY"
    NOT_FOUND = "NOT_FOUND"
    REJECTED_REQUEST = "REJECTED_REQUEST"
    INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
    NO_EVIDENCE = "NO_EVIDENCE"
    BUSINESS_REJECTION = "BUSINESS_REJECTION"
    DENIED = "DENIED"
    CANCELLED = "CANCELLED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    RUN_ENDED = "RUN_ENDED"
    HIDDEN_RETRY = "HIDDEN_RETRY"
    SCOPE_ENDED = "SCOPE_ENDED"
    UNKNOWN = "UNKNOWN"


TECHNICAL_FAILURES = frozenset(
    {
        FailureType.TRANSPORT,
        FailureType.TIMEOUT,
        FailureType.RATE_LIMITED,
        FailureType.PROVIDER_ERROR,
        FailureType.MALFORMED_REPLY,
    }
)
"""The only failures that any policy may retry."""

ATTEMPT_CEILINGS: Mapping[str, int] = MappingProxyType(
    {
        OperationKind.INTENT_ROUTER: 2,
        OperationKind.SEMANTIC_GUARD: 2,
        OperationKind.DIAGNOSIS_AGENT: 1,
        OperationKind.TOOL_CALL: 1,
        OperationKind.EVIDENCE_REPAIR: 1,
    }
)
"""Attempts that no policy of these kinds can exceed."""


class TypedFailure(HarnessError):
    """An operation's failure with its type: raise it where the type of the original exception does not tell."""

    code = "operation_failed"

    def __init__(
        self,
        failure: FailureType,
        message: str,
        *,
        usage: TokenUsage | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        if not isinstance(failure, FailureType):
            raise InvalidInput("failure", f"must be a FailureType, not {type(failure).__name__}")
        if retry_after_s is not None and (
            isinstance(retry_after_s, bool) or not isinstance(retry_after_s, int | float)
        ):
            raise InvalidInput("retry_after_s", f"must be a number of seconds, not {type(retry_after_s).__name__}")
        if usage is not None and not isinstance(usage, TokenUsage):
            raise InvalidInput("usage", f"must be a TokenUsage, not {type(usage).__name__}")
        self.failure = failure
        self.usage = usage
        self.retry_after_s = retry_after_s
        super().__init__(message)


def _check_retryable(field_name: str, retryable: object) -> frozenset[FailureType]:
    if isinstance(retryable, str) or not isinstance(retryable, Collection):
        raise InvalidInput(field_name, f"must be a set of FailureType, not {type(retryable).__name__}")
    for failure in retryable:
        if not isinstance(failure, FailureType):
            raise InvalidInput(field_name, f"must hold FailureType, not {type(failure).__name__}")
    return frozenset(retryable)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failures of one kind of operation are tried again, how often, and after how long."""

    kind: str
    """An `OperationKind`, or a code of the application's own."""
    max_attempts: int
    """1 means one attempt."""
    retryable: frozenset[FailureType] = frozenset()
    base_delay_s: float = 0.1
    max_delay_s: float = 2.0

    def __init_subclass__(cls) -> None:
        raise TypeError("a RetryPolicy is what its figures say: there is no subclass that could loosen it")

    def __post_init__(self) -> None:
        kind = check_code("kind", self.kind)
        ceiling = ATTEMPT_CEILINGS.get(kind, MAX_ATTEMPTS)
        attempts = self.max_attempts
        if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= ceiling:
            raise InvalidInput(f"{kind}.max_attempts", f"must be from 1 to {ceiling}, not {attempts!r}")
        object.__setattr__(self, "retryable", _check_retryable(f"{kind}.retryable", self.retryable))
        never = self.retryable - TECHNICAL_FAILURES
        if never:
            names = ", ".join(sorted(failure.value for failure in never))
            raise InvalidInput(f"{kind}.retryable", f"must not hold {names}: these are never retried")
        for name in ("base_delay_s", "max_delay_s"):
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= MAX_DELAY_S:
                raise InvalidInput(f"{kind}.{name}", f"must be from 0 to {MAX_DELAY_S} seconds, not {seconds!r}")

    def permits(self, failure: FailureType, attempt: int) -> bool:
        """Whether another attempt may follow number `attempt`, which failed with `failure`."""
        return attempt < self.max_attempts and failure in self.retryable

    def delay_s(self, attempt: int, fraction: float) -> float:
        """Seconds to wait after attempt number `attempt`: exponential, with jitter from `fraction` in [0, 1)."""
        full_s = min(self.max_delay_s, self.base_delay_s * float(1 << (attempt - 1)))
        return full_s * (0.5 + fraction / 2)


ROUTER_POLICY = RetryPolicy(OperationKind.INTENT_ROUTER, 2, TECHNICAL_FAILURES)
SEMANTIC_GUARD_POLICY = RetryPolicy(OperationKind.SEMANTIC_GUARD, 2, TECHNICAL_FAILURES)
AGENT_POLICY = RetryPolicy(OperationKind.DIAGNOSIS_AGENT, 1)
TOOL_POLICY = RetryPolicy(OperationKind.TOOL_CALL, 1)
EVIDENCE_REPAIR_POLICY = RetryPolicy(OperationKind.EVIDENCE_REPAIR, 1)


@dataclass(frozen=True, slots=True)
class RetryPolicies:
    """One policy for each kind of operation."""

    by_kind: Mapping[str, RetryPolicy] = field(
        default_factory=lambda: {
            policy.kind: policy
            for policy in (ROUTER_POLICY, SEMANTIC_GUARD_POLICY, AGENT_POLICY, TOOL_POLICY, EVIDENCE_REPAIR_POLICY)
        },
        hash=False,
    )

    def __init_subclass__(cls) -> None:
        raise TypeError("RetryPolicies are what their mapping says: there is no subclass that could loosen them")

    def __post_init__(self) -> None:
        if not isinstance(self.by_kind, Mapping):
            raise InvalidInput("policies", f"must be a mapping, not {type(self.by_kind).__name__}")
        for kind, policy in self.by_kind.items():
            if not isinstance(policy, RetryPolicy):
                raise InvalidInput(f"policies[{kind}]", f"must be a RetryPolicy, not {type(policy).__name__}")
            if policy.kind != kind:
                raise InvalidInput(f"policies[{kind}]", f"is a policy for {policy.kind}")
        object.__setattr__(self, "by_kind", MappingProxyType(dict(self.by_kind)))

    def digest(self) -> str:
        """SHA-256, in hexadecimal, of a domain and the policies as JSON with sorted keys, delays in microseconds."""
        described = {
            str(kind): {
                "base_delay_us": round(policy.base_delay_s * 1_000_000),
                "max_attempts": policy.max_attempts,
                "max_delay_us": round(policy.max_delay_s * 1_000_000),
                "retryable": sorted(failure.value for failure in policy.retryable),
            }
            for kind, policy in self.by_kind.items()
        }
        text = json.dumps(described, sort_keys=True, separators=(",", ":"))
        return sha256(POLICY_DOMAIN + text.encode("ascii")).hexdigest()

    def plus(self, *policies: RetryPolicy) -> RetryPolicies:
        """These policies and more, each in place of the one for its kind."""
        return RetryPolicies({**self.by_kind, **{policy.kind: policy for policy in policies}})

    def of(self, kind: str) -> RetryPolicy:
        """The policy of `kind`; `InvalidInput` if none was given."""
        policy = self.by_kind.get(check_code("kind", kind))
        if policy is None:
            raise InvalidInput("kind", f"{kind} has no retry policy: give the run one, RetryPolicies().plus(...)")
        return policy


Classifier = Callable[[BaseException], FailureType | TypedFailure | None]
"""Tells the failure type of exceptions that it knows, None of others; a `TypedFailure` tells more than the type."""


def tell(error: BaseException, classifiers: Iterable[Classifier] = ()) -> TypedFailure:
    """What is known of an operation's exception, by its type alone; `UNKNOWN` where no type tells."""
    if isinstance(error, TypedFailure):
        return error
    for classifier in classifiers:
        try:
            told = classifier(error)
        except Exception as broken:  # noqa: BLE001 - it is the application's, and the attempt must end
            log.warning("a classifier raised %s over %s", type(broken).__name__, type(error).__name__)
            continue
        if isinstance(told, TypedFailure):
            return told
        if isinstance(told, FailureType):
            return TypedFailure(told, told.value)
    failure = next((failure for kind, failure in _BUILT_IN if isinstance(error, kind)), FailureType.UNKNOWN)
    return TypedFailure(failure, failure.value)


_BUILT_IN: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], FailureType], ...] = (
    ((RunEnded, LedgerUnavailable), FailureType.RUN_ENDED),
    ((ScopeExhausted, ScopeNotOpen), FailureType.SCOPE_ENDED),
    (ToolDenied, FailureType.DENIED),
    (InvalidInput, FailureType.INVALID_ARGUMENTS),
    ((asyncio.CancelledError, GeneratorExit), FailureType.CANCELLED),
    (TimeoutError, FailureType.TIMEOUT),
    (ConnectionError, FailureType.TRANSPORT),
)
