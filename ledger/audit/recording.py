"""A run as it is needed to execute it again (`harness.replay`): all its events, and what they name by digest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.errors import UnknownEvent
from harness.events import Event, parse_event
from harness.recording import Recording
from ledger.errors import RunUnreadable
from ledger.reading.reader import LedgerReader
from ledger.words.text import first_line

PAGE_EVENTS = 1_000
"""Events read at once."""


class KeptContent(NamedTuple):
    """A content as the ledger has it today."""

    media_type: str
    data: bytes | None
    salt: bytes | None


async def read_recording(reader: LedgerReader, session_id: str, run_id: str) -> Recording:
    """The run with everything that is left of its contents; it is held in memory whole.

    `RunNotFound` for an unknown run and for another session's alike, `RunUnreadable` for one of a newer program.
    """
    events: list[Event] = []
    while page := await reader.events(session_id, run_id, after_seq=len(events), limit=PAGE_EVENTS):
        try:
            events += [parse_event(dict(event.fields)) for event in page]
        except (UnknownEvent, ValueError) as error:
            raise RunUnreadable(run_id, first_line(error)) from error
    digests = {digest for event in events for digest in _digests(event)}
    salts = await reader.salts(session_id, run_id, digests)
    views = await reader.contents(session_id, run_id, digests)
    contents = {key: KeptContent(view.media_type, view.data, salts.get(key)) for key, view in views.items()}
    return Recording(events, contents)


def _digests(event: Event) -> Iterator[str]:
    """The contents that an event names."""
    names = (name for name in type(event).model_fields if name.endswith("_digest") and name != "policy_digest")
    return (digest for name in names if (digest := getattr(event, name)) is not None)
