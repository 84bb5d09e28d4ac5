"""Stored bodies added up again to what they mean."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.errors import RunUnreadable
from ledger.projections.changes import Changes
from ledger.projections.fold import project_all
from ledger.projections.run import RunProjection
from ledger.stored_events import events_of
from ledger.words.text import first_line

PAGE_EVENTS = 500
"""Events of a stream fetched and folded at once."""


def fold(run_id: str, run: RunProjection | None, bodies: Iterable[bytes]) -> tuple[RunProjection | None, Changes]:
    """The run after a page of its events, and the rows that the page changed; `RunUnreadable` if it makes no sense."""
    changes = Changes()
    try:
        return project_all(run, events_of(bodies), changes), changes
    except Exception as error:
        # Bytes that are no event, or events in an order that this program's rules do not know.
        raise RunUnreadable(run_id, first_line(error)) from error
