"""Invocations of tools, each one attempt, while their rows may still change (SPEC R3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness import events as e
from harness.state import RUNNING, path_of
from ledger.projections.rows import ToolRow


class ToolEnd(NamedTuple):
    """How an invocation ended, as far as it did."""

    status: str
    duration_us: int | None = None
    output_digest: str | None = None
    failure: str | None = None
    error_digest: str | None = None


NOT_ENDED = ToolEnd(RUNNING)


class LiveTool(NamedTuple):
    """An invocation: its start, and what came of it so far."""

    invocation_no: int
    started: e.AttemptStarted
    end: ToolEnd = NOT_ENDED
    hidden_retry_count: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to come; the end of an abandoned one may still arrive late."""
        return self.end.status not in (RUNNING, "ABANDONED")

    @property
    def row(self) -> ToolRow:
        """The invocation's row."""
        started, end = self.started, self.end
        return ToolRow(
            run_id=started.run_id,
            invocation_no=self.invocation_no,
            session_id=started.session_id,
            attempt_id=started.attempt_id,
            boundary=started.boundary,
            scope=path_of(started.boundary),
            tool_name=started.name,
            call_id=started.call_id,
            tool_key=started.tool_key,
            effect=started.effect,
            status=end.status,
            started_us=started.occurred_us,
            started_elapsed_us=started.elapsed_us or 0,
            duration_us=end.duration_us,
            failure=end.failure,
            error_digest=end.error_digest,
            input_digest=started.input_digest,
            output_digest=end.output_digest,
            timeout_us=started.timeout_us,
            hidden_retry_count=self.hidden_retry_count,
        )


def evolve_tool(tool: LiveTool, event: e.AttemptEvent) -> LiveTool:
    """The invocation after a further event of its attempt; itself where the event changes nothing."""
    evolve = _STEPS.get(event.type)
    return tool if evolve is None else evolve(tool, event)


def duration_us(started: e.AttemptStarted, event: e.AttemptEvent) -> int | None:
    """From the start to the event, on the monotonic clock; unknown for an event the owner did not write."""
    return None if event.elapsed_us is None else max(0, event.elapsed_us - (started.elapsed_us or 0))


def _succeeded(tool: LiveTool, event: e.AttemptSucceeded) -> LiveTool:
    return _ended(tool, ToolEnd("SUCCESS", event.duration_us, event.output_digest))


def _failed(tool: LiveTool, event: e.AttemptFailed) -> LiveTool:
    return _ended(tool, ToolEnd("FAILED", event.duration_us, None, event.failure, event.error_digest))


def _abandoned(tool: LiveTool, event: e.AttemptAbandoned) -> LiveTool:
    return _ended(tool, ToolEnd("ABANDONED", duration_us(tool.started, event)))


def _finished_late(tool: LiveTool, event: e.AttemptFinishedLate) -> LiveTool:
    return _ended(tool, ToolEnd("LATE", event.duration_us))


def _retried_unseen(tool: LiveTool, event: e.HiddenRetryDetected) -> LiveTool:
    return tool._replace(hidden_retry_count=(tool.hidden_retry_count or 0) + 1)


def _ended(tool: LiveTool, end: ToolEnd) -> LiveTool:
    return LiveTool(tool.invocation_no, tool.started, end, tool.hidden_retry_count)


_STEPS: dict[str, Callable[[LiveTool, Any], LiveTool]] = {
    "attempt.succeeded": _succeeded,
    "attempt.failed": _failed,
    "attempt.abandoned": _abandoned,
    "attempt.finished_late": _finished_late,
    "hidden_retry.detected": _retried_unseen,
}
