"""The orchestration graph as it was walked: only nodes that were entered, only transitions that happened (SPEC R11).

Nodes stand in one column in the order in which they were first entered, so no line ever runs behind a node that it
does not belong to. A transition to the next node goes straight down; any other runs along the right side. Each is
numbered, and one walked twice carries both numbers and how often it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewer.present.trace.graph_lanes import Way, lay_lanes

NODE_HEIGHT = 30
NODE_WIDTH_MIN = 104
ROW_HEIGHT = 66
ROW_HEIGHT_DENSE = 50
DENSE_FROM = 12
"""Nodes; from here on they stand closer together."""
MARGIN = 6
ENTRY_HEIGHT = 40
"""Above the first row, for the arrow that comes from outside."""
LABEL_CHARS_MAX = 22
_CHAR_WIDTH = 7.4
_BADGE_CHAR_WIDTH = 6.4
NUMBERS_MAX = 4
TRANSITIONS_MAX = 600
NODES_MAX = 80
"""Transitions after these, or to nodes beyond these, are listed, not drawn."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of the walk; `source` is None at the entry."""

    number: int
    source: str | None
    target: str
    cause: str
    seq: int | None = None
    elapsed_us: int | None = None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A box, by its middle."""

    name: str
    label: str
    x: float
    y: float
    width: float
    last: bool
    """Whether the walk ended there."""
    current: bool = False
    """Whether the walk was there at the event that the page looks at."""
    is_later: bool = False
    """Whether it was entered only after that event."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A line with an arrow head, and the badge with the numbers of the transitions along it."""

    path: str
    numbers: str
    times: int
    badge_x: float
    badge_y: float
    badge_width: float
    causes: tuple[str, ...]
    is_later: bool = False

    @property
    def words(self) -> str:
        """Why it was walked, where that was not the plain course of things."""
        return _words(self.causes)


@dataclass(frozen=True, slots=True)
class Graph:
    """All of the drawing, in pixels."""

    width: float
    height: float
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    drawn_count: int
    total_count: int


def graph(transitions: Sequence[Transition], at_seq: int | None = None) -> Graph | None:
    """Lay out the walk; None where there was none. What came after event `at_seq` is marked as later."""
    drawn = _drawable(transitions)
    if not drawn:
        return None
    past = [step for step in drawn if not _is_later(step, at_seq)]
    top = MARGIN + (ENTRY_HEIGHT if any(step.source is None for step in drawn) else 0)
    boxes = _boxes(drawn, past, top)
    edges, right = _edges(drawn, boxes, at_seq)
    height = max(box.y for box in boxes.values()) + NODE_HEIGHT / 2 + MARGIN
    return Graph(round(right + MARGIN, 1), height, tuple(boxes.values()), edges, len(drawn), len(transitions))


def _drawable(transitions: Sequence[Transition]) -> list[Transition]:
    """The walk up to where it leaves what can be drawn."""
    names: set[str] = set()
    drawn: list[Transition] = []
    for step in transitions[:TRANSITIONS_MAX]:
        names |= {step.target} | ({step.source} if step.source is not None else set())
        if len(names) > NODES_MAX:
            break
        drawn.append(step)
    return drawn


def _is_later(step: Transition, at_seq: int | None) -> bool:
    return at_seq is not None and step.seq is not None and step.seq > at_seq


def _boxes(drawn: Sequence[Transition], past: Sequence[Transition], top: float) -> dict[str, GraphNode]:
    order = _entered(drawn)
    entered = set(_entered(past))
    here = past[-1].target if past else None
    is_over = len(past) == len(drawn)
    labels = {name: middle_cut(name) for name in order}
    width = max(NODE_WIDTH_MIN, *(len(label) * _CHAR_WIDTH + 24 for label in labels.values()))
    row_height = ROW_HEIGHT if len(order) < DENSE_FROM else ROW_HEIGHT_DENSE
    return {
        name: GraphNode(
            name=name,
            label=labels[name],
            x=round(MARGIN + width / 2, 1),
            y=top + NODE_HEIGHT / 2 + row * row_height,
            width=round(width, 1),
            last=is_over and name == here,
            current=not is_over and name == here,
            is_later=name not in entered,
        )
        for row, name in enumerate(order)
    }


def _entered(transitions: Sequence[Transition]) -> list[str]:
    """Every node, in the order in which they were first come to."""
    found: dict[str, None] = {}
    for step in transitions:
        found |= {step.source: None} if step.source is not None else {}
        found[step.target] = None
    return list(found)


def middle_cut(name: str) -> str:
    """A long name without its middle, since names that begin alike differ at their end."""
    return name if len(name) <= LABEL_CHARS_MAX else f"{name[:11]}…{name[-(LABEL_CHARS_MAX - 12) :]}"


def _edges(
    transitions: Sequence[Transition], boxes: dict[str, GraphNode], at_seq: int | None
) -> tuple[tuple[Edge, ...], float]:
    """The edges, and how far right the lanes along the side reach."""
    walked: dict[tuple[str | None, str], list[Transition]] = {}
    for step in transitions:
        walked.setdefault((step.source, step.target), []).append(step)
    rows = {name: row for row, name in enumerate(boxes)}
    around = [
        Way(source, target, boxes[source].y, boxes[target].y, _badge_width(steps))
        for (source, target), steps in walked.items()
        if source is not None and rows[target] != rows[source] + 1
    ]
    box_right = MARGIN + next(iter(boxes.values())).width
    paths, right = lay_lanes(around, box_right)
    edges = []
    for (source, target), steps in walked.items():
        if source is None:
            path, x, y = _in(boxes[target])
        elif (source, target) in paths:
            path, x, y = paths[source, target]
        else:
            path, x, y = _down(boxes[source], boxes[target])
        # Of a way that was gone before and after, the badge tells what had been.
        told = [step for step in steps if not _is_later(step, at_seq)]
        later, told = not told, told or steps
        edges.append(Edge(path, _numbers(told), len(told), x, y, _badge_width(told), _causes(told), later))
    reach = [edge.badge_x + edge.badge_width / 2 for edge in edges]
    return tuple(edges), max([right, *reach])


def _causes(steps: Sequence[Transition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(step.cause for step in steps))


def _words(causes: Sequence[str]) -> str:
    return ", ".join(cause.lower().replace("_", " ") for cause in causes if cause != "NEXT")


def _badge_width(steps: Sequence[Transition]) -> float:
    parts = [_numbers(steps), f"×{len(steps)}" if len(steps) > 1 else "", _words(_causes(steps))]
    return round(max(18.0, len(" ".join(filter(None, parts))) * _BADGE_CHAR_WIDTH + 10), 1)


def _numbers(steps: Sequence[Transition]) -> str:
    shown = [str(step.number) for step in steps[:NUMBERS_MAX]]
    return ", ".join(shown) + (" …" if len(steps) > NUMBERS_MAX else "")


def _in(target: GraphNode) -> tuple[str, float, float]:
    bottom = target.y - NODE_HEIGHT / 2 - 5
    return f"M{target.x:g} {bottom - ENTRY_HEIGHT + 6:g}V{bottom:g}", target.x, bottom - ENTRY_HEIGHT / 2


def _down(source: GraphNode, target: GraphNode) -> tuple[str, float, float]:
    top, bottom = source.y + NODE_HEIGHT / 2, target.y - NODE_HEIGHT / 2 - 5
    return f"M{source.x:g} {top:g}V{bottom:g}", source.x, round((top + bottom) / 2, 1)
