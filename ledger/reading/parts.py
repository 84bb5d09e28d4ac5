"""A page of a run that is too long to be read as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ledger.records import RecordedEvent, RunTrace


class WholeRun(NamedTuple):
    """All that there is of one run, of one moment."""

    trace: RunTrace
    events: Sequence[RecordedEvent]


class WorkLine(NamedTuple):
    """A model step or a tool invocation without its contents, for what a page says of all of them at once."""

    kind: Literal["model", "tool"]
    number: int
    """`step_no`, or `invocation_no`."""
    name: str
    scope: str
    model: str | None
    effect: str | None
    status: str
    started_elapsed_us: int
    duration_us: int | None
    hidden_retry_count: int | None

    @property
    def tool_name(self) -> str:
        """As a tool invocation has it."""
        return self.name


@dataclass(frozen=True, slots=True)
class RunPart:
    """A page of one run, and of the rest what can be said without reading contents."""

    trace: RunTrace
    """With the steps and the invocations of the page alone."""
    works: Sequence[WorkLine]
    """Every step and every invocation, each kind in its order."""

    @classmethod
    def of(cls, trace: RunTrace) -> RunPart:
        """The whole of a run as its only page."""
        works = [
            WorkLine(
                "model",
                step.step_no,
                step.name,
                step.scope,
                step.model,
                None,
                step.status,
                step.started_elapsed_us,
                step.duration_us,
                step.hidden_retry_count,
            )
            for step in trace.agent_steps
        ]
        works += [
            WorkLine(
                "tool",
                tool.invocation_no,
                tool.tool_name,
                tool.scope,
                None,
                tool.effect,
                tool.status,
                tool.started_elapsed_us,
                tool.duration_us,
                tool.hidden_retry_count,
            )
            for tool in trace.tool_invocations
        ]
        return cls(trace, works)
