"""Drawings: a timeline with a row of each kind and state, and a graph with every way of going on."""

from viewer.present.timeline.consumption import Level
from viewer.present.timeline.curves import curve
from viewer.present.timeline.drawing import timeline
from viewer.present.timeline.scale import idle_stretches
from viewer.present.timeline.spans import Kind, Span, State
from viewer.present.trace.graph import Graph, Transition, graph
from viewer.present.trace.over_time import OverTime, Step
from viewer.present.trace.spending import Spending, Spent

LENGTH_US = 12_000_000
DEADLINE_US = 13_000_000
TOKENS_MAX = 2_000

_SPANS: tuple[tuple[Kind, State, str, str], ...] = (
    ("model", "ok", "planner", "812 in · 204 out"),
    ("tool", "ok", "query_metrics", "disk · db-3"),
    ("guard", "ok", "evidence_guard", ""),
    ("model", "failed", "router", "attempt 1 of 2 · connection failed"),
    ("wait", "wait", "back-off", "60 ms"),
    ("tool", "refused", "query_logs", "the limit of 5 was reached"),
    ("tool", "denied", "rollback", "denied: effect not allowed"),
    ("tool", "passed", "query_logs", "past an observed limit of 2"),
    ("tool", "abandoned", "slow_search", "abandoned"),
    ("tool", "late", "slow_search", "finished late"),
    ("model", "running", "composer", ""),
)


def over_time() -> OverTime:
    """The panel of the timeline."""
    spans = [_span(number, *each) for number, each in enumerate(_SPANS)]
    idle = idle_stretches([(span.start_us, span.end_us) for span in spans], LENGTH_US, least_us=LENGTH_US / 10)
    drawing = timeline(spans, LENGTH_US, idle=idle, deadline_us=DEADLINE_US, cursor_us=10_400_000)
    levels = [Level(0, 0), Level(2_000_000, 900), Level(6_000_000, 1_600, 500), Level(9_000_000, 1_400, 0, 1)]
    used = Spent(
        label="Total tokens",
        used="1,400",
        limit="2,000",
        is_binding=True,
        curve=curve(levels, TOKENS_MAX, drawing.scale, LENGTH_US),
        told=("0", "900", "1,600, of which 500 are reserved", "1,400"),
        words="900 from 2 s, 1,600 from 6 s, 1,400 from 9 s",
    )
    steps = (Step("in", "#timeline"), Step("out", None), Step("earlier", None), Step("later", None), Step("all", None))
    return OverTime(drawing, None, Spending((used,), (), is_from_lines=False), steps, "", can_fold=False)


def _span(number: int, kind: Kind, state: State, name: str, note: str) -> Span:
    # The last ones come after a long silence, which is folded.
    start_us = number * 600_000 + (3_000_000 if number > 8 else 0)
    return Span(
        seq=number + 1,
        scope=("executor.1",) if number < 5 else ("composer.2",),
        kind=kind,
        state=state,
        name=name,
        start_us=start_us,
        end_us=None if state == "running" else start_us + 500_000,
        note=note,
        warnings=("past an observed limit",) if state == "passed" else (),
    )


def transitions() -> list[Transition]:
    """A walk that goes on, comes back twice for a repair, and falls back."""
    walk = [
        (None, "planner", "NEXT"),
        ("planner", "executor", "NEXT"),
        ("executor", "evidence_guard", "NEXT"),
        ("evidence_guard", "executor", "REPAIR"),
        ("executor", "evidence_guard", "NEXT"),
        ("evidence_guard", "fallback", "FALLBACK"),
    ]
    return [Transition(number, *step, seq=number, elapsed_us=number * 700_000) for number, step in enumerate(walk, 1)]


def walked() -> Graph | None:
    """The same as a drawing."""
    return graph(transitions(), at_seq=5)
