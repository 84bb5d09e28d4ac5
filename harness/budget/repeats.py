"""How often the same tool was called with the same arguments, so that a loop of an agent can be stopped (SPEC H4)."""

from __future__ import annotations

from collections import OrderedDict

MAX_CALLS_REMEMBERED = 4096
"""Distinct calls of one run or scope whose number is known; beyond it, the one not made for longest is forgotten."""


class Repeats:
    """Counts of distinct calls, by tool and fingerprint of the arguments; use them with the run's lock held."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    def of(self, call: tuple[str, bytes]) -> int:
        """How often this call was made, as far as is remembered."""
        return self._counts.get(call, 0)

    def add(self, call: tuple[str, bytes]) -> None:
        self._counts[call] = self._counts.get(call, 0) + 1
        self._counts.move_to_end(call)
        if len(self._counts) > MAX_CALLS_REMEMBERED:
            self._counts.popitem(last=False)
