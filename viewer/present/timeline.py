"""The geometry of a run's timeline, in per cent of its width, so that one drawing fits a desk and a phone.

Rows are grouped by the first segment of their scope, which is the graph's node. A run with more rows than a page
can carry is drawn as lanes: one line per group, bars that would touch the same pixel merged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from viewer.present.spans import Kind, Span, State

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
    """after, before or inside."""
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


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one node; without a label those of the run itself."""

    label: str
    band: Bar
    rows: tuple[Row, ...]


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


def timeline(spans: Sequence[Span], length_us: int, *, cursor_us: int | None = None) -> Timeline:
    """Lay out `spans` over `length_us`, the time from the run's start to its end or to its last event so far."""
    scale = _Scale(max(length_us, 1))
    gathered = _gather(spans)
    lanes = len(spans) > ROWS_MAX
    make = _lane if lanes else _group
    groups = tuple(make(label, members, scale) for label, members in gathered[:GROUPS_MAX])
    return Timeline(
        ticks=ticks(scale.length_us),
        groups=groups,
        cursor_x=None if cursor_us is None else scale.x(cursor_us),
        shown_count=sum(len(members) for _, members in gathered[:GROUPS_MAX]),
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
        width = max(round(width, 2), REFUSED_WIDTH if state == "refused" else WIDTH_MIN)
        return Bar(min(x, 100.0 - width), width, kind, state)


def _gather(spans: Sequence[Span]) -> list[tuple[str, list[Span]]]:
    """Spans by group, groups by their first start; what lies outside any scope is grouped only with its neighbours."""
    groups: dict[str, list[Span]] = {}
    stretches = groupby(spans, key=lambda span: span.scope[0] if span.scope else "")
    for index, (label, members) in enumerate(stretches):
        groups.setdefault(label or f"\0{index}", []).extend(members)
    return [("" if label.startswith("\0") else label, members) for label, members in groups.items()]


def _group(label: str, members: list[Span], scale: _Scale) -> Group:
    return Group(label, _band(members, scale), tuple(_row(span, scale) for span in members))


def _lane(label: str, members: list[Span], scale: _Scale) -> Group:
    rows = []
    for kind in ("model", "tool", "guard", "wait"):
        same = [span for span in members if span.kind == kind]
        if same:
            bars = merge(scale.bar(span.start_us, span.end_us, span.kind, span.state) for span in same)
            state: State = "failed" if any(span.state == "failed" for span in same) else same[0].state
            name = f"{len(same):,} × {kind}"
            start_us, ends = same[0].start_us, [span.end_us for span in same if span.end_us is not None]
            rows.append(Row(name, same[0].kind, state, 1, bars, None, same[0].seq, start_us, max(ends, default=None)))
    return Group(label, _band(members, scale), tuple(rows))


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
    label = f"model · {span.name}" if span.kind == "model" else span.name
    depth = min(len(span.scope), 3)
    note = place_note(span.note, bar) if span.note else None
    return Row(label, span.kind, span.state, depth, (bar,), note, span.seq, span.start_us, span.end_us)


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


def _band(members: list[Span], scale: _Scale) -> Bar:
    ends = [span.end_us for span in members]
    end = None if any(each is None for each in ends) else max(each for each in ends if each is not None)
    return scale.bar(min(span.start_us for span in members), end, "wait", "ok")


def _legend(spans: Sequence[Span]) -> tuple[str, ...]:
    present = {span.kind for span in spans} | {span.state for span in spans}
    order = ("model", "tool", "guard", "wait", "failed", "refused", "running", "abandoned", "late")
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
