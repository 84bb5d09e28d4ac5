"""What the page of a run is made of, under the names that its templates read, each part in all of its states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.records import RunDetail
from ledger.words.codes import plain
from viewer.guide import drawn, events, told
from viewer.guide.lists import AT_US, RUN, SESSION
from viewer.present.links import TraceLinks, View
from viewer.present.sentence import Part
from viewer.present.trace.event_list import EventList
from viewer.present.trace.page import TraceParts
from viewer.present.trace.replay import ReplayBar
from viewer.present.trace.stopping import StopRequest
from viewer.present.trace.verdict import Verdict
from viewer.site import Site


@dataclass(frozen=True, slots=True)
class GuideRun:
    """The run and what was said of it, as far as the templates look into it."""

    run: RunDetail
    feedback: Mapping[str, Any] | None


@dataclass(frozen=True)
class GuidePage(TraceParts):
    """As `viewer.present.trace.page.TracePage`, without what is no component of its own."""

    trace: GuideRun
    events: EventList
    tabs: Sequence[tuple[View, str, int | None]]


def guide_page(site: Site) -> GuidePage:
    """All of it."""
    links = TraceLinks(SESSION, RUN, view="transcript", site=site)
    walk = drawn.transitions()
    return GuidePage(
        trace=GuideRun(events.run(), {"useful": True, "actor": "on-call", "recorded_us": AT_US}),
        links=links,
        notices=("There is no event 99: the run has 44.", "The run has no tool call 7."),
        title="Why did the nightly import stop on db-3?",
        elapsed_us=2_560_000,
        verdict=Verdict("Success", "good", (Part("Answered after 4.17 s. It wrote with "), Part("open_ticket", True))),
        asked=StopRequest(seq=43, at_us=AT_US, reason=plain("USER_REQUESTED"), actor="on-call"),
        models="offline-rules-1",
        cost="0.0182 USD",
        gauges=told.gauges(),
        over_time=drawn.over_time(),
        transitions=walk,
        transition_count=40,
        graph=drawn.walked(),
        answer=None,
        events=events.listed(links),
        inspector=events.inspected(links),
        replay=_replay_bar(links),
        transcript=told.transcript(),
        judgements=told.judged(),
        tabs=(("transcript", "Transcript", None), ("steps", "Model steps", 3), ("events", "Events", 44)),
    )


def _replay_bar(links: TraceLinks) -> ReplayBar:
    return ReplayBar(
        seq=12,
        total=44,
        event_type="attempt.failed",
        is_past=True,
        first=None,
        previous=links.replaying(11),
        following=links.replaying(13),
        last=links.replaying(None),
        failure=links.seeking("failure"),
        failure_before=None,
        kind=links.seeking("kind"),
        kind_before=links.seeking("kind-before"),
    )
