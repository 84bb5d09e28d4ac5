"""One event in full: its fields, its bytes and hashes, what it names by digest, and what it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.audit.walking.standing import Change
from ledger.records import RecordedEvent
from ledger.words import event_lines
from viewer.present import json_tree
from viewer.present.content import Block
from viewer.present.links import TraceLinks
from viewer.present.trace.rows import content_block
from viewer.reading.run import EVENTS_PER_READ, RunReading


@dataclass(frozen=True, slots=True)
class Inspector:
    """The event."""

    event: RecordedEvent
    tone: str
    line: str
    tree: json_tree.Node
    named: Sequence[tuple[str, Block]]
    """The contents that it names by digest, each with what it is of it."""
    listed: bool
    """Whether the shown page of the event list holds it."""
    chosen: bool
    """Whether the address names it; else the page chose it."""
    previous: str | None
    following: str | None
    found: str
    """The page of the event list that holds it."""
    changed: Sequence[Change]
    """What it made of the run, where the run is shown as it was just after it."""
    then: str
    """The run as it was just after it."""
    api: str
    """The event as JSON."""


def inspector(reading: RunReading, links: TraceLinks, changed: Sequence[Change] = ()) -> Inspector | None:
    """The selected event; its neighbours are those of the run, or moments of it where the page shows a moment."""
    selected = reading.selected
    if selected is None:
        return None
    own = {name: value for name, value in selected.fields.items() if name not in event_lines.ENVELOPE}
    blocks = [(name, content_block(f"event-{name}", content, links)) for name, content in reading.named.items()]
    is_past = reading.place is not None

    def at(seq: int) -> str | None:
        if not 1 <= seq <= reading.whole.run.event_count:
            return None
        return links.replaying(seq) if is_past else links.found(seq, EVENTS_PER_READ)

    return Inspector(
        event=selected,
        tone=event_lines.tone(selected.type, selected.fields),
        line=event_lines.line(selected.type, selected.fields),
        tree=json_tree.of(own),
        named=[(name, each) for name, each in blocks if each is not None],
        listed=any(event.seq == selected.seq for event in reading.page.events),
        chosen=links.event is not None,
        previous=at(selected.seq - 1),
        following=at(selected.seq + 1),
        found=links.found(selected.seq, EVENTS_PER_READ),
        changed=changed,
        then=links.replaying(selected.seq),
        api=links.event_api(selected.seq),
    )
