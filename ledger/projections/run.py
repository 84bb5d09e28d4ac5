"""What one run's events add up to, and the run's row.

Bounded: what is kept are the rows that may still change, not all that there were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness import events as e
from harness.state import NOTHING, Evolving, RunState, reserved_in
from ledger.bytes import canonical
from ledger.projections.orchestration import NO_GRAPH, Orchestration
from ledger.projections.rows import FOLD_VERSION, CaseRow, RunMoving, RunRow
from ledger.projections.steps import LiveStep
from ledger.projections.tools import LiveTool


def _nothing() -> Mapping[str, Any]:
    return NOTHING


@dataclass
class RunProjection(Evolving):
    """What a run's events so far add up to."""

    state: RunState
    started: e.RunStarted
    updated_us: int
    step_count: int = 0
    tool_call_count: int = 0
    steps: Mapping[str, LiveStep] = field(default_factory=_nothing)
    """By step boundary."""
    tools: Mapping[str, LiveTool] = field(default_factory=_nothing)
    """By attempt id."""
    orchestration: Orchestration = NO_GRAPH
    answer_digest: str | None = None
    terminated: e.RunTerminated | None = None
    evaluations: Mapping[str, e.EvaluationRecorded] = field(default_factory=_nothing)
    """By evaluator."""
    feedback: e.FeedbackRecorded | None = None
    case: CaseRow | None = None
    incidents: Mapping[str, int] = field(default_factory=_nothing)
    """How often each thing happened that a plain course does not have."""
    erasure_count: int = 0
    """How often content of the run was erased."""

    @property
    def row(self) -> RunRow:
        """The run's row."""
        state, started = self.state, self.started
        return RunRow(
            run_id=state.run_id,
            session_id=state.session_id,
            agent=started.agent,
            agent_version=started.agent_version,
            actor=started.actor,
            environment=started.environment,
            labels=canonical(dict(started.labels)) if started.labels else None,
            parent_run_id=started.parent_run_id,
            continues_run_id=started.continues_run_id,
            traceparent=started.traceparent,
            policy_digest=started.policy_digest,
            limits=canonical(dict(state.limits)),
            timeout_us=state.timeout_us,
            created_us=state.started_us,
            query_digest=started.query_digest,
            fold_version=FOLD_VERSION,
            currency=started.currency,
            price_table=started.price_table,
            **self.moving._asdict(),
        )

    @property
    def moving(self) -> RunMoving:
        """What of the row changes after the run's first event."""
        state, end = self.state, self.terminated
        # In the order of its columns, as each append makes one, and by their names it takes three times as long.
        return RunMoving(
            state.outcome,
            state.reason,
            state.flow,
            canonical(dict(state.usage)),
            state.usage_unknown_count,
            self.updated_us,
            state.ended_us,
            state.ended_elapsed_us,
            state.cancel_signalled or state.cancel_requested,
            self.answer_digest,
            end.error_type if end else None,
            end.error_digest if end else None,
            _refused(state),
            int(self.orchestration.finished is not None and self.orchestration.finished.degraded),
            self.step_count,
            self.tool_call_count,
            _evaluation(self.evaluations),
            _feedback(self.feedback),
            self.orchestration.as_json(),
            state.cost_unknown_count if state.is_priced else None,
            _amounts(reserved_in(state)),
            _amounts(self.incidents),
        )


def _amounts(amounts: Mapping[str, int]) -> str | None:
    return canonical(dict(amounts)) if amounts else None


def _refused(state: RunState) -> str | None:
    refusal = state.refusal
    if refusal is None:
        return None
    return _known(
        resource=refusal.resource,
        amount=refusal.amount,
        used=refusal.used,
        limit=refusal.limit,
        boundary=refusal.boundary,
    )


def _evaluation(evaluations: Mapping[str, e.EvaluationRecorded]) -> str | None:
    if not evaluations:
        return None
    return canonical(
        {
            name: _facts(verdict=event.verdict, usage=event.usage, rationale_digest=event.rationale_digest)
            for name, event in evaluations.items()
        }
    )


def _feedback(event: e.FeedbackRecorded | None) -> str | None:
    if event is None:
        return None
    return _known(
        useful=event.useful,
        actor=event.actor,
        comment_digest=event.comment_digest,
        recorded_us=event.occurred_us,
    )


def _known(**facts: object) -> str:
    return canonical(_facts(**facts))


def _facts(**facts: object) -> dict[str, object]:
    """What is known of them; what is unknown is left out."""
    return {name: value for name, value in facts.items() if value is not None}
