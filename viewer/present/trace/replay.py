"""The bar that walks through a run event by event."""

from dataclasses import dataclass

from viewer.present.links import TraceLinks
from viewer.reading.run import RunReading


@dataclass(frozen=True, slots=True)
class ReplayBar:
    """Where in the run the page is, and the addresses of the moments around."""

    seq: int
    """The event at which the run is shown; its last one where it is shown as it is now."""
    total: int
    event_type: str
    is_past: bool
    """Whether the run is shown as it was, not as it is."""
    first: str | None
    previous: str | None
    following: str | None
    last: str | None
    failure: str | None
    failure_before: str | None
    kind: str | None
    kind_before: str | None


def replay_bar(reading: RunReading, links: TraceLinks) -> ReplayBar:
    """The bar of a page; from the run as it is now, back leads to the event before the last."""
    seq, total = reading.trace.run.event_count, reading.whole.run.event_count
    is_past = reading.place is not None
    shown = reading.place.moment.event if reading.place else reading.events[-1] if reading.events else None
    return ReplayBar(
        seq=seq,
        total=total,
        event_type=shown.type if shown else "",
        is_past=is_past,
        first=links.replaying(1) if seq > 1 else None,
        previous=links.replaying(seq - 1) if seq > 1 else None,
        following=links.replaying(seq + 1) if seq < total else None,
        last=links.replaying(None) if is_past else None,
        failure=links.seeking("failure") if seq < total else None,
        failure_before=links.seeking("failure-before") if seq > 1 else None,
        kind=links.seeking("kind") if seq < total else None,
        kind_before=links.seeking("kind-before") if seq > 1 else None,
    )
