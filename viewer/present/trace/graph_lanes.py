"""Lines along the right side of a column of nodes, none on top of another.

Ways that do not pass each other share a lane. Where a node is left, or entered, by many ways, these share one trunk,
so that forty workers of one supervisor need two lanes and not eighty; then each has its badge at its own end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

LANE_GAP = 6.0
TRUNK_FROM = 3
"""Ways that leave or enter the same node."""
TRUNK_WIDTH = 12.0
STUB = 12.0
"""From a node to the first lane."""
PORT = 9.0
"""How far below its middle a node is left, and above it entered."""
APART = 10.0
"""Between the ends of two ways in one lane."""
TURN = 10.0

Drawn = tuple[str, float, float]
"""A path, and where its badge lies."""


@dataclass(frozen=True, slots=True)
class Way:
    """From one node to another that is not the next one down."""

    source: str
    target: str
    source_y: float
    target_y: float
    badge_width: float

    @property
    def leave_y(self) -> float:
        """Where it leaves its node."""
        return self.source_y + PORT

    @property
    def enter_y(self) -> float:
        """Where it enters the other."""
        return self.target_y - PORT


@dataclass(slots=True)
class _Lane:
    """Ways along one vertical line: a single one, or those of a trunk."""

    ways: list[Way]
    trunk_at: str | None
    """`source` or `target`, whichever end they share."""

    @property
    def top(self) -> float:
        return min(min(way.leave_y, way.enter_y) for way in self.ways)

    @property
    def bottom(self) -> float:
        return max(max(way.leave_y, way.enter_y) for way in self.ways)

    @property
    def width(self) -> float:
        return TRUNK_WIDTH if self.trunk_at else self.ways[0].badge_width


def lay_lanes(ways: Sequence[Way], box_right: float) -> tuple[dict[tuple[str, str], Drawn], float]:
    """Every way's line and badge, by its ends, and how far right they reach."""
    lanes = _lanes(ways)
    columns: list[list[_Lane]] = []
    for lane in sorted(lanes, key=lambda lane: (lane.trunk_at is not None, lane.bottom - lane.top)):
        column = next((column for column in columns if not any(_meet(lane, other) for other in column)), None)
        if column is None:
            columns.append([lane])
        else:
            column.append(lane)
    at_ends, right = _badges_at_ends(lanes, box_right)
    drawn: dict[tuple[str, str], Drawn] = {}
    for column in columns:
        width = max(lane.width for lane in column)
        lane_x = round(right + LANE_GAP + width / 2, 1)
        right = lane_x + width / 2
        for lane in column:
            for way in lane.ways:
                middle = lane_x, round((way.leave_y + way.enter_y) / 2, 1)
                badge = at_ends.get((way.source, way.target), middle)
                drawn[way.source, way.target] = (_path(way, box_right, lane_x), *badge)
    return drawn, right


def _lanes(ways: Sequence[Way]) -> list[_Lane]:
    trunks: dict[tuple[str, str], list[Way]] = {}
    single: list[_Lane] = []
    leaving = Counter(way.source for way in ways)
    entering = Counter(way.target for way in ways if leaving[way.source] < TRUNK_FROM)
    for way in ways:
        if leaving[way.source] >= TRUNK_FROM:
            trunks.setdefault(("source", way.source), []).append(way)
        elif entering[way.target] >= TRUNK_FROM:
            trunks.setdefault(("target", way.target), []).append(way)
        else:
            single.append(_Lane([way], None))
    return [*single, *(_Lane(together, at) for (at, _), together in trunks.items())]


def _meet(one: _Lane, other: _Lane) -> bool:
    return one.top < other.bottom + APART and other.top < one.bottom + APART


def _badges_at_ends(
    lanes: Sequence[_Lane], box_right: float
) -> tuple[dict[tuple[str, str], tuple[float, float]], float]:
    """Of each way of a trunk, its badge where the way is alone, side by side if there are more; and their right end."""
    badges: dict[tuple[str, str], tuple[float, float]] = {}
    free_x: dict[float, float] = {}
    for lane in lanes:
        for way in lane.ways if lane.trunk_at else ():
            y = way.enter_y if lane.trunk_at == "source" else way.leave_y
            x = free_x.get(y, box_right + STUB)
            badges[way.source, way.target] = round(x + way.badge_width / 2, 1), round(y, 1)
            free_x[y] = x + way.badge_width + LANE_GAP
    return badges, max(free_x.values(), default=box_right + STUB)


def _path(way: Way, box_right: float, lane_x: float) -> str:
    leave, enter = way.leave_y, way.enter_y
    turn = min(TURN, abs(enter - leave) / 2)
    down = turn if enter > leave else -turn
    return (
        f"M{box_right:g} {leave:g}H{lane_x - turn:g}Q{lane_x:g} {leave:g} {lane_x:g} {leave + down:g}"
        f"V{enter - down:g}Q{lane_x:g} {enter:g} {lane_x - turn:g} {enter:g}H{box_right + 5:g}"
    )
