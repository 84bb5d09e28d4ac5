"""Makes the projections anew from events: the same rows, byte for byte, or the events were right (SPEC E1).

Runs and sessions are folded beside the ledger and compared, each as of one moment and without any lock: in memory where
they are short, and many at a time. Only where the rows of one are not as they should be is it folded once more, in a
write transaction of its own, and its rows replaced. So a rebuild stands in nobody's way where all is well, and loses
nothing that is appended meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, NamedTuple, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from harness.events import SessionOpened
from ledger import schema
from ledger.errors import RunUnreadable, SessionUnreadable
from ledger.projections.rows import SessionShare
from ledger.stored_events import events_of
from ledger.words.text import first_line

PAGE_STREAMS = 500
PROJECTIONS = (
    schema.diagnosis_run,
    schema.agent_step,
    schema.tool_invocation,
    schema.case_library,
    schema.chat_session,
)
CREATE_PROJECTIONS = tuple(str(sa.schema.CreateTable(table).compile(dialect=sqlite.dialect())) for table in PROJECTIONS)

Kind = Literal["run", "session"]


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild found."""

    run_count: int
    session_count: int
    row_count: int
    runs_changed: tuple[str, ...]
    """Runs whose rows were not what their events add up to, and are now."""
    sessions_changed: tuple[str, ...]
    runs_unreadable: tuple[str, ...]
    """Runs that this program does not understand; their rows were left alone,"""
    sessions_unreadable: tuple[str, ...]
    """and so were those of such sessions."""
    stray_count: int
    """Rows of runs or sessions that the log does not know; they are gone."""
    texts_changed: int = 0
    """Runs of which the search index said something else than their contents do, or that are none."""

    @property
    def is_clean(self) -> bool:
        """Whether every row was as it should be."""
        changed = self.runs_changed or self.sessions_changed or self.stray_count or self.texts_changed
        return not (changed or self.runs_unreadable or self.sessions_unreadable)


class Rebuilt(NamedTuple):
    """What the rows of one run or session are, or were."""

    key: str
    row_count: int
    is_right: bool


class Source(Protocol):
    """A ledger whose projections can be compared, and replaced."""

    async def delete_strays(self) -> int:
        """Remove rows of runs or sessions that the log does not know; how many there were."""

    async def mend_texts(self) -> int:
        """Make the search index of all runs what their contents say; of how many it was not."""

    async def compare(self, kind: Kind, after: str) -> tuple[str, Sequence[Rebuilt]]:
        """Whether the rows of the next runs or sessions are right, and the stream that was the last of them."""

    async def replace(self, kind: Kind, key: str) -> Rebuilt:
        """Make the rows right; `RunUnreadable` or `SessionUnreadable` if nobody knows what is."""


@dataclass(slots=True)
class _Tally:
    count: int = 0
    row_count: int = 0
    changed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


async def rebuild_all(source: Source) -> RebuildReport:
    """Rebuild everything."""
    stray_count = await source.delete_strays()
    runs, sessions = await _rebuild_each(source, "run"), await _rebuild_each(source, "session")
    return RebuildReport(
        run_count=runs.count,
        session_count=sessions.count,
        row_count=runs.row_count + sessions.row_count,
        runs_changed=tuple(runs.changed),
        sessions_changed=tuple(sessions.changed),
        runs_unreadable=tuple(runs.unreadable),
        sessions_unreadable=tuple(sessions.unreadable),
        stray_count=stray_count,
        texts_changed=await source.mend_texts(),
    )


async def _rebuild_each(source: Source, kind: Kind) -> _Tally:
    tally = _Tally()
    last, page = await source.compare(kind, "")
    while page:
        for found in page:
            tally.count += 1
            try:
                rebuilt = found if found.is_right else await source.replace(kind, found.key)
            except (RunUnreadable, SessionUnreadable):
                tally.unreadable.append(found.key)
                continue
            tally.row_count += rebuilt.row_count
            if not rebuilt.is_right:
                tally.changed.append(found.key)
        last, page = await source.compare(kind, last)
    return tally


def empty_projections() -> sqlite3.Connection:
    """The tables of projections in a database that is nobody's, on disk where it grows large."""
    beside = sqlite3.connect("", isolation_level=None)
    for create in CREATE_PROJECTIONS:
        beside.execute(create)
    return beside


def openings(session_id: str, bodies: Iterable[bytes]) -> list[SessionShare]:
    """What a session's own events add to its row; `SessionUnreadable` for bytes that are no event."""
    try:
        return [
            SessionShare(session_id, event.occurred_us, event.occurred_us, 0, cast(SessionOpened, event).ttl_us)
            for event in events_of(bodies)
            if event.type == "session.opened"
        ]
    except ValueError as error:
        raise SessionUnreadable(session_id, first_line(error)) from error


def table_of(read: str) -> str:
    """The table that the statement reads."""
    return read.partition(" FROM ")[2].partition(" ")[0]


class Digest:
    """Number and digest of rows, seen one by one."""

    def __init__(self) -> None:
        self.row_count = 0
        self._hash = sha256()

    def add(self, row: Sequence[object]) -> None:
        self._hash.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        self.row_count += 1

    def end_table(self) -> None:
        self._hash.update(b"\0")

    def value(self) -> bytes:
        return self._hash.digest()


def digest_of(connection: sqlite3.Connection, tables: Sequence[tuple[str, str]], key: str) -> Digest:
    """The rows that an SQLite database has of a run or session."""
    digest = Digest()
    for read, _ in tables:
        for row in connection.execute(read, (key,)):
            digest.add(row)
        digest.end_table()
    return digest
