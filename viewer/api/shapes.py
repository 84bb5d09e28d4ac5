"""The JSON that the API gives, as types: bodies are checked against them, and the description is made of them.

Free text is a `Content`, since any of it may have been erased; `null` stands for what is unknown or is not there.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from harness.events.base import CountMap, Digest, Id
from ledger.records import ContentState
from ledger.run_filter import STATUSES

Instant = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")]
"""RFC 3339, in UTC, with microseconds."""
RunStatus = Annotated[
    str,
    Field(json_schema_extra={"enum": [*STATUSES]}),
]


class Health(TypedDict):
    """The server is up, and can read its ledger."""

    status: Literal["up"]


class Ids(TypedDict):
    """Which run it is about."""

    sessionId: Id
    runId: Id


class Session(TypedDict):
    """Conversation metadata, never its messages."""

    sessionId: Id
    status: Literal["ACTIVE", "EXPIRED"]
    messagePairCount: int
    createdAt: Instant
    lastActiveAt: Instant
    expiresAt: Instant | None


class Erased(TypedDict):
    """When, by whom and why a content was erased."""

    at: Instant
    actor: str | None
    reason: str


class ContentFacts(TypedDict):
    """What is known of a piece of free text."""

    digest: Digest
    """Salted SHA-256, as the events name it."""
    sizeBytes: int
    mediaType: str | None
    """Null where there are no bytes: nothing that is left vouches for it then."""
    state: ContentState
    erasure: NotRequired[Erased]


class Content(ContentFacts):
    """A piece of free text."""

    text: str | None
    """Null where only the digest was kept, or where it was erased."""


class RunSummary(TypedDict):
    """One line of a run list."""

    runId: Id
    sessionId: Id
    query: str | None
    status: RunStatus
    agentFlow: str | None
    answerPreview: str | None
    stepCount: int
    toolCallCount: int
    createdAt: Instant
    updatedAt: Instant


class RunFacts(TypedDict):
    """What every line of the list of all runs says of its run, and the run itself, too."""

    agent: str | None
    agentVersion: str | None
    actor: str | None
    environment: str | None
    labels: dict[str, str]
    outcomeReason: str | None
    degraded: bool
    usageUnknownCount: int
    """Model attempts whose usage nobody reported; never counted as 0."""
    currency: str | None
    costUnknownCount: int
    timeoutUs: int
    endedAt: Instant | None
    elapsedUs: int | None
    incidents: CountMap
    eventCount: int


class RunLine(RunSummary, RunFacts):
    """One line of the list of all runs."""

    inputTokens: int | None
    outputTokens: int | None
    costMicros: int | None
    useful: bool | None
    checkpointed: bool


class SessionLine(Session):
    """One line of the list of all sessions."""

    runCount: int
    newestRun: RunLine | None


class Resources(TypedDict, total=False):
    """Amounts by resource; a resource that is not named has no limit, or was not used."""

    modelCalls: int
    toolCalls: int
    inputTokens: int
    outputTokens: int
    totalTokens: int
    runBytes: int
    costMicros: int
    repeatedCalls: int
    perToolDefault: int
    perTool: CountMap
    """By the tool's exact name."""


Transition = TypedDict("Transition", {"n": int, "from": str | None, "to": str, "cause": str | None})
"""A transition that the graph took."""


class OrchestrationTrace(TypedDict):
    """How the run's graph went: what happened, and nothing else."""

    version: int
    transitions: list[Transition]
    transitionCount: int
    truncated: bool
    finalNode: str | None
    terminationReason: str | None
    degraded: bool
    evidenceRetryCount: int


class Run(RunSummary, RunFacts):
    """Everything that is known of the run itself."""

    parentRunId: Id | None
    continuesRunId: Id | None
    traceparent: str | None
    limits: Resources
    observedLimits: Resources
    """Limits that refuse nothing."""
    usage: Resources
    reserved: Resources
    """The part of `usage` that is an estimate."""
    priceTable: str | None
    startedAt: Instant
    cancelReason: str | None
    error: Content | None
    refused: dict[str, Any] | None
    """What ran out: `resource`, `amount`, `used`, `limit`, `boundary`."""
    answerContent: ContentFacts | None
    orchestrationTrace: OrchestrationTrace | None
    headLink: Digest


class Attempted(TypedDict):
    """What a step and a tool invocation have in common."""

    runId: Id
    sessionId: Id
    boundary: str
    scope: str
    startedAt: Instant
    startedElapsedUs: int
    durationUs: int | None
    timeoutUs: int | None
    hiddenRetryCount: int
    failure: str | None
    error: Content | None
    input: Content | None
    output: Content | None


class AgentStep(Attempted):
    """One logical model step, its attempts counted inside."""

    stepNo: int
    name: str
    model: str | None
    status: Literal["RUNNING", "SUCCESS", "FAILED", "ABANDONED"]
    attemptCount: int
    inputTokens: int | None
    outputTokens: int | None
    costMicros: int | None
    firstOutputUs: int | None
    outputChunks: int | None


class ToolInvocation(Attempted):
    """One granted attempt of a tool."""

    invocationNo: int
    attemptId: str
    toolName: str
    callId: str | None
    """The framework's own id, a label kept exactly."""
    toolKey: str | None
    effect: str | None
    status: Literal["RUNNING", "SUCCESS", "FAILED", "ABANDONED", "LATE"]


class Trace(TypedDict):
    """Exactly one run."""

    chatSession: Session
    run: Run
    agentSteps: list[AgentStep]
    toolInvocations: list[ToolInvocation]
    selfEvaluation: dict[str, dict[str, Any]] | None
    """What each evaluator said, by the evaluator's exact name."""
    answer: str | None
    feedback: dict[str, Any] | None
    """The feedback that counts."""


class Event(TypedDict):
    """One event of a run, as it is stored."""

    seq: int
    eventId: str
    type: str
    version: int
    occurredAt: Instant
    recordedAt: Instant
    recordedUs: int
    """The same in microseconds, as the link commits to it."""
    elapsedUs: int | None
    body: dict[str, Any]
    """To the byte what was recorded and hashed; its fields keep the names that they have there."""
    bodyHash: Digest
    link: Digest


class FeedbackBound(Ids):
    """The run that feedback was bound to."""

    useful: bool
    caseId: str | None
    """The case that useful feedback made."""


class CancellationAsked(Ids):
    """The run was asked to stop."""

    askedBefore: bool


class AlreadyEnded(Ids):
    """How the run had ended before."""

    outcome: RunStatus
