"""What folding has changed: the rows to write, each in its last state only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ledger.projections.rows import CaseRow, SessionShare, StepRow, ToolRow
from ledger.projections.run import RunProjection
from ledger.projections.steps import LiveStep
from ledger.projections.tools import LiveTool


@dataclass(slots=True)
class Changes:
    """Rows to write; one of these serves any number of events and runs."""

    runs: dict[str, RunProjection] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    """Those of the runs that have no row yet."""
    steps: dict[tuple[str, int], LiveStep] = field(default_factory=dict)
    """By run and number."""
    tools: dict[tuple[str, int], LiveTool] = field(default_factory=dict)
    """By run and number."""
    cases: dict[str, CaseRow] = field(default_factory=dict)
    sessions: dict[str, SessionShare] = field(default_factory=dict)

    @property
    def step_rows(self) -> Iterable[StepRow]:
        """The rows of steps, those of one run in the order in which they began to change."""
        return (step.row for step in self.steps.values())

    @property
    def tool_rows(self) -> Iterable[ToolRow]:
        """The rows of tools' invocations, in the same order."""
        return (tool.row for tool in self.tools.values())

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
