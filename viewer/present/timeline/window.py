"""The stretch of a run that is looked at: all of it, or the part that the address names."""

from __future__ import annotations

from dataclasses import dataclass

WINDOW_MIN_US = 20
"""No closer look than this: times are known to the microsecond."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time with a beginning and an end, in microseconds since the run's start."""

    start_us: int
    end_us: int

    @property
    def length_us(self) -> int:
        """How long it lasts."""
        return self.end_us - self.start_us

    def holds(self, at_us: int) -> bool:
        """Whether a moment lies in it, its ends included."""
        return self.start_us <= at_us <= self.end_us


def whole_of(length_us: int) -> Stretch:
    """All of a run; one that took no time gets a moment, so that it can be drawn."""
    return Stretch(0, max(length_us, 1))


def window_of(t0_us: int | None, t1_us: int | None, whole: Stretch) -> Stretch | None:
    """The part of the run between two times of the address; None if it names none that the run has."""
    if t0_us is None and t1_us is None:
        return None
    asked = Stretch(t0_us or 0, whole.end_us if t1_us is None else t1_us)
    if asked.end_us <= asked.start_us or asked.start_us >= whole.end_us:
        return None
    window = _within(asked, whole)
    return None if window == whole else window


def closer(window: Stretch, whole: Stretch, around_us: int | None) -> Stretch | None:
    """Half of it, around a moment in it or else its middle; None if there is no closer look."""
    length_us = max(window.length_us // 2, WINDOW_MIN_US)
    if length_us >= window.length_us:
        return None
    middle_us = around_us if around_us is not None and window.holds(around_us) else window.start_us + length_us
    start_us = middle_us - length_us // 2
    return _moved(Stretch(start_us, start_us + length_us), whole)


def wider(window: Stretch, whole: Stretch) -> Stretch | None:
    """Twice as much; None if it is the whole run already."""
    if window == whole:
        return None
    start_us = window.start_us - window.length_us // 2
    return _moved(Stretch(start_us, start_us + min(2 * window.length_us, whole.length_us)), whole)


def beside(window: Stretch, whole: Stretch, direction: int) -> Stretch | None:
    """As much, half a window earlier (-1) or later (1); None at that end of the run."""
    step_us = direction * max(window.length_us // 2, 1)
    moved = _moved(Stretch(window.start_us + step_us, window.end_us + step_us), whole)
    return None if moved == window else moved


def _within(asked: Stretch, whole: Stretch) -> Stretch:
    """What the run has of it, and no less than the closest look."""
    end_us = min(asked.end_us, whole.end_us)
    least_us = min(WINDOW_MIN_US, whole.length_us)
    return _moved(Stretch(asked.start_us, max(end_us, asked.start_us + least_us)), whole)


def _moved(window: Stretch, bounds: Stretch) -> Stretch:
    """The same length, moved so far that it lies inside."""
    start_us = min(max(window.start_us, bounds.start_us), max(bounds.end_us - window.length_us, bounds.start_us))
    return Stretch(start_us, min(start_us + window.length_us, bounds.end_us))
