"""Spans of a run too long to read all its events: its steps and tools, without single attempts and waits.

Where there are more than could be told apart, those of one kind that follow each other closely become one span.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from ledger.reading.parts import WorkLine
from viewer.present.timeline.spans import Span, State, told
from viewer.present.timeline.window import Stretch

SINGLE_MAX = 2_000
"""So many are told apart,"""
PARTS = 2_000
"""and of more, those that are so near that no drawing of the stretch would show what is between them."""
_STATES: dict[str, State] = {"SUCCESS": "ok", "FAILED": "failed", "ABANDONED": "abandoned", "LATE": "late"}


def spans_of_works(works: Sequence[WorkLine], window: Stretch | None = None) -> list[Span]:
    """The spans by their start; those that touch `window`, where it is given and they are few, each for itself."""
    if len(works) <= SINGLE_MAX:
        return _sorted(map(_span, works))
    near = [] if window is None else [work for work in works if _touches(work, window)]
    if len(near) > SINGLE_MAX:
        near = []
    kept = {(work.kind, work.number) for work in near}
    far = [work for work in works if (work.kind, work.number) not in kept] if kept else works
    gap_us = (window.length_us if window is not None and not near else _length_us(works)) // PARTS
    return _sorted([*map(_span, near), *_merged(far, gap_us)])


def _sorted(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: span.start_us)


def _length_us(works: Sequence[WorkLine]) -> int:
    return max(work.started_elapsed_us + (work.duration_us or 0) for work in works)


def _touches(work: WorkLine, window: Stretch) -> bool:
    start = work.started_elapsed_us
    return start <= window.end_us and (work.duration_us is None or start + work.duration_us >= window.start_us)


def _merged(works: Iterable[WorkLine], gap_us: int) -> list[Span]:
    """Each kind in each scope in each state by itself; what is still open is not merged."""
    spans: list[Span] = []
    last: dict[tuple[str, str, str, bool], tuple[WorkLine, int, int]] = {}
    for work in works:
        start = work.started_elapsed_us
        if work.duration_us is None:
            spans.append(_span(work))
            continue
        end = start + work.duration_us
        key = (work.kind, work.scope, work.status, bool(work.hidden_retry_count))
        known = last.get(key)
        if known is not None and known[0].started_elapsed_us <= start <= known[1] + gap_us:
            last[key] = (known[0], max(known[1], end), known[2] + 1)
            continue
        if known is not None:
            spans.append(_span(*known))
        last[key] = (work, end, 1)
    return [*spans, *(_span(*each) for each in last.values())]


def _span(work: WorkLine, end_us: int | None = None, count: int = 1) -> Span:
    start = work.started_elapsed_us
    if end_us is None and work.duration_us is not None:
        end_us = start + work.duration_us
    scope = tuple(unquote(segment) for segment in work.scope.split("/")) if work.scope else ()
    state = _STATES.get(work.status, "running")
    hidden = work.hidden_retry_count or 0
    span = Span(0, scope, work.kind, state, work.name, start, end_us, hidden_count=hidden, count=count)
    return told(span) if hidden else span
