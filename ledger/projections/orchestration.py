"""The compact trace of a graph: transitions that happened, and how the graph ended (SPEC R11-R13)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness import events as e
from ledger.bytes import canonical

TRACE_VERSION = 1
MAX_TRANSITIONS = 200
"""Further transitions are counted, and the trace says that it is truncated."""
REPAIR = "REPAIR"


@dataclass(frozen=True, slots=True)
class Orchestration:
    """What a run's graph events add up to."""

    transitions: tuple[e.GraphTransitioned, ...] = ()
    transition_count: int = 0
    repair_count: int = 0
    finished: e.GraphFinished | None = None
    ended_reason: str | None = None
    """Why the run ended, where its graph did not finish."""

    def move(self, event: e.GraphTransitioned) -> Orchestration:
        """The trace after a transition."""
        kept = (event,) if len(self.transitions) < MAX_TRANSITIONS else ()
        return replace(
            self,
            transitions=self.transitions + kept,
            transition_count=self.transition_count + 1,
            repair_count=self.repair_count + (event.cause == REPAIR),
        )

    def finish(self, event: e.GraphFinished) -> Orchestration:
        """The trace once the graph has finished."""
        return replace(self, finished=event)

    def end(self, event: e.RunTerminated) -> Orchestration:
        """The trace once the run has ended, which says why where the graph did not finish."""
        if self.finished is not None or not self.transitions:
            return self
        return replace(self, ended_reason=event.reason)

    def as_json(self) -> str | None:
        """The column's text; None for a run without graph events, for which nothing is made up."""
        finished = self.finished
        if finished is None and not self.transitions:
            return None
        return canonical(
            {
                "version": TRACE_VERSION,
                "transitions": [
                    {"n": number, "from": event.from_node, "to": event.to_node, "cause": event.cause}
                    for number, event in enumerate(self.transitions, 1)
                ],
                "transitionCount": self.transition_count,
                "truncated": self.transition_count > len(self.transitions),
                "finalNode": finished.final_node if finished else None,
                "terminationReason": finished.reason if finished else self.ended_reason,
                "degraded": finished.degraded if finished else False,
                "evidenceRetryCount": self.repair_count,
            }
        )


NO_GRAPH = Orchestration()
