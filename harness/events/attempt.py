"""One attempt at a model, tool or guard operation: its start and its one end."""

from typing import Literal

from harness.events.base import BoundaryEvent, Code, Count, CountMap, Digest, Id, Name, Redaction

NOT_INVOKED = "NOT_INVOKED"
"""Why an attempt was abandoned whose operation never began: it used nothing, and no end of it can arrive late."""


class AttemptEvent(BoundaryEvent):
    """Any event of one attempt."""

    attempt_id: Id
    """Unique in its run."""


class AttemptStarted(AttemptEvent):
    """The operation may be invoked once this is durable."""

    type: Literal["attempt.started"] = "attempt.started"
    version: Literal[1] = 1
    kind: Code
    """`model`, `tool` or `guard`."""
    name: Name
    operation: Code
    """The operation kind, which decides the retry policy."""
    attempt: Count
    """From 1."""
    max_attempts: Count
    model: Name | None = None
    call_id: Name | None = None
    """The framework's tool-call id: a label kept exactly, never an identity."""
    tool_key: Name | None = None
    effect: Code | None = None
    scope_id: Id | None = None
    """The innermost nested scope that is charged for it (SPEC D5)."""
    timeout_us: Count | None = None
    """How long this attempt may take, where that is less than what its run and scope have left."""
    ambiguous: bool | None = None
    """True where another attempt was open at the same path, so order alone does not tell them apart."""
    input_digest: Digest | None = None
    input_bytes: Count | None = None
    input_stored: bool | None = None
    input_redaction: Redaction | None = None


class AttemptSucceeded(AttemptEvent):
    """The operation returned."""

    type: Literal["attempt.succeeded"] = "attempt.succeeded"
    version: Literal[1] = 1
    duration_us: Count
    output_digest: Digest | None = None
    output_bytes: Count | None = None
    output_stored: bool | None = None
    output_redaction: Redaction | None = None
    first_output_us: Count | None = None
    """On a stream: microseconds from the start to its first chunk."""
    output_chunks: Count | None = None


class AttemptFailed(AttemptEvent):
    """The operation raised, or was stopped at the deadline."""

    type: Literal["attempt.failed"] = "attempt.failed"
    version: Literal[1] = 1
    duration_us: Count
    failure: Code
    will_retry: bool
    """Whether a further attempt was scheduled; False makes this the end of the step."""
    error_type: Name | None = None
    error_digest: Digest | None = None
    error_bytes: Count | None = None
    error_stored: bool | None = None
    error_redaction: Redaction | None = None
    first_output_us: Count | None = None
    output_chunks: Count | None = None


class AttemptAbandoned(AttemptEvent):
    """Nobody waits for the operation any more and its end is unknown."""

    type: Literal["attempt.abandoned"] = "attempt.abandoned"
    version: Literal[1] = 1
    reason: Code


class AttemptFinishedLate(AttemptEvent):
    """An abandoned operation came to its end after all; it changes nothing."""

    type: Literal["attempt.finished_late"] = "attempt.finished_late"
    version: Literal[1] = 1
    duration_us: Count
    succeeded: bool
    error_type: Name | None = None


class HiddenRetryDetected(AttemptEvent):
    """Something inside the operation sent a request that was not recorded as an attempt (SPEC H7)."""

    type: Literal["hidden_retry.detected"] = "hidden_retry.detected"
    version: Literal[1] = 1
    request: Count
    """The request's number within the attempt. The first hidden one is 2, or 1 where the attempt had ended before."""
    usage: CountMap | None = None
    """What the run was charged for it."""
