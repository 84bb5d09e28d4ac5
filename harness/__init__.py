"""A harness that holds an agent's run to its limits and records every boundary the run crosses."""

from harness.boundary.stream import ModelStream
from harness.boundary.tool_calls import ToolCall, ToolResult, ToolStatus
from harness.budget.limits import Limits, ScopeLimits
from harness.budget.prices import Price, PriceTable
from harness.budget.usage import Excess, TokenUsage
from harness.cancellation import CancelReason
from harness.clock import ManualClock, MonotonicClock, SystemMonotonicClock, SystemWallClock, WallClock
from harness.content import Capture, CapturePolicy, Content, Redactor
from harness.context import Run, RunContext
from harness.deadline import REMAINING_HEADER, Deadline
from harness.errors import (
    AlreadyTerminated,
    AttemptTimedOut,
    CapacityExceeded,
    HarnessClosed,
    HarnessError,
    HiddenRetriesEnabled,
    IllegalEvent,
    InvalidInput,
    LedgerUnavailable,
    OtherProcess,
    RunEnded,
    RunningLoop,
    ScopeExhausted,
    ScopeNotOpen,
    TerminationNotRecorded,
    ToolDenied,
    UnknownClient,
    UnpricedModel,
)
from harness.handles import Budget, BudgetSnapshot, Cancellation, Lifecycle, RunCapacity
from harness.hidden_retries import Declared, refuse_hidden_retries
from harness.hooks.observers import Observed
from harness.hooks.policies import Decision, ToolRequest
from harness.hooks.tool_rules import ToolRules
from harness.ids import IdSource, RandomIds
from harness.journal import Journal, Recorded, Submission
from harness.keys import ToolCallKeyFactory
from harness.lifecycle import Outcome, Termination
from harness.memory_journal import MemoryJournal
from harness.retry import (
    AGENT_POLICY,
    EVIDENCE_REPAIR_POLICY,
    ROUTER_POLICY,
    SEMANTIC_GUARD_POLICY,
    TECHNICAL_FAILURES,
    TOOL_POLICY,
    FailureType,
    OperationKind,
    RetryPolicies,
    RetryPolicy,
    TypedFailure,
)
from harness.run import Harness
from harness.state import RunState, evolve
from harness.sync.harness import SyncHarness
from harness.sync.stream import SyncModelStream

__all__ = [
    "AGENT_POLICY",
    "EVIDENCE_REPAIR_POLICY",
    "REMAINING_HEADER",
    "ROUTER_POLICY",
    "SEMANTIC_GUARD_POLICY",
    "TECHNICAL_FAILURES",
    "TOOL_POLICY",
    "AlreadyTerminated",
    "AttemptTimedOut",
    "Budget",
    "BudgetSnapshot",
    "CancelReason",
    "Cancellation",
    "CapacityExceeded",
    "Capture",
    "CapturePolicy",
    "Content",
    "Deadline",
    "Decision",
    "Declared",
    "Excess",
    "FailureType",
    "Harness",
    "HarnessClosed",
    "HarnessError",
    "HiddenRetriesEnabled",
    "IdSource",
    "IllegalEvent",
    "InvalidInput",
    "Journal",
    "LedgerUnavailable",
    "Lifecycle",
    "Limits",
    "ManualClock",
    "MemoryJournal",
    "ModelStream",
    "MonotonicClock",
    "Observed",
    "OperationKind",
    "OtherProcess",
    "Outcome",
    "Price",
    "PriceTable",
    "RandomIds",
    "Recorded",
    "Redactor",
    "RetryPolicies",
    "RetryPolicy",
    "Run",
    "RunCapacity",
    "RunContext",
    "RunEnded",
    "RunState",
    "RunningLoop",
    "ScopeExhausted",
    "ScopeLimits",
    "ScopeNotOpen",
    "Submission",
    "SyncHarness",
    "SyncModelStream",
    "SystemMonotonicClock",
    "SystemWallClock",
    "Termination",
    "TerminationNotRecorded",
    "TokenUsage",
    "ToolCall",
    "ToolCallKeyFactory",
    "ToolDenied",
    "ToolRequest",
    "ToolResult",
    "ToolRules",
    "ToolStatus",
    "TypedFailure",
    "UnknownClient",
    "UnpricedModel",
    "WallClock",
    "evolve",
    "refuse_hidden_retries",
]
