"""The read side: sessions, run lists, traces and events, from a connection that cannot write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from harness.clock import SystemWallClock, WallClock
from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_id, run_stream
from ledger import query, views
from ledger.cursor import RunCursor
from ledger.errors import LedgerUnreadable, RunNotFound, SessionNotFound
from ledger.records import ChatSession, ContentView, Page, RecordedEvent, RunSummary, RunTrace
from ledger.store.place import path_of
from ledger.store.probe import require_current

T = TypeVar("T")

PAGE_RUNS_MAX = 500
PAGE_EVENTS_MAX = 5_000
PAGE_ROWS = 500
"""Rows of a trace fetched at once."""
PAGE_DIGESTS = 400
BUSY_TIMEOUT_S = 5.0


class LedgerReader:
    """Reads a ledger while others may be writing it. Every answer is of one moment."""

    def __init__(self, path: Path, clock: WallClock) -> None:
        self._path = path
        self._clock = clock
        address = sa.URL.create(
            "sqlite+aiosqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"}
        )
        self._engine = create_async_engine(address, connect_args={"timeout": BUSY_TIMEOUT_S})
        # The driver's own transactions would begin at the first write, that is never; a trace needs one moment.
        sa.event.listen(self._engine.sync_engine, "connect", _leave_transactions_to_us)
        sa.event.listen(self._engine.sync_engine, "begin", _begin)

    @classmethod
    async def open(cls, url: str | Path, *, wall_clock: WallClock | None = None) -> LedgerReader:
        """Open a ledger for reading. A `LedgerFileError` says what else the file is; nothing is changed or made."""
        path = path_of(url)
        await asyncio.to_thread(require_current, path)
        return cls(path, wall_clock or SystemWallClock())

    async def session(self, session_id: str) -> ChatSession:
        """The session's metadata; `SessionNotFound` if there is none."""
        check_id("session_id", session_id)
        async with self._connection() as connection:
            return await self._session(connection, session_id)

    async def session_runs(self, session_id: str, limit: int = 50, cursor: str | None = None) -> Page[RunSummary]:
        """The session's runs, newest first; `SessionNotFound` if there is no such session."""
        check_id("session_id", session_id)
        async with self._connection() as connection:
            page = await self._runs(connection, limit, cursor, session_id)
            if not page.rows:
                await self._session(connection, session_id)
            return page

    async def recent_runs(self, limit: int = 50, cursor: str | None = None) -> Page[RunSummary]:
        """The runs of all sessions, newest first."""
        async with self._connection() as connection:
            return await self._runs(connection, limit, cursor)

    async def trace(self, session_id: str, run_id: str) -> RunTrace:
        """Exactly one run (SPEC R4); `RunNotFound` for an unknown one and for another session's alike."""
        keys = _run_keys(session_id, run_id)
        async with self._connection() as connection:
            head = await _first(connection, query.RUN_STREAM, keys)
            row = await _first(connection, query.RUN, keys)
            if head is None or row is None:
                raise RunNotFound(session_id, run_id)
            session = await self._session(connection, session_id)
            steps = await _all(connection, query.STEPS, keys, "step_no")
            tools = await _all(connection, query.TOOLS, keys, "invocation_no")
            digests = views.digests_of_run(row).union(*map(views.digests_of_attempt, (*steps, *tools)))
            contents = await _contents(connection, keys["stream_id"], digests)
        return RunTrace(
            chat_session=session,
            run=views.detail_of(row, head, contents),
            agent_steps=tuple(views.step_of(step, contents) for step in steps),
            tool_invocations=tuple(views.tool_of(tool, contents) for tool in tools),
            self_evaluation=views.evaluation_of(row, contents),
            answer=contents.get(row["answer_digest"]),
            feedback=views.feedback_of(row, contents),
        )

    async def events(self, session_id: str, run_id: str, after_seq: int = 0, limit: int = 200) -> list[RecordedEvent]:
        """The run's events after a position, in order; `RunNotFound` as for `trace`."""
        keys = _run_keys(session_id, run_id)
        _check_number("after_seq", after_seq, 0, MAX_SAFE_INTEGER)
        _check_number("limit", limit, 1, PAGE_EVENTS_MAX)
        async with self._connection() as connection:
            if await _first(connection, query.RUN_STREAM, keys) is None:
                raise RunNotFound(session_id, run_id)
            rows = await connection.execute(query.EVENTS, {**keys, "after_seq": after_seq, "limit": limit})
            return [views.event_of(row) for row in rows.mappings()]

    async def close(self) -> None:
        """Let go of the file."""
        await self._engine.dispose()

    async def __aenter__(self) -> LedgerReader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._engine.begin() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            raise LedgerUnreadable(self._path, f"cannot be read ({error.orig})") from error

    async def _session(self, connection: AsyncConnection, session_id: str) -> ChatSession:
        row = await _first(connection, query.SESSION, {"session_id": session_id})
        if row is None:
            raise SessionNotFound(session_id)
        return views.session_of(row, self._clock.now_us())

    async def _runs(
        self, connection: AsyncConnection, limit: int, cursor: str | None, session_id: str | None = None
    ) -> Page[RunSummary]:
        _check_number("limit", limit, 1, PAGE_RUNS_MAX)
        values: dict[str, Any] = {"limit": limit + 1}
        if session_id is not None:
            values["session_id"] = session_id
        if cursor is None:
            statement = query.RECENT_RUNS if session_id is None else query.SESSION_RUNS
        else:
            after = RunCursor.decode(cursor)
            values |= {"created_us": after.created_us, "run_id": after.run_id}
            statement = query.RECENT_RUNS_AFTER if session_id is None else query.SESSION_RUNS_AFTER
        found = (await connection.execute(statement, values)).mappings().all()
        rows = tuple(views.summary_of(row) for row in found[:limit])
        is_last = len(found) <= limit
        return Page(rows, None if is_last else RunCursor(rows[-1].created_us, rows[-1].run_id).encode())


def _run_keys(session_id: str, run_id: str) -> dict[str, Any]:
    check_id("session_id", session_id)
    check_id("run_id", run_id)
    return {"session_id": session_id, "run_id": run_id, "stream_id": run_stream(run_id)}


def _check_number(field: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, f"must be a whole number from {least} to {most}, not {value!r}")


async def _first(connection: AsyncConnection, statement: sa.Select[Any], values: dict[str, Any]) -> views.Row | None:
    result: views.Row | None = (await connection.execute(statement, values)).mappings().first()
    return result


async def _all(
    connection: AsyncConnection, statement: sa.Select[Any], keys: dict[str, Any], number: str
) -> list[views.Row]:
    """Every row of a run, page by page."""
    rows: list[views.Row] = []
    while True:
        after_no = rows[-1][number] if rows else 0
        page = await connection.execute(statement, {**keys, "after_no": after_no, "limit": PAGE_ROWS})
        found = page.mappings().all()
        rows.extend(found)
        if len(found) < PAGE_ROWS:
            return rows


async def _contents(connection: AsyncConnection, stream_id: str, digests: Iterable[str]) -> dict[str, ContentView]:
    wanted = sorted(digests)
    contents: dict[str, ContentView] = {}
    for start in range(0, len(wanted), PAGE_DIGESTS):
        values = {"stream_id": stream_id, "digests": wanted[start : start + PAGE_DIGESTS]}
        rows = await connection.execute(query.CONTENTS, values)
        contents |= {row["digest"]: views.content_of(row) for row in rows.mappings()}
    return contents


def _leave_transactions_to_us(connection: Any, _: object) -> None:
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")
