"""From one event of a run to the next of a kind, forward or back, in bounded steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ledger.records import RecordedEvent
from ledger.words.event_lines import is_failure
from viewer.reading.reader import Reader

SEEK_EVENTS_MAX = 20_000
"""Looked at in one go; a longer way is gone in several."""
_EVENTS_PER_READ = 1_000

Wanted = Callable[[RecordedEvent], bool]


class Sought(NamedTuple):
    """What came of looking."""

    seq: int
    """The event that was found; else how far was looked."""
    is_found: bool
    is_all: bool = True
    """Whether nothing is left to look at that way."""


async def seek(
    reader: Reader, keys: tuple[str, str], from_seq: int, head_seq: int, is_wanted: Wanted, *, back: bool = False
) -> Sought:
    """The first event wanted behind, or before, `from_seq`, among those up to `head_seq`."""
    at = from_seq
    for _ in range(0, SEEK_EVENTS_MAX, _EVENTS_PER_READ):
        start, end = (max(at - 1 - _EVENTS_PER_READ, 0), at - 1) if back else (at, min(at + _EVENTS_PER_READ, head_seq))
        if end <= start:
            return Sought(at, is_found=False)
        events = await reader.events(*keys, after_seq=start, limit=end - start)
        found = [event.seq for event in events if event.seq <= head_seq and is_wanted(event)]
        if found:
            return Sought(found[-1] if back else found[0], is_found=True)
        at = start + 1 if back else end
    return Sought(at, is_found=False, is_all=at in (1, head_seq))


def went_wrong(event: RecordedEvent) -> bool:
    """Whether something went wrong in it."""
    return is_failure(event.type, event.fields)


def of_same_kind(event: RecordedEvent) -> Wanted:
    """Whether another event is of a boundary of the same kind, and not of the same one; else of the same type."""
    boundary = event.fields.get("boundary")
    if boundary is None:
        return lambda other: other.type == event.type
    kind = _kind(boundary)
    return lambda other: (its := other.fields.get("boundary")) is not None and its != boundary and _kind(its) == kind


def _kind(boundary: str) -> str:
    """What a boundary is of: `model`, `tool`, `transition`."""
    return boundary.split("/")[-4] if boundary.count("/") >= 3 else boundary
