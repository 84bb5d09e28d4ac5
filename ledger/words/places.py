"""What a scope path says to a reader: the graph's nodes, the nested scopes, the branches that something ran in.

A nested scope is four segments of a path, `scope/NAME/ORDINAL/1`, and so is a batch of tool calls; any other segment
is a branch, such as a graph's node or a call's number in its batch (SPEC D5, D6, D7).
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """A step inwards on a path."""

    label: str
    """`executor.2`; of a nested scope its name, and which of that name it was if not the first."""
    is_scope: bool


Place = tuple[Level, ...]
"""The groups that something is drawn in, the outermost first; none for what lies outside any."""


def levels(path: Sequence[str]) -> list[Level]:
    """Every step of a path."""
    found: list[Level] = []
    at = 0
    while at < len(path):
        opened = _opened(path[at : at + 4])
        found.append(opened or Level(path[at], False))
        at += 4 if opened else 1
    return found


def _opened(segments: Sequence[str]) -> Level | None:
    """What four segments are a boundary of and what lies in it has in its path."""
    if len(segments) < 4 or not segments[2].isdecimal() or segments[3] != "1":
        return None
    kind, name, ordinal = segments[:3]
    if kind not in ("scope", "batch"):
        return None
    label = name if kind == "scope" else kind
    return Level(label if ordinal == "1" else f"{label}.{ordinal}", kind == "scope")


def place(path: Sequence[str]) -> Place:
    """The groups of what lies at `path`: every nested scope, and within each the first branch alone."""
    found: list[Level] = []
    was_branch = False
    for level in levels(path):
        if level.is_scope or not was_branch:
            found.append(level)
        was_branch = not level.is_scope
    return tuple(found)


def indent(path: Sequence[str]) -> int:
    """How many steps to the right of the run's own work it is drawn: its groups, and one for all branches in these."""
    group_count = len(place(path))
    return group_count + (len(levels(path)) > group_count)
