"""Ordinals tell apart the boundaries of one kind and name at one path (SPEC D7)."""

from __future__ import annotations


class Ordinals:
    """The counters of one path; use them with the run's lock held.

    A path remembers its branches, since a branch that is taken up again goes on counting. Nothing remembers the path
    of an attempt but the contexts that were handed out in it, so crossing boundaries leaves nothing behind.
    """

    __slots__ = ("_branches", "_counts")

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._branches: dict[str, Ordinals] = {}

    def next(self, kind: str, name: str) -> int:
        """The ordinal of the next boundary of this kind and name, from 1."""
        ordinal = self._counts[kind, name] = self._counts.get((kind, name), 0) + 1
        return ordinal

    def branch(self, key: str) -> Ordinals:
        """The counters of the branch `key` of this path."""
        return self._branches.setdefault(key, Ordinals())
