"""The orchestration graph as it was walked: only nodes that were entered, only transitions that happened (SPEC R11).

A node lies one row below the node it was first entered from; transitions that go further than one row down, or up
again, run along the right side. Each transition is numbered, and one walked twice carries both numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.words.text import shorten

NODE_HEIGHT = 30
NODE_WIDTH_MIN = 104
ROW_HEIGHT = 74
GAP = 16
LANE_GAP = 6
MARGIN = 6
ENTRY_HEIGHT = 40
"""Above the first row, for the arrow that comes from outside."""
LABEL_CHARS_MAX = 22
_CHAR_WIDTH = 7.4
TRANSITIONS_MAX = 60
"""More are listed, not drawn."""


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


@dataclass(frozen=True, slots=True)
class Edge:
    """A line with an arrow head, and the badge with the numbers of the transitions along it."""

    path: str
    numbers: str
    badge_x: float
    badge_y: float
    badge_width: float
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """All of the drawing, in pixels."""

    width: float
    height: float
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    drawn_count: int
    total_count: int


def graph(transitions: Sequence[Transition]) -> Graph | None:
    """Lay out the walk; None where there was none."""
    drawn = transitions[:TRANSITIONS_MAX]
    if not drawn:
        return None
    ranks = _ranks(drawn)
    top = MARGIN + (ENTRY_HEIGHT if any(step.source is None for step in drawn) else 0)
    boxes, inner_width = _boxes(ranks, last=drawn[-1].target, top=top)
    edges, right = _edges(drawn, ranks, boxes, inner_width)
    height = boxes[max(ranks, key=lambda name: ranks[name])].y + NODE_HEIGHT / 2 + MARGIN
    return Graph(round(right + MARGIN, 1), height, tuple(boxes.values()), edges, len(drawn), len(transitions))


def _ranks(transitions: Sequence[Transition]) -> dict[str, int]:
    """Each node's row, in the order in which nodes were first entered."""
    ranks: dict[str, int] = {}
    for step in transitions:
        if step.source is not None:
            ranks.setdefault(step.source, 0)
        ranks.setdefault(step.target, 0 if step.source is None else ranks[step.source] + 1)
    return ranks


def _boxes(ranks: dict[str, int], *, last: str, top: float) -> tuple[dict[str, GraphNode], float]:
    labels = {name: shorten(name, LABEL_CHARS_MAX) for name in ranks}
    widths = {name: max(NODE_WIDTH_MIN, len(label) * _CHAR_WIDTH + 24) for name, label in labels.items()}
    rows: dict[int, list[str]] = {}
    for name, rank in ranks.items():
        rows.setdefault(rank, []).append(name)
    row_widths = {rank: sum(widths[name] for name in row) + GAP * (len(row) - 1) for rank, row in rows.items()}
    inner_width = max(row_widths.values())
    boxes: dict[str, GraphNode] = {}
    for name in ranks:
        row = rows[ranks[name]]
        before = sum(widths[other] + GAP for other in row[: row.index(name)])
        x = MARGIN + (inner_width - row_widths[ranks[name]]) / 2 + before + widths[name] / 2
        y = top + NODE_HEIGHT / 2 + ranks[name] * ROW_HEIGHT
        boxes[name] = GraphNode(name, labels[name], round(x, 1), y, round(widths[name], 1), name == last)
    return boxes, inner_width


def _edges(
    transitions: Sequence[Transition], ranks: dict[str, int], boxes: dict[str, GraphNode], inner_width: float
) -> tuple[tuple[Edge, ...], float]:
    """The edges, and how far right the lanes along the side reach."""
    walked: dict[tuple[str | None, str], list[Transition]] = {}
    for step in transitions:
        walked.setdefault((step.source, step.target), []).append(step)
    edges, right = [], MARGIN + inner_width
    for (source, target), steps in walked.items():
        numbers = _numbers(steps)
        badge_width = max(18.0, len(numbers) * 6.6 + 10)
        causes = tuple(dict.fromkeys(step.cause for step in steps))
        if source is None:
            path, x, y = _in(boxes[target])
        elif ranks[target] == ranks[source] + 1:
            path, x, y = _down(boxes[source], boxes[target])
        else:
            lane_x = right + LANE_GAP + badge_width / 2
            right = lane_x + badge_width / 2
            path, x, y = _around(boxes[source], boxes[target], round(lane_x, 1))
        edges.append(Edge(path, numbers, x, y, round(badge_width, 1), causes))
    return tuple(edges), right


def _numbers(steps: Sequence[Transition]) -> str:
    shown = [str(step.number) for step in steps[:4]]
    return ", ".join(shown) + (" …" if len(steps) > 4 else "")


def _in(target: GraphNode) -> tuple[str, float, float]:
    bottom = target.y - NODE_HEIGHT / 2 - 5
    return f"M{target.x:g} {bottom - ENTRY_HEIGHT + 6:g}V{bottom:g}", target.x, bottom - ENTRY_HEIGHT / 2


def _down(source: GraphNode, target: GraphNode) -> tuple[str, float, float]:
    top, bottom = source.y + NODE_HEIGHT / 2, target.y - NODE_HEIGHT / 2 - 5
    bend = (bottom - top) / 2
    path = f"M{source.x:g} {top:g}C{source.x:g} {top + bend:g} {target.x:g} {bottom - bend:g} {target.x:g} {bottom:g}"
    return path, round((source.x + target.x) / 2, 1), round((top + bottom) / 2, 1)


def _around(source: GraphNode, target: GraphNode, lane_x: float) -> tuple[str, float, float]:
    """From the right side of one box along a lane to the right side of the other."""
    here, there = source.x + source.width / 2, target.x + target.width / 2 + 5
    if source.name == target.name:
        top, bottom = source.y - 8, source.y + 8
        path = f"M{here:g} {top:g}C{lane_x:g} {top - 10:g} {lane_x:g} {bottom + 10:g} {there:g} {bottom:g}"
        return path, round(lane_x - 6, 1), round(source.y, 1)
    leave, enter = (source.y - 5, target.y + 5) if target.y < source.y else (source.y + 5, target.y - 5)
    turn = 10 if enter > leave else -10
    path = (
        f"M{here:g} {leave:g}H{lane_x - 10:g}Q{lane_x:g} {leave:g} {lane_x:g} {leave + turn:g}"
        f"V{enter - turn:g}Q{lane_x:g} {enter:g} {lane_x - 10:g} {enter:g}H{there:g}"
    )
    if leave == enter:
        path = f"M{here:g} {leave:g}H{lane_x:g}"
    return path, round(lane_x, 1), round((leave + enter) / 2, 1)
