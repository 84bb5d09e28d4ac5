"""One row of each projection, as it is written: fields are the table's columns, in order."""

from __future__ import annotations

from typing import NamedTuple

FOLD_VERSION = 2
"""Raised when a fold gives other rows for the same events; older rows wait for a rebuild."""


class RunRow(NamedTuple):
    """A row of `diagnosis_run`."""

    run_id: str
    session_id: str
    status: str
    outcome_reason: str | None
    agent_flow: str | None
    agent: str | None
    agent_version: str | None
    actor: str | None
    environment: str | None
    labels: str | None
    parent_run_id: str | None
    continues_run_id: str | None
    traceparent: str | None
    policy_digest: str | None
    limits: str
    usage: str
    usage_unknown_count: int
    timeout_us: int
    created_us: int
    updated_us: int
    ended_us: int | None
    elapsed_us: int | None
    cancel_reason: str | None
    query_digest: str | None
    answer_digest: str | None
    error_type: str | None
    error_digest: str | None
    refused: str | None
    degraded: int
    step_count: int
    tool_call_count: int
    self_evaluation: str | None
    feedback: str | None
    fold_version: int
    orchestration_trace: str | None
    currency: str | None
    price_table: str | None
    cost_unknown_count: int | None
    reserved: str | None
    incidents: str | None


class RunMoving(NamedTuple):
    """What of a row of `diagnosis_run` changes after the run's first event."""

    status: str
    outcome_reason: str | None
    agent_flow: str | None
    usage: str
    usage_unknown_count: int
    updated_us: int
    ended_us: int | None
    elapsed_us: int | None
    cancel_reason: str | None
    answer_digest: str | None
    error_type: str | None
    error_digest: str | None
    refused: str | None
    degraded: int
    step_count: int
    tool_call_count: int
    self_evaluation: str | None
    feedback: str | None
    orchestration_trace: str | None
    cost_unknown_count: int | None
    reserved: str | None
    incidents: str | None


class StepRow(NamedTuple):
    """A row of `agent_step`."""

    run_id: str
    step_no: int
    session_id: str
    boundary: str
    scope: str
    name: str
    model: str | None
    status: str
    attempt_count: int
    started_us: int
    started_elapsed_us: int
    duration_us: int | None
    input_tokens: int | None
    output_tokens: int | None
    failure: str | None
    error_digest: str | None
    input_digest: str | None
    output_digest: str | None
    timeout_us: int | None
    cost_micros: int | None
    first_output_us: int | None
    output_chunks: int | None
    hidden_retry_count: int | None


class ToolRow(NamedTuple):
    """A row of `tool_invocation`."""

    run_id: str
    invocation_no: int
    session_id: str
    attempt_id: str
    boundary: str
    scope: str
    tool_name: str
    call_id: str | None
    tool_key: str | None
    effect: str | None
    status: str
    started_us: int
    started_elapsed_us: int
    duration_us: int | None
    failure: str | None
    error_digest: str | None
    input_digest: str | None
    output_digest: str | None
    timeout_us: int | None
    hidden_retry_count: int | None


class CaseRow(NamedTuple):
    """A row of `case_library`."""

    case_id: str
    diagnosis_id: str
    session_id: str
    query_digest: str | None
    answer_digest: str | None
    verdict: str
    withdrawn: int
    created_us: int


RUN_FIXED = frozenset(RunRow._fields).difference(RunMoving._fields)
"""Columns that say what a run's first event said."""
ATTEMPT_FIXED = frozenset(
    {
        "run_id",
        "session_id",
        "step_no",
        "invocation_no",
        "attempt_id",
        "boundary",
        "scope",
        "name",
        "tool_name",
        "model",
        "call_id",
        "tool_key",
        "effect",
        "started_us",
        "started_elapsed_us",
        "input_digest",
    }
)
"""Columns that say how a step or an invocation started."""
CASE_FIXED = frozenset(CaseRow._fields) - {"withdrawn"}


class SessionShare(NamedTuple):
    """What one event adds to its row of `chat_session`: sums, minima and maxima, so that no order matters."""

    session_id: str
    created_us: int
    last_active_us: int
    message_pair_count: int
    ttl_us: int | None = None

    def plus(self, other: SessionShare) -> SessionShare:
        """Both shares as one."""
        return SessionShare(
            self.session_id,
            min(self.created_us, other.created_us),
            max(self.last_active_us, other.last_active_us),
            self.message_pair_count + other.message_pair_count,
            self.ttl_us if self.ttl_us is not None else other.ttl_us,
        )

    @property
    def row(self) -> tuple[object, ...]:
        """What all shares together make of it: these, and when the session expires."""
        return (*self, None if self.ttl_us is None else self.last_active_us + self.ttl_us)
