"""What bodies say, each by itself: events that this program knows, and others of which only the fields are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TypeAlias

import orjson

from harness.events import Event
from ledger.stored_events import events_of
from ledger.verifying.findings import Problem
from ledger.verifying.form import check_form
from ledger.words.text import first_line


class Unknown(SimpleNamespace):
    """The fields of an event of a type or version that this program does not know, and passes over."""

    type: str


Said: TypeAlias = Event | Unknown


def read_events(bodies: Sequence[bytes], found: Callable[[Problem, str, int], None], first_seq: int) -> Sequence[Said]:
    """What the bodies say, up to the first that says nothing, which is `found`."""
    try:
        events = events_of(bodies)
        if len(events) == len(bodies):
            for event, body in zip(events, bodies, strict=True):
                check_form(event, body)
            return events
    except ValueError:
        # One of them, and which one is seen below.
        pass
    said: list[Said] = []
    for seq, body in enumerate(bodies, first_seq):
        try:
            known = events_of([body])
            for event in known:
                check_form(event, body)
            said += known or [Unknown(**orjson.loads(body))]
        except (ValueError, TypeError) as error:
            found("event_unreadable", first_line(error), seq)
            break
    return said
