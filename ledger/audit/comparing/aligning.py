"""Two sequences laid side by side so that as much as possible is in common: a longest common subsequence.

By E. Myers, An O(ND) Difference Algorithm and Its Variations (1986): time grows with the length times the number of
differences, and what is remembered with the square of that number alone, which is bounded. difflib's matcher looks for
long blocks instead, and leaves out much that is common.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from typing import NamedTuple

DIFFERENCES_MAX = 1_000
"""Differences looked through at once. Beyond, what was laid side by side so far stays, and it goes on from there: still
a common subsequence, no longer surely a longest one. Some 4 MB are remembered at most."""

Pair = tuple[int | None, int | None]
"""Places in both sequences; None where there is nothing on that side."""


class Alignment(NamedTuple):
    """Every place of both sequences, once, in order."""

    pairs: list[Pair]
    is_longest: bool
    """Whether no alignment has more in common."""


def align(a: Sequence[Hashable], b: Sequence[Hashable], differences_max: int = DIFFERENCES_MAX) -> Alignment:
    """Lay `b` beside `a`; of places that are in common the values are equal."""
    start, end_a, end_b = 0, len(a), len(b)
    while start < min(end_a, end_b) and a[start] == b[start]:
        start += 1
    while min(end_a, end_b) > start and a[end_a - 1] == b[end_b - 1]:
        end_a, end_b = end_a - 1, end_b - 1
    pairs: list[Pair] = [(at, at) for at in range(start)]
    is_longest = True
    at_a = at_b = start
    while at_a < end_a or at_b < end_b:
        steps, reached = _walk(a, b, (at_a, at_b), (end_a, end_b), differences_max)
        pairs += steps
        at_a, at_b = reached
        is_longest = is_longest and reached == (end_a, end_b)
    pairs += [(end_a + at, end_b + at) for at in range(len(a) - end_a)]
    return Alignment(pairs, is_longest)


def _walk(
    a: Sequence[Hashable], b: Sequence[Hashable], start: tuple[int, int], end: tuple[int, int], differences_max: int
) -> tuple[list[Pair], tuple[int, int]]:
    """The way from `start` with the fewest differences, to `end` or as far as so many lead."""
    length_a, length_b = end[0] - start[0], end[1] - start[1]
    most = min(differences_max, length_a + length_b)
    # The furthest place in `a` on each diagonal (place in a minus place in b), shifted by `most` + 1.
    furthest = array("q", [0]) * (2 * most + 3)
    trail: list[array[int]] = []
    for differences in range(most + 1):
        trail.append(furthest[most + 1 - differences - 1 : most + 1 + differences + 2])
        for diagonal in range(-differences, differences + 1, 2):
            at_a = _furthest(furthest, most + 1 + diagonal, diagonal, differences)
            at_b = at_a - diagonal
            while at_a < length_a and at_b < length_b and a[start[0] + at_a] == b[start[1] + at_b]:
                at_a, at_b = at_a + 1, at_b + 1
            furthest[most + 1 + diagonal] = at_a
            if at_a >= length_a and at_b >= length_b:
                return _way_back(trail, start, (length_a, length_b)), end
    inside = (
        (2 * furthest[most + 1 + diagonal] - diagonal, diagonal)
        for diagonal in range(-most, most + 1, 2)
        if furthest[most + 1 + diagonal] <= length_a and furthest[most + 1 + diagonal] - diagonal <= length_b
    )
    _, diagonal = max(inside)
    reached = (furthest[most + 1 + diagonal], furthest[most + 1 + diagonal] - diagonal)
    return _way_back(trail, start, reached), (start[0] + reached[0], start[1] + reached[1])


def _furthest(furthest: Sequence[int], place: int, diagonal: int, differences: int) -> int:
    """Where one more difference leads on a diagonal, before what follows in common."""
    if differences == 0:
        return 0
    if _comes_down(furthest, place, diagonal, differences):
        return furthest[place + 1]
    return furthest[place - 1] + 1


def _comes_down(furthest: Sequence[int], place: int, diagonal: int, differences: int) -> bool:
    """Whether the diagonal is reached best by a place of `b` alone, rather than by one of `a`."""
    at_edge = diagonal == -differences
    return at_edge or (diagonal != differences and furthest[place - 1] < furthest[place + 1])


def _way_back(trail: list[array[int]], start: tuple[int, int], reached: tuple[int, int]) -> list[Pair]:
    """The pairs that lead from `start` as far as was reached, found from their end."""
    at_a, at_b = reached
    found: list[Pair] = []

    def common(down_to_a: int, down_to_b: int) -> None:
        nonlocal at_a, at_b
        while at_a > down_to_a and at_b > down_to_b:
            at_a, at_b = at_a - 1, at_b - 1
            found.append((start[0] + at_a, start[1] + at_b))

    for differences in range(len(trail) - 1, 0, -1):
        before, middle = trail[differences], differences + 1
        diagonal = at_a - at_b
        comes_down = _comes_down(before, middle + diagonal, diagonal, differences)
        from_diagonal = diagonal + 1 if comes_down else diagonal - 1
        from_a = before[middle + from_diagonal]
        from_b = from_a - from_diagonal
        common(from_a + (not comes_down), from_b + comes_down)
        at_a, at_b = from_a, from_b
        found.append((None, start[1] + at_b) if comes_down else (start[0] + at_a, None))
    common(0, 0)
    found.reverse()
    return found
