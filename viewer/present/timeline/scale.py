"""Where a moment lies in the drawing: in proportion, but for idle stretches, which are folded to a narrow break."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from viewer.present.timeline.window import Stretch

EDGE = 98.0
"""Where the end lies, in per cent of the width; the rest is air."""
IDLE_SHARE = 0.1
"""Of what is drawn; a longer stretch in which nothing happened is folded."""
FOLD_WIDTH = 4.0
"""Per cent of the width that a folded stretch takes."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Piecewise linear: between two knots a moment lies in proportion to them."""

    times_us: tuple[int, ...]
    places: tuple[float, ...]
    """Of each of these times, in per cent of the width; both ascend."""
    folds: tuple[Stretch, ...] = ()

    @property
    def window(self) -> Stretch:
        """All that it shows."""
        return Stretch(self.times_us[0], self.times_us[-1])

    @property
    def folded_us(self) -> int:
        """How much time lies in its breaks."""
        return sum(fold.length_us for fold in self.folds)

    @property
    def shown_us(self) -> int:
        """How much time is drawn in full."""
        return self.window.length_us - self.folded_us

    def x(self, at_us: int) -> float:
        """Where a moment lies; one outside the window lies on its edge."""
        at_us = min(max(at_us, self.times_us[0]), self.times_us[-1])
        piece = min(bisect_right(self.times_us, at_us), len(self.times_us) - 1)
        return _between(at_us, self.times_us[piece - 1 : piece + 1], self.places[piece - 1 : piece + 1])

    def at_us(self, x: float) -> float:
        """Which moment lies there; the other way round."""
        x = min(max(x, self.places[0]), self.places[-1])
        piece = min(bisect_right(self.places, x), len(self.places) - 1)
        return _between(x, self.places[piece - 1 : piece + 1], self.times_us[piece - 1 : piece + 1])


def _between(value: float, known: Sequence[float], wanted: Sequence[float]) -> float:
    return wanted[0] + (value - known[0]) / (known[1] - known[0]) * (wanted[1] - wanted[0])


def scale_of(window: Stretch, idle: Sequence[Stretch] = ()) -> Scale:
    """The scale of a window with the long ones of its idle stretches folded."""
    folds = _folds(window, idle)
    shown_us = window.length_us - sum(fold.length_us for fold in folds)
    per_us = (EDGE - FOLD_WIDTH * len(folds)) / shown_us
    times_us, places = [window.start_us], [0.0]
    for fold in folds:
        if fold.start_us > times_us[-1]:
            places.append(places[-1] + (fold.start_us - times_us[-1]) * per_us)
            times_us.append(fold.start_us)
        places.append(places[-1] + FOLD_WIDTH)
        times_us.append(fold.end_us)
    if window.end_us > times_us[-1]:
        times_us.append(window.end_us)
        places.append(EDGE)
    places[-1] = EDGE
    return Scale(tuple(times_us), tuple(places), tuple(folds))


def _folds(window: Stretch, idle: Sequence[Stretch]) -> list[Stretch]:
    least_us = window.length_us * IDLE_SHARE
    long = (each for each in idle if each.end_us - each.start_us > least_us)
    inside = (Stretch(max(each.start_us, window.start_us), min(each.end_us, window.end_us)) for each in long)
    folds = [each for each in inside if each.length_us > least_us]
    # Where nothing at all happened there is nothing to make room for.
    return folds if sum(fold.length_us for fold in folds) < window.length_us else []


def idle_stretches(busy: Iterable[tuple[int, int | None]], length_us: int, *, least_us: float = 0) -> list[Stretch]:
    """The stretches of a run of that length that nothing in `busy`, from start to end (None: open), touches.

    Those of `least_us` or less are left out.
    """
    found: list[Stretch] = []
    until_us = 0
    for start_us, end_us in sorted(busy, key=lambda each: each[0]):
        if start_us > until_us + least_us:
            found.append(Stretch(until_us, min(start_us, length_us)))
        until_us = max(until_us, length_us if end_us is None else end_us)
        if until_us >= length_us:
            break
    if until_us < length_us:
        found.append(Stretch(until_us, length_us))
    return [each for each in found if each.length_us > least_us]
