"""Where a run stands in the database, added up from what is remembered of it and what came since."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import asyncpg

from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import run_stream
from ledger.append.deciding import RunHead, StoredEvent, StreamRow
from ledger.append.folding import PAGE_EVENTS, fold
from ledger.errors import RunUnreadable
from ledger.store.postgres import statements


class Unseen(Exception):
    """A decision needs something that was not fetched yet."""

    def __init__(self, stream_id: str, event_ids: Sequence[str] = (), run_id: str | None = None) -> None:
        self.stream_id = stream_id
        self.event_ids = event_ids
        self.run_id = run_id


class Seen:
    """The log as one decision sees it. Deciding waits for nothing: for what is missing it is left, and begun anew."""

    def __init__(self, sessions: Iterable[str], heads: Mapping[str, RunHead | None] | None = None) -> None:
        self.is_fresh = not heads
        """Whether all of it was fetched for this decision, and none is what is remembered."""
        self.heads: dict[str, RunHead | None] = dict(heads or {})
        self.streams: dict[str, StreamRow | None] = {}
        self._found: dict[str, dict[str, StoredEvent | None]] = {}
        self._sessions = sessions

    def head(self, run_id: str) -> RunHead | None:
        if run_id not in self.heads:
            raise Unseen(run_stream(run_id), run_id=run_id)
        return self.heads[run_id]

    def stream(self, stream_id: str) -> StreamRow | None:
        if stream_id not in self.streams:
            raise Unseen(stream_id)
        return self.streams[stream_id]

    def stored(self, stream_id: str, event_ids: Sequence[str]) -> dict[str, StoredEvent]:
        """Those of the events that are in the stream; none is, as far as is only remembered."""
        if not self.is_fresh:
            return {}
        looked_up = self._found.get(stream_id, {})
        if not looked_up.keys() >= set(event_ids):
            raise Unseen(stream_id, event_ids)
        found = ((event_id, looked_up[event_id]) for event_id in event_ids)
        return {event_id: event for event_id, event in found if event is not None}

    def has_session(self, session_id: str) -> bool:
        return session_id in self._sessions

    async def fetch(self, connection: asyncpg.Connection[Any], unseen: Unseen, known: RunHead | None) -> None:
        """Fetch what a decision missed; of a run that is `known` only what came since."""
        if unseen.event_ids:
            # After the head: an event that has come since is found here, or the run is not where it was.
            rows = await connection.fetch(statements.FIND_EVENTS, unseen.stream_id, unseen.event_ids)
            looked_up = self._found.setdefault(unseen.stream_id, {})
            looked_up |= dict.fromkeys(unseen.event_ids)
            looked_up |= {event_id: StoredEvent(*place) for event_id, *place in rows}
        elif unseen.run_id is not None:
            self.heads[unseen.run_id] = await load_head(connection, unseen.run_id, known)
        else:
            row = await connection.fetchrow(statements.STREAM, unseen.stream_id)
            self.streams[unseen.stream_id] = None if row is None else StreamRow(*row)


async def load_head(connection: asyncpg.Connection[Any], run_id: str, known: RunHead | None) -> RunHead | None:
    """The run's head, with only that folded anew which came after `known`; `RunUnreadable` if it makes no sense."""
    row = await connection.fetchrow(statements.HEAD, run_stream(run_id))
    if row is None:
        return None
    session_id, seq, link, owner_id, owner_epoch = row
    if known is not None and (known.seq, known.link) == (seq, link):
        return known._replace(owner_id=owner_id, owner_epoch=owner_epoch)
    if known is not None and await connection.fetchval(statements.LINK_AT, run_stream(run_id), known.seq) != known.link:
        known = None  # The server has come back with another log than the one it had.
    projection, after_seq = (known.projection, known.seq) if known is not None else (None, 0)
    async for bodies in stored_pages(connection, run_stream(run_id), after_seq, seq):
        projection, _ = fold(run_id, projection, bodies)
    if projection is None:
        raise RunUnreadable(run_id, "none of its events is known")
    return RunHead(session_id, seq, link, owner_id, owner_epoch, projection)


async def stored_pages(
    connection: asyncpg.Connection[Any], stream_id: str, after_seq: int = 0, last_seq: int = MAX_SAFE_INTEGER
) -> AsyncIterator[list[bytes]]:
    """The bodies of a stream's events between two positions, page by page."""
    while True:
        rows = await connection.fetch(statements.BODIES_BETWEEN, stream_id, after_seq, last_seq, PAGE_EVENTS)
        yield [row["body"] for row in rows]
        if len(rows) < PAGE_EVENTS:
            return
        after_seq = rows[-1]["seq"]
