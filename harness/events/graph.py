"""Transitions of an orchestration graph that really happened (SPEC R11)."""

from typing import Literal

from harness.events.base import BoundaryEvent, Code, Name


class GraphTransitioned(BoundaryEvent):
    """The graph entered `to_node`; `from_node` is left out at its entry."""

    type: Literal["graph.transitioned"] = "graph.transitioned"
    version: Literal[1] = 1
    to_node: Name
    from_node: Name | None = None
    cause: Code
    """`NEXT`, `REPAIR` (another try for evidence) or `FALLBACK`."""


class GraphFinished(BoundaryEvent):
    """The graph ended in `final_node`; precedes the run's termination."""

    type: Literal["graph.finished"] = "graph.finished"
    version: Literal[1] = 1
    final_node: Name
    reason: Code
    degraded: bool
