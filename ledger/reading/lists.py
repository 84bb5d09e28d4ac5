"""The read side's lists: runs and sessions by any conditions, what they add up to, and what a filter may be set to."""

from __future__ import annotations

from harness.clock import WallClock
from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_id
from ledger.lists import RunPage, RunValues, SessionPage, Tallies
from ledger.reading import moment, overview
from ledger.reading.cursor import RunCursor, SessionCursor
from ledger.reading.room import ReadingRoom
from ledger.reading.run_list import run_page
from ledger.reading.session_list import session_page
from ledger.records import Page, RunSummary
from ledger.run_filter import RunFilter

PAGE_RUNS_MAX = 500
ALL_RUNS = RunFilter()


class Lists:
    """The part of a reader that lists; every answer is of one moment."""

    def __init__(self, room: ReadingRoom, clock: WallClock) -> None:
        self._room = room
        self._clock = clock

    async def runs(self, wanted: RunFilter = ALL_RUNS, limit: int = 50, cursor: str | None = None) -> RunPage:
        """The runs that fit, newest first. A session that is not there has none."""
        check_number("limit", limit, 1, PAGE_RUNS_MAX)
        after = None if cursor is None else RunCursor.decode(cursor)
        return await self._room.read(run_page, self._room.reads.leaf_queries, wanted, limit, after)

    async def sessions(self, limit: int = 50, cursor: str | None = None, prefix: str | None = None) -> SessionPage:
        """All sessions, or those whose ids begin with the prefix; the one that was last active first."""
        check_number("limit", limit, 1, PAGE_RUNS_MAX)
        if prefix is not None:
            check_id("prefix", prefix)
        after = None if cursor is None else SessionCursor.decode(cursor)
        leaf_queries, now_us = self._room.reads.leaf_queries, self._clock.now_us()
        return await self._room.read(session_page, leaf_queries, prefix, limit, after, now_us)

    async def tallies(self, since_us: int = 0) -> Tallies:
        """What the runs created since then, and those still running, add up to by agent, and which to look at first."""
        check_number("since_us", since_us, 0, MAX_SAFE_INTEGER)
        return await self._room.read(overview.tallies, self._room.reads.leaf_queries, since_us, self._clock.now_us())

    async def run_values(self, wanted: RunFilter = ALL_RUNS) -> RunValues:
        """What a filter may be set to, from the newest runs of the sessions that it is about, and of no others."""
        return await self._room.read(overview.run_values, wanted)

    async def session_runs(self, session_id: str, limit: int = 50, cursor: str | None = None) -> Page[RunSummary]:
        """The session's runs, newest first; `SessionNotFound` if there is no such session (SPEC R5)."""
        check_id("session_id", session_id)
        check_number("limit", limit, 1, PAGE_RUNS_MAX)
        after = None if cursor is None else RunCursor.decode(cursor)
        return await self._room.read(moment.session_runs, session_id, limit, after, self._clock.now_us())

    async def recent_runs(self, limit: int = 50, cursor: str | None = None) -> Page[RunSummary]:
        """The runs of all sessions, newest first."""
        check_number("limit", limit, 1, PAGE_RUNS_MAX)
        after = None if cursor is None else RunCursor.decode(cursor)
        return await self._room.read(moment.recent_runs, limit, after)


def check_number(field: str, value: object, least: int, most: int) -> None:
    """`InvalidInput` unless it is a whole number between these."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, f"must be a whole number from {least} to {most}, not {value!r}")
