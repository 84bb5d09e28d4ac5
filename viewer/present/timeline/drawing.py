"""The geometry of a run's timeline, in per cent of its width, so that one drawing fits a desk and a phone.

Rows are grouped by the graph's node that they ran in and by the nested scope that they were charged to. A run with
more rows than a page can carry is drawn as lanes: one line per group, bars that would touch the same pixel merged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.words.places import indent
from viewer.present.timeline.groups import Gathered, gather
from viewer.present.timeline.scopes import Scope
from viewer.present.timeline.spans import Kind, Span, State

ROWS_MAX = 160
GROUPS_MAX = 60
RESOLUTION = 0.1
"""Per cent of the width; lanes merge bars that are closer together."""
WIDTH_MIN = 0.35
"""Per cent; so that a short attempt can still be seen."""
REFUSED_WIDTH = 1.1
"""Per cent; a refusal takes no time, and still is an outline."""
_CHAR_WIDTH = 0.95
"""Per cent of the narrowest plot that draws notes beside bars."""
_AT_ONCE = ("refused", "denied", "passed")
_EDGE = 98.0
"""Where the run's end lies; the rest is air."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle: kind decides its shape, state its colour and stroke."""

    x: float
    width: float
    kind: Kind
    state: State


@dataclass(frozen=True, slots=True)
class Note:
    """Words beside a bar, on the side where there is room for them, else on it."""

    text: str
    x: float
    side: str
    """after, before or inside; over a scope's band."""
    full: str
    """The words uncut."""


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


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All of the drawing."""

    ticks: tuple[Tick, ...]
    groups: tuple[Group, ...]
    cursor_x: float | None
    shown_count: int
    total_count: int
    lanes: bool
    kinds: tuple[str, ...]
    """The kinds and states that occur, for the legend."""


def timeline(
    spans: Sequence[Span], length_us: int, *, scopes: Sequence[Scope] = (), cursor_us: int | None = None
) -> Timeline:
    """Lay out `spans` over `length_us`, the time from the run's start to its end or to its last event so far."""
    scale = _Scale(max(length_us, 1))
    gathered = gather(spans, scopes)
    lanes = len(spans) > ROWS_MAX
    return Timeline(
        ticks=ticks(scale.length_us),
        groups=tuple(_group(each, scale, lanes=lanes) for each in gathered[:GROUPS_MAX]),
        cursor_x=None if cursor_us is None else scale.x(cursor_us),
        shown_count=sum(len(each.spans) for each in gathered[:GROUPS_MAX]),
        total_count=len(spans),
        lanes=lanes,
        kinds=_legend(spans),
    )


def ticks(length_us: int) -> tuple[Tick, ...]:
    """Three to six round times, with their unit."""
    step = next(step for step in _steps() if length_us / step <= 5.5)
    scale = _Scale(max(length_us, 1))
    return tuple(Tick(scale.x(at), _tick_label(at, step)) for at in range(0, length_us + 1, step))


@dataclass(frozen=True, slots=True)
class _Scale:
    length_us: int

    def x(self, at_us: int) -> float:
        return round(min(max(at_us, 0), self.length_us) / self.length_us * _EDGE, 2)

    def bar(self, start_us: int, end_us: int | None, kind: Kind, state: State) -> Bar:
        x = self.x(start_us)
        width = (100.0 if end_us is None else self.x(end_us)) - x
        width = max(round(width, 2), REFUSED_WIDTH if state in _AT_ONCE else WIDTH_MIN)
        return Bar(min(x, 100.0 - width), width, kind, state)


def _group(gathered: Gathered, scale: _Scale, *, lanes: bool) -> Group:
    scope = gathered.scope
    start_us, end_us = gathered.start_us, gathered.end_us
    return Group(
        label=gathered.label,
        band=scale.bar(start_us, end_us, "wait", "ok"),
        rows=_lanes(gathered.spans, scale) if lanes else tuple(_row(span, scale) for span in gathered.spans),
        depth=gathered.depth,
        scope=scope,
        is_continued=gathered.is_continued,
        note=_over(scope.words, scale.x(start_us)) if scope is not None and scope.words else None,
    )


def _lanes(spans: Sequence[Span], scale: _Scale) -> tuple[Row, ...]:
    rows = []
    for kind in ("model", "tool", "guard", "wait"):
        same = [span for span in spans if span.kind == kind]
        if same:
            bars = merge(scale.bar(span.start_us, span.end_us, span.kind, span.state) for span in same)
            state: State = "failed" if any(span.state == "failed" for span in same) else same[0].state
            name = f"{len(same):,} × {kind}"
            start_us, ends = same[0].start_us, [span.end_us for span in same if span.end_us is not None]
            suspect = any(span.is_suspect for span in same)
            row = Row(name, same[0].kind, state, 1, bars, None, same[0].seq, start_us, max(ends, default=None), suspect)
            rows.append(row)
    return tuple(rows)


def merge(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    """Bars that nearly touch become one; a failure or a refusal in it colours it."""
    out: list[Bar] = []
    for bar in sorted(bars, key=lambda each: each.x):
        last = out[-1] if out else None
        if last is None or bar.x > last.x + last.width + RESOLUTION:
            out.append(bar)
            continue
        state = bar.state if bar.state in ("failed", "refused") else last.state
        out[-1] = Bar(last.x, round(max(last.x + last.width, bar.x + bar.width) - last.x, 2), last.kind, state)
    return tuple(out)


def _row(span: Span, scale: _Scale) -> Row:
    bar = scale.bar(span.start_us, span.end_us, span.kind, span.state)
    return Row(
        label=f"model · {span.name}" if span.kind == "model" else span.name,
        kind=span.kind,
        state=span.state,
        depth=min(indent(span.scope), 3),
        bars=(bar,),
        note=place_note(span.note, bar) if span.note else None,
        seq=span.seq,
        start_us=span.start_us,
        end_us=span.end_us,
        is_suspect=span.is_suspect,
        first_x=None if span.first_us is None else scale.x(span.first_us),
    )


def _over(text: str, x: float) -> Note:
    """Words over a thin band, from where it begins, or so far left that they fit."""
    room = int(100 / _CHAR_WIDTH) - 1
    shown = text if len(text) <= room else text[: room - 1].rstrip() + "…"
    return Note(shown, round(max(min(x, 99 - len(shown) * _CHAR_WIDTH), 0.0), 2), "over", text)


def place_note(text: str, bar: Bar) -> Note:
    """After the bar if it fits there, else before it, else on it."""
    needed = len(text) * _CHAR_WIDTH + 1
    if bar.x + bar.width + needed <= 100:
        return Note(text, round(bar.x + bar.width, 2), "after", text)
    if bar.x >= needed:
        return Note(text, bar.x, "before", text)
    if bar.width >= needed:
        return Note(text, bar.x, "inside", text)
    # No side has room: the side with more of it, and the words are cut by the edge rather than laid over the bar.
    after = 100 - bar.x - bar.width >= bar.x
    room = (100 - bar.x - bar.width if after else bar.x) / _CHAR_WIDTH - 1
    cut = text[: max(int(room) - 1, 1)].rstrip() + "…"
    return Note(cut, round(bar.x + bar.width, 2) if after else bar.x, "after" if after else "before", text)


def _legend(spans: Sequence[Span]) -> tuple[str, ...]:
    present: set[str] = {span.kind for span in spans} | {span.state for span in spans}
    present |= {"suspect"} if any(span.is_suspect for span in spans) else set()
    order = ("model", "tool", "guard", "wait", "failed", "refused", "denied", "running", "abandoned", "late", "suspect")
    return tuple(word for word in order if word in present)


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


def _tick_label(at_us: int, step_us: int) -> str:
    if at_us == 0:
        return "0 s"
    for unit_us, unit in ((3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s")):
        if step_us >= unit_us:
            return f"{at_us // unit_us:,} {unit}"
    if step_us >= 100_000:
        return f"{at_us / 1_000_000:.1f} s"
    return f"{at_us // 1_000:,} ms" if step_us >= 1_000 else f"{at_us:,} µs"
