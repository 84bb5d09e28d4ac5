"""The course of each limit as a small step curve, on the scale of the bars above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from viewer.present.timeline.bars import RESOLUTION
from viewer.present.timeline.consumption import Level
from viewer.present.timeline.scale import Scale

HEIGHT = 24.0
"""Of a curve's box; the limit lies at `TOP`, unless more than the limit was used."""
TOP = 2.0
STEPS_MAX = 240
"""Steps with their exact figures beside the curve; of more, those that a pixel tells apart."""


@dataclass(frozen=True, slots=True)
class Step:
    """A level, from where it begins to where the next one does."""

    x: float
    width: float
    level: Level


@dataclass(frozen=True, slots=True)
class Curve:
    """All of one limit's drawing; x in per cent of the width, y downwards."""

    used: str
    """Outline of what was charged; an SVG path, as the following two."""
    used_area: str
    settled_area: str
    """What of it is no estimate."""
    limit_y: float
    has_reserved: bool
    unknown_x: tuple[float, ...]
    """Where an attempt ended whose usage nobody knows."""
    steps: tuple[Step, ...]


def curve(levels: Sequence[Level], limit: int, scale: Scale, until_us: int) -> Curve:
    """Draw the levels of a limit up to `until_us`, the run's end or its last event so far."""
    steps = tuple(_steps(levels, scale, until_us))
    peak = max([limit, *(step.level.used for step in steps)])

    def y(amount: int) -> float:
        return round(HEIGHT - (HEIGHT - TOP) * max(amount, 0) / max(peak, 1), 2)

    used = _rises(steps, [y(step.level.used) for step in steps])
    has_reserved = any(step.level.reserved for step in steps)
    settled = _rises(steps, [y(step.level.used - step.level.reserved) for step in steps]) if has_reserved else used
    return Curve(
        used=f"M{steps[0].x:g} {y(steps[0].level.used):g}{used}",
        used_area=_area(steps, used),
        settled_area=_area(steps, settled),
        limit_y=y(limit),
        has_reserved=has_reserved,
        unknown_x=tuple(_unknown(steps)),
        steps=steps,
    )


def _steps(levels: Sequence[Level], scale: Scale, until_us: int) -> Iterator[Step]:
    """One for each level that can be told apart, the last of those that cannot."""
    window = scale.window
    end_x = round(scale.x(min(until_us, window.end_us)), 2)
    before = [level for level in levels if level.at_us <= window.start_us]
    inside = [level for level in levels if window.start_us < level.at_us <= min(window.end_us, until_us)]
    apart = max(RESOLUTION, 100 / STEPS_MAX) if len(inside) > STEPS_MAX else 0.0
    shown: list[tuple[float, Level]] = [(0.0, before[-1] if before else Level(0, 0))]
    for level in inside:
        x = round(scale.x(level.at_us), 2)
        if x - shown[-1][0] <= apart and len(shown) > 1:
            shown[-1] = (shown[-1][0], level)
        else:
            shown.append((x, level))
    for (x, level), (next_x, _) in zip(shown, [*shown[1:], (end_x, None)], strict=True):
        yield Step(x, round(max(next_x - x, 0.0), 2), level)


def _unknown(steps: Sequence[Step]) -> Iterator[float]:
    count = steps[0].level.unknown_count if steps else 0
    for step in steps:
        if step.level.unknown_count > count:
            yield step.x
        count = step.level.unknown_count


def _rises(steps: Sequence[Step], heights: Sequence[float]) -> str:
    return "".join(f"V{y:g}H{step.x + step.width:g}" for step, y in zip(steps, heights, strict=True))


def _area(steps: Sequence[Step], rises: str) -> str:
    return f"M{steps[0].x:g} {HEIGHT:g}{rises}H{steps[-1].x + steps[-1].width:g}V{HEIGHT:g}Z"
