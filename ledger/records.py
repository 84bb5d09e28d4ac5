"""What the read side returns: one frozen record per row that a reader may see.

Times are integers in microseconds since the Unix epoch (``_us``), or microseconds since the run's start where
the name says ``elapsed``. Free text is a `ContentView`, because any content may have been erased (SPEC E10).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

ContentState = Literal["stored", "digest_only", "erased", "damaged"]
"""`damaged`: it was stored, and what is there now cannot be what was."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """By whom, why and when a content was erased, as its run was told."""

    erased_us: int
    reason: str
    actor: str | None
    erasure_id: str


@dataclass(frozen=True, slots=True)
class ContentView:
    """A piece of free-form content as it can be read today."""

    digest: str
    """Salted SHA-256 in lower-case hexadecimal, as the event names it."""
    size_bytes: int
    media_type: str
    """Empty where there are no bytes: nothing that is left vouches for it then."""
    state: ContentState
    data: bytes | None
    """The bytes, or None where only the digest was kept or the content was erased."""
    erasure: Erasure | None = None

    @property
    def text(self) -> str | None:
        """The bytes as UTF-8 text with undecodable bytes replaced; None where there are no bytes."""
        return None if self.data is None else self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ChatSession:
    """Conversation metadata, never the message history (SPEC R1)."""

    session_id: str
    status: Literal["ACTIVE", "EXPIRED"]
    """Computed at reading from `expires_us`."""
    message_pair_count: int
    """Runs of the session whose answer was recorded."""
    created_us: int
    last_active_us: int
    expires_us: int | None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a run list; no detail rows behind it (SPEC R5)."""

    run_id: str
    session_id: str
    query: str | None
    status: str
    """RUNNING, SUCCESS, FAILED, CANCELLED, TIMED_OUT or BUDGET_EXHAUSTED."""
    agent_flow: str | None
    """CHAT_SIMPLE, CHAT_GRAPH or AI_OPS; None until the flow was selected."""
    answer_preview: str | None
    step_count: int
    tool_call_count: int
    created_us: int
    updated_us: int


@dataclass(frozen=True, slots=True)
class UsefulCase:
    """A case that useful feedback made of a run, as somebody may learn from it (SPEC R6)."""

    case_id: str
    session_id: str
    run_id: str
    query: str
    answer: str
    verdict: str
    """The gatekeeper's."""
    created_us: int


@dataclass(frozen=True, slots=True)
class RunDetail:
    """Everything the `diagnosis_run` row says of one run."""

    summary: RunSummary
    agent: str | None
    agent_version: str | None
    actor: str | None
    environment: str | None
    labels: Mapping[str, str]
    parent_run_id: str | None
    continues_run_id: str | None
    traceparent: str | None
    limits: Mapping[str, int]
    """By resource: `model_calls`, `tool_calls`, `tool:NAME`, `tool_default`, `input_tokens`, `run_bytes` and so on."""
    observed_limits: Mapping[str, int]
    """The same, of limits that are only observed: what passes them is let through (SPEC D13)."""
    usage: Mapping[str, int]
    """The keys of limits without `tool_default`, as charged so far; a key never charged is absent."""
    reserved: Mapping[str, int]
    """The part of `usage` that is an estimate of attempts which have not told what they used."""
    usage_unknown_count: int
    """Model attempts whose token usage nobody reported; never counted as 0 (SPEC H4a)."""
    currency: str | None
    """What `cost_micros`, a resource, are micro-units of; None where nothing was priced."""
    price_table: str | None
    """The version of the prices."""
    cost_unknown_count: int
    """Model attempts whose cost nobody could reckon, where cost is reckoned; never counted as 0 (SPEC H4)."""
    incidents: Mapping[str, int]
    """How many `hidden_retries`, `calls_denied`, `scopes_exhausted` and `limits_passed` (observed ones) there were."""
    timeout_us: int
    started_us: int
    ended_us: int | None
    elapsed_us: int | None
    """From start to the decision that ended the run; None while it is running."""
    outcome_reason: str | None
    cancel_reason: str | None
    error: ContentView | None
    """The message of the exception that failed the run."""
    refused: Mapping[str, Any] | None
    """What ran out: `resource`, `amount`, `used`, `limit`, `boundary`; None unless a reservation was rejected."""
    degraded: bool
    orchestration_trace: Mapping[str, Any] | None
    event_count: int
    head_link: str
    """Link of the run's last event, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class AgentStep:
    """One logical model step with its attempts counted inside (SPEC R3)."""

    run_id: str
    session_id: str
    step_no: int
    """From 1, in the order the steps started."""
    boundary: str
    """Boundary identity without the attempt number (SPEC D7)."""
    scope: str
    """Scope path of the boundary, for grouping; empty at the root of the run."""
    name: str
    model: str | None
    status: Literal["RUNNING", "SUCCESS", "FAILED", "ABANDONED"]
    attempt_count: int
    started_us: int
    started_elapsed_us: int
    duration_us: int | None
    """From the start of the first attempt to the end of the last; None while open."""
    input_tokens: int | None
    output_tokens: int | None
    failure: str | None
    """Failure type of the last failed attempt."""
    error: ContentView | None
    input: ContentView | None
    output: ContentView | None
    timeout_us: int | None
    """How long the last attempt might take; None where only its scope and run bounded it."""
    cost_micros: int | None
    """Micro-units of the run's currency, of all attempts; None where nobody knows."""
    first_output_us: int | None
    """Of a stream: from the start of the last attempt to its first chunk."""
    output_chunks: int | None
    hidden_retry_count: int
    """Requests that were no recorded attempts, as far as they were seen before the step was over."""


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """One granted attempt of a tool, late ones included, refused ones not (SPEC R3)."""

    run_id: str
    session_id: str
    invocation_no: int
    attempt_id: str
    boundary: str
    scope: str
    tool_name: str
    call_id: str | None
    """The framework's own tool-call id, a label kept exactly."""
    tool_key: str | None
    effect: str | None
    """`read` or `write` where the caller declared it."""
    status: Literal["RUNNING", "SUCCESS", "FAILED", "ABANDONED", "LATE"]
    started_us: int
    started_elapsed_us: int
    duration_us: int | None
    failure: str | None
    error: ContentView | None
    input: ContentView | None
    output: ContentView | None
    timeout_us: int | None
    hidden_retry_count: int


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event of a run as it is stored."""

    pos: int
    seq: int
    """From 1, contiguous in the run."""
    event_id: str
    type: str
    version: int
    occurred_us: int
    recorded_us: int
    elapsed_us: int | None
    """Monotonic time since the run's start; None on events that the run's owner did not write."""
    fields: Mapping[str, Any]
    """The body as parsed JSON, the envelope included."""
    body: bytes
    body_hash: str
    link: str


@dataclass(frozen=True, slots=True)
class RunTrace:
    """Exactly one run (SPEC R4)."""

    chat_session: ChatSession
    run: RunDetail
    agent_steps: tuple[AgentStep, ...]
    tool_invocations: tuple[ToolInvocation, ...]
    self_evaluation: Mapping[str, Any] | None
    answer: ContentView | None
    feedback: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Vitals:
    """What there is to count in a ledger at little cost."""

    runs_open: int
    followers: int
    """Followers of this reader that wait at the end of the log."""
    wal_bytes: int | None
    """Of the log beside a file."""
    last_leaf: int
    """The last number of the public order, -1 if there is none."""
    unsequenced: int | None
    """Events without a number yet; None where each has one at once."""
    unsequenced_s: float | None
    """Since the first of them was recorded; 0 if there is none."""
    follower_lags: Mapping[str, int]
    """How many events that it wants each named follower is behind the public order."""


Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """A keyset page: rows, and the cursor that asks for the next one."""

    rows: tuple[Row, ...]
    next_cursor: str | None
