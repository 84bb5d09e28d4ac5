"""Choices that follow from a seed, the same on every machine and every Python: digests of the seed and a count."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A row of choices; two draws with the same seed make the same ones in the same order."""

    def __init__(self, *seed: object) -> None:
        self._seed = "/".join(map(str, seed))
        self._count = 0

    def between(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        return least + self._next() % (most - least + 1)

    def share(self, least: float, most: float) -> float:
        """A number with one decimal."""
        return round(self.between(round(least * 10), round(most * 10)) / 10, 1)

    def one(self, choices: Sequence[T]) -> T:
        """One of them."""
        return choices[self._next() % len(choices)]

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """So many different ones, in an order drawn, too."""
        left = list(choices)
        return [left.pop(self._next() % len(left)) for _ in range(min(count, len(left)))]

    def happens(self, percent: int) -> bool:
        """Yes in so many of a hundred cases."""
        return self._next() % 100 < percent

    def hex(self, chars: int) -> str:
        """Digits of an id that means nothing."""
        return f"{self._next():032x}"[-chars:]

    def _next(self) -> int:
        self._count += 1
        digest = hashlib.sha256(f"{self._seed}#{self._count}".encode()).digest()
        return int.from_bytes(digest[:12], "big")
