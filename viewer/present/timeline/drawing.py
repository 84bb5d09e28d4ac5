"""The geometry of a run's timeline, in per cent of its width, so that one drawing fits a desk and a phone.

Rows are grouped by the graph's node that they ran in and by the nested scope that they were charged to. A window with
more rows than a page can carry is drawn as lanes: one line per group, bars that would touch the same pixel merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.words.places import indent
from viewer.present.timeline.bars import Bar, Note, bar_of, note_over, place_note
from viewer.present.timeline.groups import Gathered, gather
from viewer.present.timeline.lanes import Single, lanes_of, single_windows
from viewer.present.timeline.marks import (
    Break,
    Deadline,
    breaks,
    deadline_of,
    drawn_length_us,
    own_deadline_x,
)
from viewer.present.timeline.scale import Scale, scale_of
from viewer.present.timeline.scopes import Scope
from viewer.present.timeline.spans import Kind, Span, State
from viewer.present.timeline.ticks import Tick, ticks
from viewer.present.timeline.window import Stretch, whole_of
from viewer.words import gettext as _

ROWS_MAX = 160
GROUPS_MAX = 60


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a span, or in a lane many of them."""

    label: str
    kind: Kind
    state: State
    depth: int
    bars: tuple[Bar, ...]
    note: Note | None
    seq: int
    start_us: int
    end_us: int | None
    is_suspect: bool = False
    first_x: float | None = None
    """Where a stream's first output came."""
    window: Stretch | None = None
    """Of a lane: where what begins it is drawn in single rows."""
    is_later: bool = False
    """Whether it began after the moment that the page looks at."""
    is_further: bool = False
    """Whether it is a further attempt of the step above it, or the wait for one."""


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one node or nested scope; without a label those of the run itself."""

    label: str
    band: Bar
    rows: tuple[Row, ...]
    depth: int = 0
    """How many groups it lies in."""
    is_continued: bool = False
    """Whether these are further rows of a group that was named before."""
    scope: Scope | None = None
    note: Note | None = None
    """Of a scope: its limits."""
    deadline_x: float | None = None
    """Of a scope: where its own deadline lies."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """All of the drawing."""

    scale: Scale
    whole: Stretch
    ticks: tuple[Tick, ...]
    breaks: tuple[Break, ...]
    deadline: Deadline | None
    groups: tuple[Group, ...]
    cursor_x: float | None
    after_is_dim: bool
    """Whether what lies after the cursor has not happened yet, as the page shows it."""
    shown_count: int
    total_count: int
    lanes: bool
    kinds: tuple[str, ...]
    """The kinds and states that occur, for the legend."""

    @property
    def window(self) -> Stretch:
        """What of the run is drawn."""
        return self.scale.window

    @property
    def is_zoomed(self) -> bool:
        """Whether that is not all of it."""
        return self.window != self.whole


def timeline(
    spans: Sequence[Span],
    length_us: int,
    *,
    scopes: Sequence[Scope] = (),
    cursor_us: int | None = None,
    after_is_dim: bool = False,
    window: Stretch | None = None,
    idle: Sequence[Stretch] = (),
    deadline_us: int | None = None,
) -> Timeline:
    """Lay out `spans` over `length_us`, the time from the run's start to its end or to its last event so far.

    Only `window` of it, if one is given; its `idle` stretches are folded.
    """
    whole = whole_of(drawn_length_us(length_us, deadline_us))
    scale = scale_of(window or whole, idle)
    inside = [span for span in spans if _is_in(scale.window, span.start_us, span.end_us)] if window else spans
    around = [each for each in scopes if _is_in(scale.window, each.start_us, each.end_us)] if window else scopes
    gathered = gather(inside, around)
    lanes = sum(span.count for span in inside) > ROWS_MAX
    single = single_windows(spans, scale.window, ROWS_MAX) if lanes else None
    dim_after_us = cursor_us if after_is_dim else None
    return Timeline(
        scale=scale,
        whole=whole,
        ticks=ticks(scale),
        breaks=breaks(scale),
        deadline=deadline_of(scale, deadline_us),
        groups=tuple(_group(each, scale, single, dim_after_us) for each in gathered[:GROUPS_MAX]),
        cursor_x=round(scale.x(cursor_us), 2) if cursor_us is not None and _is_drawn(scale, cursor_us) else None,
        after_is_dim=after_is_dim,
        shown_count=sum(span.count for each in gathered[:GROUPS_MAX] for span in each.spans),
        total_count=sum(span.count for span in spans),
        lanes=lanes,
        kinds=_legend(inside),
    )


def _is_in(window: Stretch, start_us: int, end_us: int | None) -> bool:
    return start_us <= window.end_us and (end_us is None or end_us >= window.start_us)


def _is_drawn(scale: Scale, at_us: int) -> bool:
    """Whether a moment has its place; in the whole run, what came after its end is drawn at the end."""
    return at_us >= scale.window.start_us and (at_us <= scale.window.end_us or scale.window.start_us == 0)


def _group(gathered: Gathered, scale: Scale, single: Single | None, dim_after_us: int | None) -> Group:
    scope = gathered.scope
    start_us, end_us = gathered.start_us, gathered.end_us
    return Group(
        label=gathered.label,
        band=bar_of(scale, start_us, end_us, "wait", "ok"),
        rows=_rows(gathered, scale, single, dim_after_us),
        depth=gathered.depth,
        scope=scope,
        is_continued=gathered.is_continued,
        note=note_over(scope.words, scale.x(start_us)) if scope is not None and scope.words else None,
        deadline_x=own_deadline_x(scale, scope.start_us, scope.timeout_us) if scope is not None else None,
    )


def _rows(gathered: Gathered, scale: Scale, single: Single | None, dim_after_us: int | None) -> tuple[Row, ...]:
    if single is None:
        return tuple(_row(span, scale, dim_after_us) for span in gathered.spans)
    return tuple(
        Row(
            label=lane.label,
            kind=lane.kind,
            state=lane.state,
            depth=1,
            bars=lane.bars,
            note=None,
            seq=lane.seq,
            start_us=lane.start_us,
            end_us=lane.end_us,
            is_suspect=lane.is_suspect,
            window=lane.window,
            is_later=dim_after_us is not None and lane.start_us > dim_after_us,
        )
        for lane in lanes_of(gathered.spans, scale, single)
    )


def _row(span: Span, scale: Scale, dim_after_us: int | None) -> Row:
    bar = bar_of(scale, span.start_us, span.end_us, span.kind, span.state)
    return Row(
        label=_("model · %(name)s", name=span.name) if span.kind == "model" else span.name,
        kind=span.kind,
        state=span.state,
        depth=min(indent(span.scope), 3),
        bars=(bar,),
        note=place_note(span.note, bar) if span.note else None,
        seq=span.seq,
        start_us=span.start_us,
        end_us=span.end_us,
        is_suspect=span.is_suspect,
        first_x=_first_x(span, scale),
        is_later=dim_after_us is not None and span.start_us > dim_after_us,
        is_further=span.kind == "wait" or span.attempt > 1,
    )


def _first_x(span: Span, scale: Scale) -> float | None:
    if span.first_us is None or not scale.window.holds(span.first_us):
        return None
    return round(scale.x(span.first_us), 2)


def _legend(spans: Sequence[Span]) -> tuple[str, ...]:
    present: set[str] = {span.kind for span in spans} | {span.state for span in spans}
    present |= {"suspect"} if any(span.is_suspect for span in spans) else set()
    order = ("model", "tool", "guard", "wait", "failed", "refused", "denied", "running", "abandoned", "late", "suspect")
    return tuple(word for word in order if word in present)
