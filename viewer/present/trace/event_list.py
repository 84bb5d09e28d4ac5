"""The list of a run's events: a page of them, or of those that are looked for, and what came after the run's end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.events import EVENT_TYPES
from ledger.records import RecordedEvent
from ledger.words import event_lines
from ledger.words.format import count
from viewer.present.links import TraceLinks
from viewer.present.trace.rows import Paging, paging
from viewer.reading.run import EVENTS_PER_READ, RunReading
from viewer.words import gettext as _
from viewer.words import ngettext

FAMILIES = tuple(sorted({event_type.partition(".")[0] for event_type in EVENT_TYPES}))
"""The types of events by what stands before their dot."""
_ANNOTATIONS = ("feedback", "evaluation", "case")


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event as one line."""

    event: RecordedEvent
    tone: str
    line: str
    href: str
    selected: bool
    holds: bool | None
    """Whether it is what was hashed, and linked to the one before; None where that was not looked at."""
    heading: str
    """What stands above it: that the run had ended by then."""


@dataclass(frozen=True, slots=True)
class EventList:
    """A page of the list."""

    rows: Sequence[EventRow]
    paging: Paging
    broken_count: int
    """Rows whose link does not hold."""
    checked: bool
    families: Sequence[str] = FAMILIES
    """What the list can be narrowed down to."""


def event_list(reading: RunReading, links: TraceLinks) -> EventList:
    """The page of the list that the address asks for."""
    seq = reading.selected.seq if reading.selected else None
    holds: Sequence[bool | None] = reading.links or [None] * len(reading.page.events)
    heading_at, heading = _after_the_end(reading)
    rows = [
        EventRow(
            event=event,
            tone=event_lines.tone(event.type, event.fields),
            line=event_lines.line(event.type, event.fields),
            href=links.event_at(event.seq),
            selected=event.seq == seq,
            holds=holds_it,
            heading=heading if event.seq == heading_at else "",
        )
        for event, holds_it in zip(reading.page.events, holds, strict=True)
    ]
    total = reading.trace.run.event_count
    broken_count = sum(row.holds is False for row in rows)
    if links.is_filtered:
        return EventList(rows, _searched(reading, links), broken_count, checked=False)
    listed = paging(links.after, len(rows), total, EVENTS_PER_READ, links.events_after)
    return EventList(rows, listed, broken_count, checked=bool(reading.links))


def _searched(reading: RunReading, links: TraceLinks) -> Paging:
    """How far was searched, and the way on."""
    total, at = reading.trace.run.event_count, reading.page.looked_at_seq
    found, facts = len(reading.page.events), {"total": count(total)}
    if not links.after and at >= total:
        showing = ngettext(
            "%(num)s event found, searched all %(total)s",
            "%(num)s events found, searched all %(total)s",
            found,
            **facts,
        )
    else:
        facts |= {"first": count(min(links.after + 1, total)), "last": count(at)}
        showing = ngettext(
            "%(num)s event found, searched %(first)s–%(last)s of %(total)s",
            "%(num)s events found, searched %(first)s–%(last)s of %(total)s",
            found,
            **facts,
        )
    return Paging(
        showing=showing,
        previous=links.events_after(0) if links.after else None,
        following=links.events_after(at) if at < total else None,
    )


def _after_the_end(reading: RunReading) -> tuple[int | None, str]:
    """The first listed event behind the one that ended the run, and what is said above it."""
    ended = next(
        (event.seq for event in (*reading.events, *reading.page.events) if event.type == "run.terminated"), None
    )
    if ended is None or ended >= reading.trace.run.event_count:
        return None, ""
    first = next((event.seq for event in reading.page.events if event.seq > ended), None)
    later = [event for event in reading.past_events if event.seq > ended]
    if len(later) < reading.trace.run.event_count - ended:
        number = reading.trace.run.event_count - ended
        return first, ngettext("After the end: %(num)s event", "After the end: %(num)s events", number)
    return first, _("After the end: %(events)s", events=", ".join(_counted(later)))


def _counted(events: Sequence[RecordedEvent]) -> Iterator[str]:
    kinds = Counter(map(_kind_of, events))
    if number := kinds["annotation"]:
        yield ngettext("%(num)s annotation", "%(num)s annotations", number)
    if number := kinds["late result"]:
        yield ngettext("%(num)s late result", "%(num)s late results", number)
    if number := kinds["erasure"]:
        yield ngettext("%(num)s erasure", "%(num)s erasures", number)
    if number := kinds["further event"]:
        yield ngettext("%(num)s further event", "%(num)s further events", number)


def _kind_of(event: RecordedEvent) -> str:
    family = event.type.partition(".")[0]
    if family in _ANNOTATIONS:
        return "annotation"
    if event.type == "attempt.finished_late":
        return "late result"
    return "erasure" if event.type == "content.erased" else "further event"
