"""The rows of single attempts: model steps with their attempts counted inside, and tool invocations (SPEC R3)."""

from __future__ import annotations

from dataclasses import dataclass

from harness import events as e
from harness.state import RUNNING, path_of
from ledger.projections.rows import StepRow, ToolRow


@dataclass(frozen=True, slots=True)
class LiveStep:
    """A step whose row may still change."""

    row: StepRow
    unsettled_count: int
    """Attempts of which no token usage has been recorded yet."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to come."""
        return self.row.status != RUNNING and self.unsettled_count == 0


def step_boundary(event: e.BoundaryEvent) -> str:
    """The boundary without its attempt number: what all attempts of a step share."""
    return event.boundary.rpartition("/")[0]


def begin_step(event: e.AttemptStarted, step_no: int) -> LiveStep:
    """A step at its first attempt."""
    row = StepRow(
        run_id=event.run_id,
        step_no=step_no,
        session_id=event.session_id,
        boundary=step_boundary(event),
        scope=path_of(event.boundary),
        name=event.name,
        model=event.model,
        status=RUNNING,
        attempt_count=1,
        started_us=event.occurred_us,
        started_elapsed_us=event.elapsed_us or 0,
        duration_us=None,
        input_tokens=None,
        output_tokens=None,
        failure=None,
        error_digest=None,
        input_digest=event.input_digest,
        output_digest=None,
        timeout_us=event.timeout_us,
        cost_micros=None,
        first_output_us=None,
        output_chunks=None,
        hidden_retry_count=None,
    )
    return LiveStep(row, unsettled_count=1)


def evolve_step(step: LiveStep, event: e.AttemptEvent) -> LiveStep:
    """The step after a further event of one of its attempts."""
    row, unsettled = step.row, step.unsettled_count
    match event:
        case e.AttemptStarted():
            row = row._replace(attempt_count=row.attempt_count + 1, timeout_us=event.timeout_us)
            unsettled += 1
        case e.AttemptSucceeded():
            row = row._replace(
                status="SUCCESS",
                duration_us=_duration_us(row, event),
                output_digest=event.output_digest,
                first_output_us=event.first_output_us,
                output_chunks=event.output_chunks,
            )
        case e.AttemptFailed():
            row = row._replace(
                status=RUNNING if event.will_retry else "FAILED",
                duration_us=None if event.will_retry else _duration_us(row, event),
                failure=event.failure,
                error_digest=event.error_digest,
                first_output_us=event.first_output_us,
                output_chunks=event.output_chunks,
            )
        case e.AttemptAbandoned():
            row = row._replace(status="ABANDONED", duration_us=_duration_us(row, event))
        case e.UsageSettled():
            known = event.usage or {}
            row = row._replace(
                input_tokens=_add(row.input_tokens, known.get("input_tokens")),
                output_tokens=_add(row.output_tokens, known.get("output_tokens")),
                cost_micros=_add(row.cost_micros, known.get("cost_micros")),
            )
            unsettled -= 1
        case e.HiddenRetryDetected():
            row = row._replace(hidden_retry_count=_add(row.hidden_retry_count, 1))
    return LiveStep(row, unsettled)


def fail_unretried(step: LiveStep) -> LiveStep:
    """A step whose promised next attempt never came, because the run ended first."""
    return LiveStep(step.row._replace(status="FAILED"), step.unsettled_count)


def begin_tool(event: e.AttemptStarted, invocation_no: int) -> ToolRow:
    """A tool's invocation at its start."""
    return ToolRow(
        run_id=event.run_id,
        invocation_no=invocation_no,
        session_id=event.session_id,
        attempt_id=event.attempt_id,
        boundary=event.boundary,
        scope=path_of(event.boundary),
        tool_name=event.name,
        call_id=event.call_id,
        tool_key=event.tool_key,
        effect=event.effect,
        status=RUNNING,
        started_us=event.occurred_us,
        started_elapsed_us=event.elapsed_us or 0,
        duration_us=None,
        failure=None,
        error_digest=None,
        input_digest=event.input_digest,
        output_digest=None,
        timeout_us=event.timeout_us,
        hidden_retry_count=None,
    )


def evolve_tool(row: ToolRow, event: e.AttemptEvent) -> ToolRow:
    """The invocation after a further event of its attempt."""
    match event:
        case e.AttemptSucceeded():
            return row._replace(status="SUCCESS", duration_us=event.duration_us, output_digest=event.output_digest)
        case e.AttemptFailed():
            return row._replace(
                status="FAILED",
                duration_us=event.duration_us,
                failure=event.failure,
                error_digest=event.error_digest,
            )
        case e.AttemptAbandoned():
            return row._replace(status="ABANDONED", duration_us=_duration_us(row, event))
        case e.AttemptFinishedLate():
            return row._replace(status="LATE", duration_us=event.duration_us)
        case e.HiddenRetryDetected():
            return row._replace(hidden_retry_count=_add(row.hidden_retry_count, 1))
    return row


def _duration_us(row: StepRow | ToolRow, event: e.AttemptEvent) -> int | None:
    """From the row's start to the event, on the monotonic clock; unknown for an event the owner did not write."""
    return None if event.elapsed_us is None else max(0, event.elapsed_us - row.started_elapsed_us)


def _add(total: int | None, amount: int | None) -> int | None:
    return total if amount is None else (total or 0) + amount
