"""Invocations of tools, each one attempt, while their rows may still change (SPEC R3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness import events as e
from harness.state import RUNNING, path_of
from ledger.projections.rows import ToolRow

MAY_CHANGE = frozenset({RUNNING, "ABANDONED"})
"""What an invocation is that is not over: the end of an abandoned one may still arrive late."""


class LiveTool(NamedTuple):
    """An invocation: its start, and what came of it so far."""

    invocation_no: int
    started: e.AttemptStarted
    status: str = RUNNING
    duration_us: int | None = None
    output_digest: str | None = None
    failure: str | None = None
    error_digest: str | None = None
    hidden_retry_count: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to come."""
        return self.status not in MAY_CHANGE

    @property
    def row(self) -> ToolRow:
        """The invocation's row."""
        started = self.started
        # In the order of its columns: by their names it takes three times as long, and each call has a row.
        return ToolRow(
            started.run_id,
            self.invocation_no,
            started.session_id,
            started.attempt_id,
            started.boundary,
            path_of(started.boundary),
            started.name,
            started.call_id,
            started.tool_key,
            started.effect,
            self.status,
            started.occurred_us,
            started.elapsed_us or 0,
            self.duration_us,
            self.failure,
            self.error_digest,
            started.input_digest,
            self.output_digest,
            started.timeout_us,
            self.hidden_retry_count,
        )


def evolve_tool(tool: LiveTool, event: e.AttemptEvent) -> LiveTool:
    """The invocation after a further event of its attempt; itself where the event changes nothing."""
    evolve = _STEPS.get(event.type)
    return tool if evolve is None else evolve(tool, event)


def duration_us(started: e.AttemptStarted, event: e.AttemptEvent) -> int | None:
    """From the start to the event, on the monotonic clock; unknown for an event the owner did not write."""
    return None if event.elapsed_us is None else max(0, event.elapsed_us - (started.elapsed_us or 0))


def _succeeded(tool: LiveTool, event: e.AttemptSucceeded) -> LiveTool:
    return _ended(tool, "SUCCESS", event.duration_us, event.output_digest)


def _failed(tool: LiveTool, event: e.AttemptFailed) -> LiveTool:
    return _ended(tool, "FAILED", event.duration_us, None, event.failure, event.error_digest)


def _abandoned(tool: LiveTool, event: e.AttemptAbandoned) -> LiveTool:
    return _ended(tool, "ABANDONED", duration_us(tool.started, event))


def _finished_late(tool: LiveTool, event: e.AttemptFinishedLate) -> LiveTool:
    return _ended(tool, "LATE", event.duration_us)


def _retried_unseen(tool: LiveTool, event: e.HiddenRetryDetected) -> LiveTool:
    return tool._replace(hidden_retry_count=(tool.hidden_retry_count or 0) + 1)


def _ended(
    tool: LiveTool,
    status: str,
    duration_us: int | None,
    output_digest: str | None = None,
    failure: str | None = None,
    error_digest: str | None = None,
) -> LiveTool:
    end = (status, duration_us, output_digest, failure, error_digest)
    return LiveTool(tool.invocation_no, tool.started, *end, tool.hidden_retry_count)


_STEPS: dict[str, Callable[[LiveTool, Any], LiveTool]] = {
    "attempt.succeeded": _succeeded,
    "attempt.failed": _failed,
    "attempt.abandoned": _abandoned,
    "attempt.finished_late": _finished_late,
    "hidden_retry.detected": _retried_unseen,
}
