"""Named moments at which a process may be made to die or to wait, to see what becomes of the ledger.

Nothing happens at them unless somebody has said what shall, in this very process; no setting can do so from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

Point = Literal[
    "before begin",
    "after begin",
    "between rows",
    "before commit",
    "after commit",
    "before statement",
    "after statement",
    "before acknowledgement",
    "before checkpoint",
    "after checkpoint",
    "migration step",
    "before migration commit",
    "owner registered",
    "run recovered",
    "rebuilding a run",
    "erasure decided",
    "erasures decided again",
    "erasure taking",
    "erasure taken",
    "erasure out of the log",
    "erasure out of the file",
    "checkpoint signed",
    "checkpoint stored",
    "before leaving",
]
POINTS: tuple[Point, ...] = get_args(Point)

_armed: dict[str, Callable[[], None]] = {}


def reached(point: Point) -> None:
    """Do what was armed for this point, if anything was."""
    if _armed and point in _armed:
        _armed[point]()


def arm(point: Point, action: Callable[[], None]) -> None:
    """Call `action` whenever the point is reached, in the thread that reaches it."""
    _armed[point] = action


def disarm() -> None:
    """Let nothing happen at any point."""
    _armed.clear()
