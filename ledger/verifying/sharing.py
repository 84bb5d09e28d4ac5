"""The streams of a ledger in shares, each of which is looked at by itself, and what that asks of an engine.

What a share comes to is a few sums and findings, so memory does not grow with the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from ledger.errors import Place
from ledger.store.place import is_postgres, path_of
from ledger.verifying.findings import Finding, Tally

SHARE_STREAMS = 1_000
SHARE_EVENTS = 10_000
"""What one share holds, unless a single stream is longer."""


class Share(NamedTuple):
    """Some streams, by their ids."""

    after: str
    upto: str | None
    """The last of them; None where all that follow belong to it."""
    event_count: int
    """How many events there are, about."""


class Verifiable(Protocol):
    """A ledger that can be looked at. What is looked at of one stream is of one moment."""

    @property
    def ledger_id(self) -> str: ...

    @property
    def place(self) -> Place: ...

    async def head_seq(self, stream_id: str) -> int:
        """The number of the last event of a stream; 0 if there is no such stream."""

    async def shares(self) -> list[Share]:
        """All streams, divided; a `LedgerUnreadable` where a column holds a value that is of none of its kinds."""

    async def check(self, share: Share) -> Tally:
        """What the streams of a share turn out to be."""

    async def check_run(self, session_id: str, run_id: str) -> Tally:
        """What one run turns out to be; `RunNotFound` if there is no such run in that session."""

    async def whole(self) -> tuple[Finding, ...]:
        """What is wrong with the ledger apart from its streams."""


def divide(streams: Iterable[tuple[str, int]]) -> list[Share]:
    """Streams with the number of their events, in the order of their ids, as shares; the last one is open."""
    shares: list[Share] = []
    after, last, stream_count, event_count = "", "", 0, 0
    for stream_id, count in streams:
        if stream_count and (stream_count >= SHARE_STREAMS or event_count + count > SHARE_EVENTS):
            shares.append(Share(after, last, event_count))
            after, stream_count, event_count = last, 0, 0
        last = stream_id
        stream_count += 1
        event_count += count
    return [*shares, Share(after, None, event_count)]


def opened(url: str | Path) -> AbstractAsyncContextManager[Verifiable]:
    """The ledger at that address, for reading; a `LedgerFileError` if there is none."""
    # An engine is imported only where it is used: its driver may not be installed.
    if is_postgres(url):
        from ledger.store.postgres.verifying import opened_postgres

        return opened_postgres(str(url))
    from ledger.store.verifying import opened_sqlite

    return opened_sqlite(path_of(url))


def cores() -> int:
    """How many processes can work at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
