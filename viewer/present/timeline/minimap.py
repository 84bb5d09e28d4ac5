"""The whole run in a narrow strip: where the drawn window lies in it, and a link to each part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from viewer.present.timeline.bars import Bar, bars_of
from viewer.present.timeline.scale import EDGE, Scale, scale_of
from viewer.present.timeline.spans import Kind, Span
from viewer.present.timeline.window import WINDOW_MIN_US, Stretch

PARTS = 8
SPANS_MIN = 24
"""The strip of a shorter run would only say once more what its timeline says."""
_KINDS: tuple[Kind, ...] = ("model", "tool", "guard", "wait")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the run that can be looked at by itself."""

    x: float
    width: float
    stretch: Stretch


@dataclass(frozen=True, slots=True)
class Minimap:
    """All of the strip, in per cent of its width."""

    scale: Scale
    lines: tuple[tuple[Bar, ...], ...]
    """Merged bars, one line for each kind that occurs."""
    x: float
    width: float
    """Of the window."""
    parts: tuple[Part, ...]


def minimap(spans: Sequence[Span], window: Stretch, whole: Stretch, idle: Sequence[Stretch]) -> Minimap | None:
    """The strip, for a window that is not all, and for a run of many spans."""
    if window == whole and len(spans) < SPANS_MIN:
        return None
    scale = scale_of(whole, idle)
    x = round(scale.x(window.start_us), 2)
    return Minimap(
        scale=scale,
        lines=tuple(_lines(spans, scale)),
        x=x,
        width=max(round(scale.x(window.end_us) - x, 2), 0.5),
        parts=tuple(_parts(scale)),
    )


def _lines(spans: Sequence[Span], scale: Scale) -> Iterator[tuple[Bar, ...]]:
    for kind in _KINDS:
        same = [span for span in spans if span.kind == kind]
        # By themselves and on top, so that one failure does not colour all that it is merged with.
        failed = [span for span in same if span.state == "failed"]
        if same:
            yield (*bars_of(scale, [span for span in same if span.state != "failed"]), *bars_of(scale, failed))


def _parts(scale: Scale) -> Iterator[Part]:
    width = EDGE / PARTS
    for number in range(PARTS):
        x = number * width
        stretch = Stretch(round(scale.at_us(x)), round(scale.at_us(x + width)))
        if stretch.length_us >= WINDOW_MIN_US:
            yield Part(x, width, stretch)
