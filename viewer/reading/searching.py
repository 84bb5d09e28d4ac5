"""The events of one run that somebody looks for, in bounded steps: a page says how far it has searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ledger.records import RecordedEvent
from ledger.stored_events import CONTENT_NAMES
from ledger.words.event_lines import is_failure, line
from viewer.reading.reader import Reader

SEARCH_EVENTS_MAX = 10_000
"""Looked at for one page;"""
SEARCH_CONTENT_BYTES_MAX = 8_000_000
"""and so much content read. Whichever is reached first, the page says how far it came, and leads on from there."""
FOUND_MAX = 200
"""Events on a page."""
_EVENTS_PER_READ = 500


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are wanted; without anything set, all are."""

    family: str | None = None
    """The part of the type before the dot."""
    failures: bool = False
    """Only those in which something went wrong."""
    text: str = ""
    """Words of the event, of its line on the page, or of a content that it names."""

    def __bool__(self) -> bool:
        return bool(self.family or self.failures or self.text)

    def takes(self, event: RecordedEvent) -> bool:
        """Whether its type is wanted, whatever its words."""
        is_of_family = self.family is None or event.type.partition(".")[0] == self.family
        return is_of_family and (not self.failures or is_failure(event.type, event.fields))

    def is_said_by(self, event: RecordedEvent) -> bool:
        """Whether the event itself has the words."""
        wanted = self.text.casefold()
        in_body = wanted in str(event.body, "utf-8", "replace").casefold()
        return in_body or wanted in line(event.type, event.fields).casefold()


class Found(NamedTuple):
    """A page of what was looked for."""

    events: Sequence[RecordedEvent]
    looked_at_seq: int
    """Every event behind the page's beginning up to this one was looked at."""


async def search(reader: Reader, keys: tuple[str, str], after_seq: int, head_seq: int, wanted: EventFilter) -> Found:
    """The next events wanted behind a position, up to `head_seq`."""
    found: list[RecordedEvent] = []
    at, read_bytes = after_seq, 0
    end = min(head_seq, after_seq + SEARCH_EVENTS_MAX)
    while at < end and len(found) < FOUND_MAX and read_bytes < SEARCH_CONTENT_BYTES_MAX:
        events = await reader.events(*keys, after_seq=at, limit=min(_EVENTS_PER_READ, end - at))
        taken = [event for event in events if wanted.takes(event)]
        silent = [event for event in taken if wanted.text and not wanted.is_said_by(event)]
        texts = await _texts(reader, keys, silent)
        read_bytes += sum(map(len, texts.values()))
        lacking = {
            event.seq
            for event in silent
            if not any(wanted.text.casefold() in texts.get(digest, "") for digest in digests_of(event.fields).values())
        }
        for event in taken:
            if event.seq not in lacking:
                found.append(event)
                if len(found) == FOUND_MAX:
                    return Found(found, event.seq)
        at = events[-1].seq if events else end
    return Found(found, at)


def digests_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The contents that an event names, by what they are of it: `input`, `answer`."""
    named = {name: fields.get(f"{name}_digest") for name in CONTENT_NAMES}
    return {name: digest for name, digest in named.items() if isinstance(digest, str)}


async def _texts(reader: Reader, keys: tuple[str, str], events: Sequence[RecordedEvent]) -> dict[str, str]:
    """The texts of all contents that the events name, for comparing."""
    digests = {digest for event in events for digest in digests_of(event.fields).values()}
    if not digests:
        return {}
    contents = await reader.contents(*keys, digests)
    return {digest: (content.text or "").casefold() for digest, content in contents.items()}
