"""Many spans as few lines: one per kind, and for each the window in which its rows are drawn singly."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ledger.words.format import count
from viewer.present.timeline.bars import Bar, bars_of
from viewer.present.timeline.scale import Scale
from viewer.present.timeline.spans import Kind, Span, State
from viewer.present.timeline.window import Stretch
from viewer.words import N_
from viewer.words import gettext as _

Single = Callable[[int], Stretch | None]
"""From a moment to the window that begins there and has no more rows than are drawn singly."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The spans of one kind in one group."""

    label: str
    kind: Kind
    state: State
    bars: tuple[Bar, ...]
    seq: int
    start_us: int
    end_us: int | None
    is_suspect: bool
    window: Stretch | None


_LABELS: dict[Kind, str] = {
    "model": N_("%(number)s × model"),
    "tool": N_("%(number)s × tool"),
    "guard": N_("%(number)s × guard"),
    "wait": N_("%(number)s × wait"),
}


def lanes_of(spans: Sequence[Span], scale: Scale, single: Single) -> Iterator[Lane]:
    """Models, tools, guards and waits, each kind that occurs as one lane."""
    kinds: tuple[Kind, ...] = ("model", "tool", "guard", "wait")
    for kind in kinds:
        same = [span for span in spans if span.kind == kind]
        if not same:
            continue
        start_us = same[0].start_us
        yield Lane(
            label=_(_LABELS[kind], number=count(sum(span.count for span in same))),
            kind=kind,
            state="failed" if any(span.state == "failed" for span in same) else same[0].state,
            bars=bars_of(scale, same),
            seq=same[0].seq,
            start_us=start_us,
            end_us=max((span.end_us for span in same if span.end_us is not None), default=None),
            is_suspect=any(span.is_suspect for span in same),
            window=single(max(start_us, scale.window.start_us)),
        )


def single_windows(spans: Sequence[Span], within: Stretch, rows_max: int) -> Single:
    """Windows inside `within` that no more than `rows_max` spans touch."""
    starts = sorted(at_us for span in spans for at_us in _starts(span))
    ends = sorted(at_us for span in spans if span.end_us is not None for at_us in _ends(span, span.end_us))

    def single(start_us: int) -> Stretch | None:
        # Whatever began before the window's end, and had not ended before its start, touches it.
        over_before = bisect_left(ends, start_us)
        fitting = over_before + rows_max
        end_us = min(starts[fitting] - 1 if fitting < len(starts) else within.end_us, within.end_us)
        began = bisect_right(starts, end_us)
        return Stretch(start_us, end_us) if end_us > start_us and began - over_before <= rows_max else None

    return single


def _starts(span: Span) -> Iterable[int]:
    """Of many that are one span, as if they were evenly spread over it."""
    if span.count == 1 or span.end_us is None:
        return (span.start_us,)
    return (span.start_us + (span.end_us - span.start_us) * number // span.count for number in range(span.count))


def _ends(span: Span, end_us: int) -> Iterable[int]:
    if span.count == 1:
        return (end_us,)
    return (span.start_us + (end_us - span.start_us) * (number + 1) // span.count for number in range(span.count))
