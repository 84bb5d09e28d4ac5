"""The lines of the grid: few, round, and true on a folded scale."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from viewer.present.timeline.scale import Scale

TICKS_MAX = 5.5
APART_MIN = 8.0
"""Per cent of the width between two ticks, so that their words do not touch on a phone."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid."""

    x: float
    label: str


def ticks(scale: Scale) -> tuple[Tick, ...]:
    """Round times, with their unit; none inside a break, and none so near another that they could not be read."""
    if scale.shown_us == 1:
        # A run that took no time.
        return (Tick(0.0, _label(0, 1)),)
    step_us = next(step for step in _steps() if scale.shown_us / step <= TICKS_MAX)
    found: list[Tick] = []
    for at_us in _candidates(scale, step_us):
        x = round(scale.x(at_us), 2)
        if not found or x - found[-1].x >= APART_MIN:
            found.append(Tick(x, _label(at_us, step_us)))
    return tuple(found)


def _candidates(scale: Scale, step_us: int) -> Iterator[int]:
    """Multiples of the step in each part that is drawn in full; what lies in a long break is never counted through."""
    start_us = scale.window.start_us
    for end_us in (*(fold.start_us for fold in scale.folds), scale.window.end_us):
        first_us = -(-start_us // step_us) * step_us
        yield from range(first_us, end_us + 1, step_us)
        start_us = next((fold.end_us for fold in scale.folds if fold.start_us == end_us), end_us)


def _steps() -> Iterable[int]:
    for power in range(8):
        for factor in (1, 2, 5):
            if (step := factor * 10**power) < 60_000_000:
                yield step
    for seconds in (60, 120, 300, 600, 1_800):
        yield seconds * 1_000_000
    hours = 1
    while True:
        yield hours * 3_600_000_000
        hours *= 2


def _label(at_us: int, step_us: int) -> str:
    if at_us == 0:
        return "0 s"
    for unit_us, unit in ((3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s")):
        if step_us >= unit_us:
            return f"{at_us // unit_us:,} {unit}"
    if step_us >= 100_000:
        return f"{at_us / 1_000_000:.1f} s"
    return f"{at_us // 1_000:,} ms" if step_us >= 1_000 else f"{at_us:,} µs"
