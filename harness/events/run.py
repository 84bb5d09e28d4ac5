"""The beginning and the one end of a run, and what it decided on the way (SPEC E6, E11, D17)."""

from typing import Literal

from harness.events.base import BoundaryEvent, Code, Count, CountMap, Digest, Id, Name, NameMap, Redaction, RunEvent

TerminalOutcome = Literal["SUCCESS", "FAILED", "CANCELLED", "TIMED_OUT", "BUDGET_EXHAUSTED"]


class RunStarted(RunEvent):
    """Who runs what, for whom, and within which limits."""

    type: Literal["run.started"] = "run.started"
    version: Literal[1] = 1
    limits: CountMap
    """By resource; one that is only observed stands under `observe:` and the resource (SPEC D13)."""
    timeout_us: Count
    agent: Name | None = None
    agent_version: Name | None = None
    actor: Name | None = None
    """A pseudonymous code, since it can never be erased."""
    environment: Name | None = None
    labels: NameMap | None = None
    parent_run_id: Id | None = None
    continues_run_id: Id | None = None
    traceparent: Name | None = None
    policy_digest: Digest | None = None
    currency: Code | None = None
    """What `cost_micros` are micro-units of."""
    price_table: Name | None = None
    """The version of the prices by which cost was reckoned."""
    flow: Code | None = None
    query_digest: Digest | None = None
    query_bytes: Count | None = None
    query_stored: bool | None = None
    query_redaction: Redaction | None = None


class FlowSelected(BoundaryEvent):
    """The router's choice; not a transition of the graph."""

    type: Literal["flow.selected"] = "flow.selected"
    version: Literal[1] = 1
    flow: Code


class AnswerRecorded(BoundaryEvent):
    """The answer that the run gave, recorded together with its termination."""

    type: Literal["answer.recorded"] = "answer.recorded"
    version: Literal[1] = 1
    answer_digest: Digest
    answer_bytes: Count
    answer_stored: bool
    answer_redaction: Redaction | None = None


class RunTerminated(BoundaryEvent):
    """The outcome. `occurred_us` and `elapsed_us` are the time of the decision (SPEC D4)."""

    type: Literal["run.terminated"] = "run.terminated"
    version: Literal[1] = 1
    outcome: TerminalOutcome
    reason: Code
    resource: Name | None = None
    """The limit that ended the run, with what had been used of it."""
    used: Count | None = None
    limit: Count | None = None
    error_type: Name | None = None
    error_digest: Digest | None = None
    error_bytes: Count | None = None
    error_stored: bool | None = None
    error_redaction: Redaction | None = None
