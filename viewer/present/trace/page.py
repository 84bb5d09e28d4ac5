"""All that the trace page shows of one run, put together from the pure parts; the template only places it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ledger.audit.walking.standing import Change, changes
from ledger.reading.parts import WorkLine
from ledger.records import RecordedEvent, RunDetail, RunTrace
from ledger.words.format import money
from ledger.words.text import shorten
from viewer.present.content import Block
from viewer.present.links import TraceLinks, View
from viewer.present.timeline.scopes import scopes_of
from viewer.present.trace import rows
from viewer.present.trace.event_list import EventList, event_list
from viewer.present.trace.gauges import Gauge, gauges
from viewer.present.trace.graph import Graph, Transition, graph
from viewer.present.trace.inspector import Inspector, inspector
from viewer.present.trace.judgements import Judgement, judgements
from viewer.present.trace.notices import notices
from viewer.present.trace.over_time import OverTime, over_time
from viewer.present.trace.replay import ReplayBar, replay_bar
from viewer.present.trace.stopping import StopRequest, stop_request
from viewer.present.trace.transcript import Transcript, transcript_of
from viewer.present.trace.verdict import Verdict, verdict
from viewer.reading.replays import Place
from viewer.reading.run import RunReading
from viewer.words import gettext as _

TITLE_CHARS_MAX = 240
TRANSITIONS_LISTED = 24


@dataclass(frozen=True)
class TraceParts:
    """What the templates of the page place; the style guide makes it up."""

    links: TraceLinks
    notices: Sequence[str]
    title: str
    elapsed_us: int
    verdict: Verdict
    asked: StopRequest | None
    """Who asked it to stop."""
    models: str
    cost: str
    """What it cost, where no gauge says so."""
    gauges: tuple[Gauge, ...]
    over_time: OverTime
    transitions: Sequence[Transition]
    transition_count: int
    graph: Graph | None
    answer: Block | None
    inspector: Inspector | None
    replay: ReplayBar
    transcript: Transcript
    judgements: Sequence[Judgement]


@dataclass(frozen=True)
class TracePage(TraceParts):
    """The page. Of its lists those are made that are looked at: it shows one."""

    reading: RunReading
    trace: RunTrace

    @property
    def steps(self) -> Sequence[rows.WorkRow]:
        """A page of the model steps."""
        return self._steps[0]

    @property
    def steps_paging(self) -> rows.Paging:
        """Which page it is."""
        return self._steps[1]

    @property
    def tools(self) -> Sequence[rows.WorkRow]:
        """A page of the tool calls."""
        return self._tools[0]

    @property
    def tools_paging(self) -> rows.Paging:
        """Which page it is."""
        return self._tools[1]

    @cached_property
    def events(self) -> EventList:
        """A page of the events."""
        return event_list(self.reading, self.links)

    @cached_property
    def _steps(self) -> tuple[Sequence[rows.WorkRow], rows.Paging]:
        run = self.trace.run
        return rows.step_rows(self.reading.steps, run.summary.step_count, self.links, run.currency)

    @cached_property
    def _tools(self) -> tuple[Sequence[rows.WorkRow], rows.Paging]:
        return rows.tool_rows(self.reading.tools, self.trace.run.summary.tool_call_count, self.links)

    @property
    def tabs(self) -> Sequence[tuple[View, str, int | None]]:
        """The lists: each with its name and how many rows it has."""
        return (
            ("transcript", _("Transcript"), None),
            ("steps", _("Model steps"), self.trace.run.summary.step_count),
            ("tools", _("Tool calls"), self.trace.run.summary.tool_call_count),
            ("events", _("Events"), self.trace.run.event_count),
        )


def trace_page(reading: RunReading, links: TraceLinks, told: str = "") -> TracePage:
    """Everything for the template; `told` is what came of looking for something in the run."""
    trace, run, selected = reading.trace, reading.trace.run, reading.selected
    elapsed_us = lasted_us(reading)
    transitions = transitions_of(trace, reading.past_events if reading.complete else ())
    scopes, asked = scopes_of(reading.past_events) if reading.complete else [], stop_request(reading.past_events)
    transcript = transcript_of(reading, links)
    return TracePage(
        reading=reading,
        trace=trace,
        links=links,
        notices=(*filter(None, [told]), *notices(reading, links, transcript.entry_count)),
        title=shorten(run.summary.query or "", TITLE_CHARS_MAX) or _("The question is not kept"),
        elapsed_us=elapsed_us,
        verdict=verdict(
            trace,
            transitions,
            elapsed_us,
            scopes,
            asked,
            works=reading.works,
            is_past=reading.place is not None,
        ),
        asked=asked,
        models=models_of(reading.works),
        cost=cost_of(run),
        gauges=gauges(run, elapsed_us),
        over_time=over_time(reading, links, _elapsed_us(reading.whole.run, reading.events)),
        transitions=transitions[:TRANSITIONS_LISTED],
        transition_count=len(transitions),
        graph=graph_of(reading, transitions),
        answer=rows.content_block("answer", trace.answer, links, long=True),
        inspector=inspector(reading, links, changed_by(selected, reading.place)),
        replay=replay_bar(reading, links),
        transcript=transcript,
        judgements=judgements(trace.feedback, trace.self_evaluation),
    )


def graph_of(reading: RunReading, past: Sequence[Transition]) -> Graph | None:
    """The whole walk, with what came after the moment that is looked at as later; of a long run only what had been."""
    if not reading.complete:
        return graph(past)
    return graph(transitions_of(reading.whole, reading.events), at_seq=reading.trace.run.event_count)


def lasted_us(reading: RunReading) -> int:
    """How long the run lasted, or had lasted; of a running one, when its last event came."""
    if reading.place is not None and reading.trace.run.elapsed_us is None:
        return reading.place.moment.elapsed_us
    return _elapsed_us(reading.trace.run, reading.events)


def _elapsed_us(run: RunDetail, events: Sequence[RecordedEvent]) -> int:
    if run.elapsed_us is not None:
        return run.elapsed_us
    return max((event.elapsed_us for event in events if event.elapsed_us is not None), default=0)


def changed_by(event: RecordedEvent | None, place: Place | None) -> Sequence[Change]:
    """What the event made of the run, where the page shows the run as it was just after it."""
    if event is None or place is None or event.seq != place.moment.seq:
        return ()
    return changes(place.before, place.moment)


def transitions_of(trace: RunTrace, events: Sequence[RecordedEvent]) -> list[Transition]:
    """The walk through the graph: from its events, else from the stored orchestration trace; nothing is made up."""
    steps: list[tuple[str | None, str, str, int | None, int | None]] = [
        (event.fields.get("from_node"), event.fields["to_node"], event.fields["cause"], event.seq, event.elapsed_us)
        for event in events
        if event.type == "graph.transitioned"
    ]
    if not steps:
        stored = (trace.run.orchestration_trace or {}).get("transitions") or ()
        steps = [(each.get("from"), str(each["to"]), str(each.get("cause", "NEXT")), None, None) for each in stored]
    return [Transition(number, *step) for number, step in enumerate(steps, 1)]


def cost_of(run: RunDetail) -> str:
    """The cost of a run that has no limit on it, with what is not known of it; empty where nothing was priced."""
    micros = run.usage.get("cost_micros")
    if micros is None or "cost_micros" in {**run.limits, **run.observed_limits}:
        return ""
    cost = f"{money(micros)} {run.currency or _('of cost')}"
    return _("at least %(cost)s", cost=cost) if run.cost_unknown_count else cost


def models_of(steps: Sequence[WorkLine]) -> str:
    """The names of the models that were called, at most three."""
    names = list(dict.fromkeys(step.model for step in steps if step.model))
    shown = ", ".join(names[:3])
    return _("%(names)s and %(number)s more", names=shown, number=len(names) - 3) if len(names) > 3 else shown
