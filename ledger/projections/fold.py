"""The fold of one run: its row, and the rows of steps, tools and case that an event changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness import events as e
from harness.state import RUNNING, advance, begin, charge
from ledger.projections.changes import Changes
from ledger.projections.incidents import incident_of
from ledger.projections.rows import CaseRow, SessionShare
from ledger.projections.run import RunProjection
from ledger.projections.steps import LiveStep, begin_step, evolve_step, fail_unretried, step_boundary
from ledger.projections.tools import LiveTool, evolve_tool


def project(run: RunProjection | None, event: e.Event, changes: Changes) -> RunProjection:
    """The run after one event, as `project_all`."""
    projected = project_all(run, (event,), changes)
    assert projected is not None, "there is an event"
    return projected


def project_all(run: RunProjection | None, events: Iterable[e.Event], changes: Changes) -> RunProjection | None:
    """The run after all of `events`, beside `run` as it was; the rows that they changed are put into `changes`.

    `IllegalEvent` if one of them cannot come there, and then `changes` are of no use.
    """
    rest = iter(events)
    if run is not None:
        run = run.copy()
        run.state = run.state.copy()
    elif (first := next(rest, None)) is not None:
        run = _begin(first, changes)
    else:
        return None
    for event in rest:
        advance_run(run, event, changes)
    changes.runs[run.state.run_id] = run
    return run


def advance_run(run: RunProjection, event: e.Event, changes: Changes) -> None:
    """Change `run` to that after `event`, as `harness.state.advance` does with its state; see there."""
    advance(run.state, event)
    if event.occurred_us > run.updated_us:
        run.updated_us = event.occurred_us
    step = _STEPS.get(event.type)
    if step is not None:
        step(run, event, changes)


def _begin(event: Any, changes: Changes) -> RunProjection:
    state = begin(event)
    changes.begun.add(state.run_id)
    changes.share(SessionShare(state.session_id, state.started_us, state.started_us, 0))
    return RunProjection(state, event, state.started_us)


def _attempt_started(run: RunProjection, event: e.AttemptStarted, changes: Changes) -> None:
    if event.kind == "tool":
        run.tool_call_count += 1
        _put_tool(run, event.attempt_id, LiveTool(run.tool_call_count, event), changes)
    elif event.kind == "model":
        key = step_boundary(event)
        known = run.steps.get(key)
        if known is None:
            run.step_count += 1
            _put_step(run, key, begin_step(event, run.step_count), changes)
        else:
            _put_step(run, key, evolve_step(known, event), changes)


def _attempt(run: RunProjection, event: e.AttemptEvent, changes: Changes) -> None:
    tool = run.tools.get(event.attempt_id)
    if tool is not None:
        _put_tool(run, event.attempt_id, evolve_tool(tool, event), changes)
        return
    key = step_boundary(event)
    step = run.steps.get(key)
    if step is not None:
        _put_step(run, key, evolve_step(step, event), changes)


def _put_tool(run: RunProjection, attempt_id: str, tool: LiveTool, changes: Changes) -> None:
    run.tools = _with(run.tools, attempt_id, tool)
    changes.tools[run.state.run_id, tool.invocation_no] = tool


def _put_step(run: RunProjection, boundary: str, step: LiveStep, changes: Changes) -> None:
    run.steps = _with(run.steps, boundary, step)
    changes.steps[run.state.run_id, step.step_no] = step


def _with(rows: Mapping[str, Any], key: str, row: LiveStep | LiveTool) -> Mapping[str, Any]:
    """`rows` with that one; without it where it is over."""
    changed = {**rows, key: row}
    if row.is_over:
        del changed[key]
    return changed


def _incident(run: RunProjection, event: Any, changes: Changes) -> None:
    incident = incident_of(event)
    if incident is not None:
        run.incidents = charge(run.incidents, {incident: 1})


def _retried_unseen(run: RunProjection, event: e.HiddenRetryDetected, changes: Changes) -> None:
    _incident(run, event, changes)
    _attempt(run, event, changes)


def _moved(run: RunProjection, event: e.GraphTransitioned, changes: Changes) -> None:
    run.orchestration = run.orchestration.move(event)


def _graph_finished(run: RunProjection, event: e.GraphFinished, changes: Changes) -> None:
    run.orchestration = run.orchestration.finish(event)


def _answered(run: RunProjection, event: e.AnswerRecorded, changes: Changes) -> None:
    run.answer_digest = event.answer_digest
    changes.share(SessionShare(event.session_id, run.state.started_us, run.state.started_us, 1))


def _terminated(run: RunProjection, event: e.RunTerminated, changes: Changes) -> None:
    run.terminated = event
    run.orchestration = run.orchestration.end(event)
    changes.share(SessionShare(event.session_id, run.state.started_us, event.occurred_us, 0))
    for boundary, step in run.steps.items():
        if step.status == RUNNING:
            _put_step(run, boundary, fail_unretried(step), changes)


def _evaluated(run: RunProjection, event: e.EvaluationRecorded, changes: Changes) -> None:
    run.evaluations = {**run.evaluations, event.evaluator: event}


def _feedback_given(run: RunProjection, event: e.FeedbackRecorded, changes: Changes) -> None:
    run.feedback = event
    _weigh_case(run, changes)


def _case_recorded(run: RunProjection, event: e.CaseRecorded, changes: Changes) -> None:
    if run.case is not None:
        return
    run.case = CaseRow(
        case_id=event.case_id,
        diagnosis_id=event.run_id,
        session_id=event.session_id,
        query_digest=run.started.query_digest,
        answer_digest=run.answer_digest,
        verdict=event.verdict,
        withdrawn=0,
        created_us=event.occurred_us,
    )
    changes.cases[event.case_id] = run.case
    _weigh_case(run, changes)


def _weigh_case(run: RunProjection, changes: Changes) -> None:
    """The case of a run whose last feedback is not useful is withdrawn, and comes back with the next useful one."""
    if run.case is None or run.feedback is None:
        return
    withdrawn = int(not run.feedback.useful)
    if run.case.withdrawn != withdrawn:
        run.case = run.case._replace(withdrawn=withdrawn)
        changes.cases[run.case.case_id] = run.case


def _erased(run: RunProjection, event: e.ContentErased, changes: Changes) -> None:
    run.erasure_count += 1


_STEPS: dict[str, Callable[[RunProjection, Any, Changes], None]] = {
    "attempt.started": _attempt_started,
    "attempt.succeeded": _attempt,
    "attempt.failed": _attempt,
    "attempt.abandoned": _attempt,
    "attempt.finished_late": _attempt,
    "usage.settled": _attempt,
    "hidden_retry.detected": _retried_unseen,
    "scope.exhausted": _incident,
    "limit.would_reject": _incident,
    "policy.decided": _incident,
    "graph.transitioned": _moved,
    "graph.finished": _graph_finished,
    "answer.recorded": _answered,
    "run.terminated": _terminated,
    "evaluation.recorded": _evaluated,
    "feedback.recorded": _feedback_given,
    "case.recorded": _case_recorded,
    "content.erased": _erased,
}
"""By type of event; one of another type changes the run's own row only."""
