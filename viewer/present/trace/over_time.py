"""The timeline's panel: the drawing, and the addresses of the same run seen closer, wider, earlier and later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ledger.words.format import duration
from viewer.present.links import TraceLinks
from viewer.present.timeline.drawing import Timeline, timeline
from viewer.present.timeline.marks import drawn_length_us
from viewer.present.timeline.minimap import Minimap, minimap
from viewer.present.timeline.scale import IDLE_SHARE, idle_stretches, scale_of
from viewer.present.timeline.scopes import scopes_of
from viewer.present.timeline.spans import Span, spans_of
from viewer.present.timeline.window import Stretch, beside, closer, whole_of, wider, window_of
from viewer.present.timeline.works import spans_of_works
from viewer.present.trace.spending import Spending, spending
from viewer.reading.run import RunReading


@dataclass(frozen=True, slots=True)
class Step:
    """A link to another stretch of the run."""

    name: str
    """`in`, `out`, `earlier`, `later` or `all`."""
    address: str | None
    """None where there is nothing more in that direction."""


@dataclass(frozen=True, slots=True)
class OverTime:
    """All that the panel shows."""

    drawing: Timeline
    minimap: Minimap | None
    spending: Spending
    steps: tuple[Step, ...]
    problem: str
    """How long the run was, where the address names a stretch that it does not have."""
    can_fold: bool
    """Whether there are idle stretches that are drawn in full because the address says so."""


def over_time(reading: RunReading, links: TraceLinks, length_us: int) -> OverTime:
    """Lay out what the address asks for of the whole run, also where the page shows it as it was at an earlier event.

    What came after that event is dim, since it had not happened then.
    """
    cursor_us = reading.selected.elapsed_us if reading.selected else None
    deadline_us = reading.whole.run.timeout_us
    whole = whole_of(drawn_length_us(length_us, deadline_us))
    window = window_of(links.t0, links.t1, whole)
    spans = spans_in(reading, window)
    least_us = (window or whole).length_us * IDLE_SHARE
    idle = idle_stretches(_busy(reading, spans), whole.end_us, least_us=least_us)
    drawing = timeline(
        spans,
        length_us,
        scopes=scopes_of(reading.events) if reading.complete else (),
        cursor_us=cursor_us,
        after_is_dim=reading.trace.run.event_count < reading.whole.run.event_count,
        window=window,
        idle=() if links.idle == "shown" else idle,
        deadline_us=deadline_us,
    )
    return OverTime(
        drawing=drawing,
        minimap=minimap(spans, drawing.window, whole, idle),
        spending=spending(reading, drawing.scale, length_us),
        steps=tuple(_steps(links, drawing.window, whole, cursor_us)),
        problem="" if window is not None or _asks_for_all(links, whole) else duration(length_us),
        can_fold=links.idle == "shown" and bool(scale_of(drawing.window, idle).folds),
    )


def spans_in(reading: RunReading, window: Stretch | None) -> list[Span]:
    """All that took time, from every event, or of a long run from its steps and tools."""
    whole = reading.whole
    if reading.complete:
        return spans_of(reading.events, whole.tool_invocations, whole.agent_steps)
    return spans_of_works(reading.whole_works, window)


def _asks_for_all(links: TraceLinks, whole: Stretch) -> bool:
    return not links.t0 and (links.t1 is None or links.t1 >= whole.end_us)


def _busy(reading: RunReading, spans: Sequence[Span]) -> Iterator[tuple[int, int | None]]:
    """All that happened: what took time, and what is known of the moments at which something was written down."""
    yield from ((span.start_us, span.end_us) for span in spans)
    yield from ((event.elapsed_us, event.elapsed_us) for event in reading.events if event.elapsed_us is not None)


def _steps(links: TraceLinks, window: Stretch, whole: Stretch, cursor_us: int | None) -> Iterator[Step]:
    def to(stretch: Stretch | None) -> str | None:
        if stretch is None or stretch == whole:
            return None if stretch is None else links.zoomed_out
        return links.zoomed(stretch.start_us, stretch.end_us)

    yield Step("in", to(closer(window, whole, cursor_us)))
    yield Step("out", to(wider(window, whole)))
    yield Step("earlier", to(beside(window, whole, -1)))
    yield Step("later", to(beside(window, whole, 1)))
    yield Step("all", links.zoomed_out if window != whole else None)
