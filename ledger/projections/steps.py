"""Model steps with their attempts counted inside, while their rows may still change (SPEC R3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness import events as e
from harness.state import RUNNING, Evolving, path_of
from ledger.projections.rows import StepRow
from ledger.projections.tools import duration_us


@dataclass
class LiveStep(Evolving):
    """A step: its first attempt's start, and what came of it and of further ones so far."""

    step_no: int
    started: e.AttemptStarted
    timeout_us: int | None
    status: str = RUNNING
    attempt_count: int = 1
    unsettled_count: int = 1
    """Attempts of which no token usage has been recorded yet."""
    duration_us: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    failure: str | None = None
    error_digest: str | None = None
    output_digest: str | None = None
    cost_micros: int | None = None
    first_output_us: int | None = None
    output_chunks: int | None = None
    hidden_retry_count: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to come."""
        return self.status != RUNNING and self.unsettled_count == 0

    @property
    def row(self) -> StepRow:
        """The step's row."""
        started = self.started
        # In the order of its columns, as a tool's.
        return StepRow(
            started.run_id,
            self.step_no,
            started.session_id,
            step_boundary(started),
            path_of(started.boundary),
            started.name,
            started.model,
            self.status,
            self.attempt_count,
            started.occurred_us,
            started.elapsed_us or 0,
            self.duration_us,
            self.input_tokens,
            self.output_tokens,
            self.failure,
            self.error_digest,
            started.input_digest,
            self.output_digest,
            self.timeout_us,
            self.cost_micros,
            self.first_output_us,
            self.output_chunks,
            self.hidden_retry_count,
        )


def step_boundary(event: e.BoundaryEvent) -> str:
    """The boundary without its attempt number: what all attempts of a step share."""
    return event.boundary.rpartition("/")[0]


def begin_step(event: e.AttemptStarted, step_no: int) -> LiveStep:
    """A step at its first attempt."""
    return LiveStep(step_no, event, event.timeout_us)


def evolve_step(step: LiveStep, event: e.AttemptEvent) -> LiveStep:
    """The step after a further event of one of its attempts; itself where the event changes nothing."""
    evolve = _STEPS.get(event.type)
    if evolve is None:
        return step
    step = step.copy()
    evolve(step, event)
    return step


def fail_unretried(step: LiveStep) -> LiveStep:
    """A step whose promised next attempt never came, because the run ended first."""
    step = step.copy()
    step.status = "FAILED"
    return step


def _started(step: LiveStep, event: e.AttemptStarted) -> None:
    step.attempt_count += 1
    step.unsettled_count += 1
    step.timeout_us = event.timeout_us


def _succeeded(step: LiveStep, event: e.AttemptSucceeded) -> None:
    step.status = "SUCCESS"
    step.duration_us = duration_us(step.started, event)
    step.output_digest = event.output_digest
    step.first_output_us = event.first_output_us
    step.output_chunks = event.output_chunks


def _failed(step: LiveStep, event: e.AttemptFailed) -> None:
    step.status = RUNNING if event.will_retry else "FAILED"
    step.duration_us = None if event.will_retry else duration_us(step.started, event)
    step.failure = event.failure
    step.error_digest = event.error_digest
    step.first_output_us = event.first_output_us
    step.output_chunks = event.output_chunks


def _abandoned(step: LiveStep, event: e.AttemptAbandoned) -> None:
    step.status = "ABANDONED"
    step.duration_us = duration_us(step.started, event)


def _settled(step: LiveStep, event: e.UsageSettled) -> None:
    known = event.usage or {}
    step.input_tokens = _add(step.input_tokens, known.get("input_tokens"))
    step.output_tokens = _add(step.output_tokens, known.get("output_tokens"))
    step.cost_micros = _add(step.cost_micros, known.get("cost_micros"))
    step.unsettled_count -= 1


def _retried_unseen(step: LiveStep, event: e.HiddenRetryDetected) -> None:
    step.hidden_retry_count = (step.hidden_retry_count or 0) + 1


def _add(total: int | None, amount: int | None) -> int | None:
    return total if amount is None else (total or 0) + amount


_STEPS: dict[str, Callable[[LiveStep, Any], None]] = {
    "attempt.started": _started,
    "attempt.succeeded": _succeeded,
    "attempt.failed": _failed,
    "attempt.abandoned": _abandoned,
    "usage.settled": _settled,
    "hidden_retry.detected": _retried_unseen,
}
