"""The shapes of the drawing, in per cent of its width, and the words beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewer.present.timeline.scale import Scale
from viewer.present.timeline.spans import Kind, Span, State

RESOLUTION = 0.1
"""Per cent of the width; bars that are closer together are merged."""
WIDTH_MIN = 0.35
"""Per cent; so that a short attempt can still be seen."""
REFUSED_WIDTH = 1.1
"""Per cent; a refusal takes no time, and still is an outline."""
CHAR_WIDTH = 0.95
"""Per cent of the narrowest plot that draws notes beside bars."""
_COLOURS = ("failed", "refused")
"""States that show through among others."""
_AT_ONCE = ("refused", "denied", "passed")


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle: kind decides its shape, state its colour and stroke."""

    x: float
    width: float
    kind: Kind
    state: State
    from_before: bool = False
    goes_on: bool = False
    """Whether it begins before the window, or ends after it."""


@dataclass(frozen=True, slots=True)
class Note:
    """Words beside a bar, on the side where there is room for them, else on it."""

    text: str
    x: float
    side: str
    """after, before or inside; over a scope's band."""
    full: str
    """The words uncut."""


def bar_of(scale: Scale, start_us: int, end_us: int | None, kind: Kind, state: State) -> Bar:
    """From its start to its end; what is open reaches the edge."""
    window = scale.window
    x = round(scale.x(start_us), 2)
    width = (100.0 if end_us is None else round(scale.x(end_us), 2)) - x
    width = max(round(width, 2), REFUSED_WIDTH if state in _AT_ONCE else WIDTH_MIN)
    goes_on = end_us is not None and end_us > window.end_us
    return Bar(min(x, 100.0 - width), width, kind, state, start_us < window.start_us, goes_on)


def bars_of(scale: Scale, spans: Iterable[Span]) -> tuple[Bar, ...]:
    """Of many spans of one kind, by their start, as few bars as can be told apart; a failure colours what it is in."""
    gap_us = round(scale.shown_us * RESOLUTION / 100)
    least_us = round(scale.shown_us * WIDTH_MIN / 100)
    found: list[tuple[int, int | None, Kind, State]] = []
    for span in spans:
        start_us, end_us, kind, state = found[-1] if found else (0, None, span.kind, span.state)
        if end_us is None or span.end_us is None or span.start_us > max(end_us, start_us + least_us) + gap_us:
            found.append((span.start_us, span.end_us, span.kind, span.state))
        else:
            found[-1] = (start_us, max(end_us, span.end_us), kind, span.state if span.state in _COLOURS else state)
    return merge(bar_of(scale, *each) for each in found)


def merge(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    """Bars that nearly touch become one; a failure or a refusal in it colours it."""
    out: list[Bar] = []
    for bar in sorted(bars, key=lambda each: each.x):
        last = out[-1] if out else None
        if last is None or bar.x > last.x + last.width + RESOLUTION:
            out.append(bar)
            continue
        state = bar.state if bar.state in _COLOURS else last.state
        out[-1] = Bar(last.x, round(max(last.x + last.width, bar.x + bar.width) - last.x, 2), last.kind, state)
    return tuple(out)


def note_over(text: str, x: float) -> Note:
    """Words over a thin band, from where it begins, or so far left that they fit."""
    room = int(100 / CHAR_WIDTH) - 1
    shown = text if len(text) <= room else text[: room - 1].rstrip() + "…"
    return Note(shown, round(max(min(x, 99 - len(shown) * CHAR_WIDTH), 0.0), 2), "over", text)


def place_note(text: str, bar: Bar) -> Note:
    """After the bar if it fits there, else before it, else on it."""
    needed = len(text) * CHAR_WIDTH + 1
    if bar.x + bar.width + needed <= 100:
        return Note(text, round(bar.x + bar.width, 2), "after", text)
    if bar.x >= needed:
        return Note(text, bar.x, "before", text)
    if bar.width >= needed:
        return Note(text, bar.x, "inside", text)
    # No side has room: the side with more of it, and the words are cut by the edge rather than laid over the bar.
    after = 100 - bar.x - bar.width >= bar.x
    room = (100 - bar.x - bar.width if after else bar.x) / CHAR_WIDTH - 1
    cut = text[: max(int(room) - 1, 1)].rstrip() + "…"
    return Note(cut, round(bar.x + bar.width, 2) if after else bar.x, "after" if after else "before", text)
