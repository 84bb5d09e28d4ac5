"""What a scope path says to a reader: the graph's nodes, the nested scopes, the branches that something ran in.

A nested scope is four segments of a path, `scope/NAME/ORDINAL/1`; any other segment is a branch, such as a graph's
node (SPEC D5, D7).
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
        is_scope = len(path) >= at + 4 and path[at] == "scope" and path[at + 2].isdecimal() and path[at + 3] == "1"
        if is_scope:
            name, ordinal = path[at + 1], path[at + 2]
            found.append(Level(name if ordinal == "1" else f"{name}.{ordinal}", True))
        else:
            found.append(Level(path[at], False))
        at += 4 if is_scope else 1
    return found


def place(path: Sequence[str]) -> Place:
    """The groups of what lies at `path`: every nested scope, and within each the first branch alone."""
    found: list[Level] = []
    was_branch = False
    for level in levels(path):
        if level.is_scope or not was_branch:
            found.append(level)
        was_branch = not level.is_scope
    return tuple(found)
