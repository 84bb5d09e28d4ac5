"""Rows of many streams in the order of their keys, as one statement gives them, taken stream by stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

Row = tuple[Any, ...]


class Grouped:
    """Each key is asked for once, in their order; rows of keys that nobody asks for are passed over."""

    def __init__(self, rows: Iterable[Row], key_at: int) -> None:
        self._groups = groupby(rows, itemgetter(key_at))
        self._next = next(self._groups, None)

    def of(self, key: str) -> Iterator[Row]:
        """The rows with that key."""
        while self._next is not None and self._next[0] < key:
            self._next = next(self._groups, None)
        return self._next[1] if self._next is not None and self._next[0] == key else iter(())

    def pages(self, key: str, size: int) -> Iterator[list[Row]]:
        """The same, so many at a time."""
        rows = self.of(key)
        while page := list(islice(rows, size)):
            yield page
