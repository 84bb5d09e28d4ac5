"""The fold of one run: its row, and the rows of steps, tools and case that an event changes.

Bounded: what is kept are the rows that may still change, not all that there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness import events as e
from harness.state import NOTHING, RUNNING, RunState, charge, evolve, reserved_in
from ledger.bytes import canonical
from ledger.projections.incidents import incident_of
from ledger.projections.orchestration import NO_GRAPH, Orchestration
from ledger.projections.rows import FOLD_VERSION, CaseRow, RunRow, SessionShare, StepRow, ToolRow
from ledger.projections.steps import (
    LiveStep,
    begin_step,
    begin_tool,
    evolve_step,
    evolve_tool,
    fail_unretried,
    step_boundary,
)


class RunProjection(NamedTuple):
    """What a run's events so far add up to."""

    state: RunState
    started: e.RunStarted
    updated_us: int
    step_count: int = 0
    tool_call_count: int = 0
    steps: Mapping[str, LiveStep] = NOTHING
    """By step boundary."""
    tools: Mapping[str, ToolRow] = NOTHING
    """By attempt id."""
    orchestration: Orchestration = NO_GRAPH
    answer_digest: str | None = None
    terminated: e.RunTerminated | None = None
    evaluations: Mapping[str, e.EvaluationRecorded] = NOTHING
    """By evaluator."""
    feedback: e.FeedbackRecorded | None = None
    case: CaseRow | None = None
    incidents: Mapping[str, int] = NOTHING
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
            **self.moving,
        )

    @property
    def moving(self) -> dict[str, Any]:
        """What of the row changes after the run's first event: all columns but `RUN_FIXED`."""
        state, end = self.state, self.terminated
        return {
            "status": state.outcome,
            "outcome_reason": state.reason,
            "agent_flow": state.flow,
            "usage": canonical(dict(state.usage)),
            "usage_unknown_count": state.usage_unknown_count,
            "updated_us": self.updated_us,
            "ended_us": state.ended_us,
            "elapsed_us": state.ended_elapsed_us,
            "cancel_reason": state.cancel_signalled or state.cancel_requested,
            "answer_digest": self.answer_digest,
            "error_type": end.error_type if end else None,
            "error_digest": end.error_digest if end else None,
            "refused": _refused(state),
            "degraded": int(self.orchestration.finished is not None and self.orchestration.finished.degraded),
            "step_count": self.step_count,
            "tool_call_count": self.tool_call_count,
            "self_evaluation": _evaluation(self.evaluations),
            "feedback": _feedback(self.feedback),
            "orchestration_trace": self.orchestration.as_json(),
            "cost_unknown_count": state.cost_unknown_count if state.is_priced else None,
            "reserved": _amounts(reserved_in(state)),
            "incidents": _amounts(self.incidents),
        }


@dataclass(slots=True)
class Changes:
    """Rows to write, the last state of each; one of these serves any number of events and runs."""

    runs: dict[str, RunProjection] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    """Those of the runs that have no row yet."""
    steps: dict[tuple[str, int], StepRow] = field(default_factory=dict)
    tools: dict[tuple[str, int], ToolRow] = field(default_factory=dict)
    cases: dict[str, CaseRow] = field(default_factory=dict)
    sessions: dict[str, SessionShare] = field(default_factory=dict)

    def step(self, step: LiveStep) -> None:
        self.steps[step.row.run_id, step.row.step_no] = step.row

    def tool(self, row: ToolRow) -> None:
        self.tools[row.run_id, row.invocation_no] = row

    def share(self, share: SessionShare) -> None:
        known = self.sessions.get(share.session_id)
        self.sessions[share.session_id] = share if known is None else known.plus(share)

    def merge(self, other: Changes) -> None:
        """Take over what `other` has, which came later."""
        self.runs |= other.runs
        self.begun |= other.begun
        self.steps |= other.steps
        self.tools |= other.tools
        self.cases |= other.cases
        for share in other.sessions.values():
            self.share(share)


def project(run: RunProjection | None, event: e.Event, changes: Changes) -> RunProjection:
    """The run after `event`, with the rows that it changed put into `changes`; `IllegalEvent` if it cannot come."""
    if run is None:
        state = evolve(None, event)
        assert isinstance(event, e.RunStarted), "the state's fold begins with run.started only"
        run = RunProjection(state, event, event.occurred_us)
        changes.begun.add(state.run_id)
        changes.share(SessionShare(event.session_id, event.occurred_us, event.occurred_us, 0))
    else:
        updated_us = max(run.updated_us, event.occurred_us)
        run = run._replace(state=evolve(run.state, event), updated_us=updated_us)
        incident = incident_of(event)
        if incident is not None:
            run = run._replace(incidents=charge(run.incidents, {incident: 1}))
        if isinstance(event, e.AttemptEvent):
            run = _attempt(run, event, changes)
        else:
            run = _other(run, event, changes)
    changes.runs[run.state.run_id] = run
    return run


def project_all(run: RunProjection | None, events: Iterable[e.Event], changes: Changes) -> RunProjection | None:
    """The run after all of `events`."""
    for event in events:
        run = project(run, event, changes)
    return run


def _attempt(run: RunProjection, event: e.AttemptEvent, changes: Changes) -> RunProjection:
    if isinstance(event, e.AttemptStarted):
        if event.kind == "tool":
            tool = begin_tool(event, run.tool_call_count + 1)
            changes.tool(tool)
            return run._replace(tool_call_count=tool.invocation_no, tools={**run.tools, event.attempt_id: tool})
        if event.kind != "model":
            return run
    known = run.tools.get(event.attempt_id)
    if known is not None:
        row = evolve_tool(known, event)
        if row is known:
            return run
        changes.tool(row)
        may_change = row.status in (RUNNING, "ABANDONED")
        return run._replace(tools=_with(run.tools, event.attempt_id, row if may_change else None))
    return _step(run, event, changes)


def _step(run: RunProjection, event: e.AttemptEvent, changes: Changes) -> RunProjection:
    key = step_boundary(event)
    known = run.steps.get(key)
    if known is not None:
        step = evolve_step(known, event)
    elif isinstance(event, e.AttemptStarted):
        step = begin_step(event, run.step_count + 1)
        run = run._replace(step_count=step.row.step_no)
    else:
        return run
    changes.step(step)
    return run._replace(steps=_with(run.steps, key, None if step.is_over else step))


def _other(run: RunProjection, event: e.Event, changes: Changes) -> RunProjection:
    match event:
        case e.GraphTransitioned() | e.GraphFinished():
            return run._replace(orchestration=run.orchestration.evolve(event))
        case e.AnswerRecorded():
            changes.share(SessionShare(event.session_id, run.state.started_us, run.state.started_us, 1))
            return run._replace(answer_digest=event.answer_digest)
        case e.RunTerminated():
            changes.share(SessionShare(event.session_id, run.state.started_us, event.occurred_us, 0))
            return _end(run._replace(terminated=event, orchestration=run.orchestration.evolve(event)), changes)
        case e.EvaluationRecorded():
            return run._replace(evaluations={**run.evaluations, event.evaluator: event})
        case e.FeedbackRecorded():
            return _case(run._replace(feedback=event), changes)
        case e.ContentErased():
            return run._replace(erasure_count=run.erasure_count + 1)
        case e.CaseRecorded() if run.case is None:
            case = CaseRow(
                case_id=event.case_id,
                diagnosis_id=event.run_id,
                session_id=event.session_id,
                query_digest=run.started.query_digest,
                answer_digest=run.answer_digest,
                verdict=event.verdict,
                withdrawn=0,
                created_us=event.occurred_us,
            )
            changes.cases[case.case_id] = case
            return _case(run._replace(case=case), changes)
    return run


def _end(run: RunProjection, changes: Changes) -> RunProjection:
    steps: dict[str, LiveStep] = {}
    for key, step in run.steps.items():
        if step.row.status == RUNNING:
            step = fail_unretried(step)
            changes.step(step)
        if not step.is_over:
            steps[key] = step
    return run._replace(steps=steps)


def _case(run: RunProjection, changes: Changes) -> RunProjection:
    """The case of a run whose last feedback is not useful is withdrawn, and comes back with the next useful one."""
    if run.case is None or run.feedback is None or run.case.withdrawn == int(not run.feedback.useful):
        return run
    case = run.case._replace(withdrawn=int(not run.feedback.useful))
    changes.cases[case.case_id] = case
    return run._replace(case=case)


def _with(rows: Mapping[str, Any], key: str, row: Any) -> Mapping[str, Any]:
    """`rows` with that one row; without it where it is None."""
    if row is not None:
        return {**rows, key: row}
    return {known: value for known, value in rows.items() if known != key}


def _amounts(amounts: Mapping[str, int]) -> str | None:
    return canonical(dict(amounts)) if amounts else None


def _refused(state: RunState) -> str | None:
    refusal = state.refusal
    if refusal is None:
        return None
    facts = {
        "resource": refusal.resource,
        "amount": refusal.amount,
        "used": refusal.used,
        "limit": refusal.limit,
        "boundary": refusal.boundary,
    }
    return canonical({name: value for name, value in facts.items() if value is not None})


def _evaluation(evaluations: Mapping[str, e.EvaluationRecorded]) -> str | None:
    if not evaluations:
        return None
    return canonical(
        {
            name: event.model_dump(include={"verdict", "usage", "rationale_digest"}, exclude_none=True)
            for name, event in evaluations.items()
        }
    )


def _feedback(event: e.FeedbackRecorded | None) -> str | None:
    if event is None:
        return None
    facts = event.model_dump(include={"useful", "actor", "comment_digest"}, exclude_none=True)
    return canonical({**facts, "recorded_us": event.occurred_us})
