"""The read side: sessions, run lists, traces and events, over connections that cannot write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from harness.clock import SystemWallClock, WallClock
from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_id, run_stream
from ledger import reading
from ledger.cursor import RunCursor
from ledger.errors import LedgerUnreadable
from ledger.records import ChatSession, Page, RecordedEvent, RunSummary, RunTrace
from ledger.store.place import file_at, path_of
from ledger.store.probe import can_share, read_address, require_current

P = ParamSpec("P")
T = TypeVar("T")

PAGE_RUNS_MAX = 500
PAGE_EVENTS_MAX = 5_000
BUSY_TIMEOUT_S = 5.0


class LedgerReader:
    """Reads a ledger while others may be writing it. Every answer is of one moment."""

    def __init__(self, path: Path, clock: WallClock) -> None:
        self._path = path
        self._clock = clock
        self._file = file_at(path)
        self._is_closed = False
        self._reads: set[asyncio.Task[Any]] = set()
        # Where a reader can make no side file it looks anew, at each read, whether somebody writes.
        self._engine = create_async_engine(
            "sqlite+aiosqlite:///ledger",
            poolclass=None if can_share(path) else sa.NullPool,
            connect_args={"timeout": BUSY_TIMEOUT_S, "uri": True},
        )
        sa.event.listen(self._engine.sync_engine, "do_connect", self._choose_address)
        # The driver's own transactions would begin at the first write, that is never; a trace needs one moment.
        sa.event.listen(self._engine.sync_engine, "connect", _leave_transactions_to_us)
        sa.event.listen(self._engine.sync_engine, "begin", _begin)

    @classmethod
    async def open(cls, url: str | Path, *, wall_clock: WallClock | None = None) -> LedgerReader:
        """Open a ledger for reading. A `LedgerFileError` says what else the file is, and leaves it alone."""
        path = path_of(url)
        await asyncio.to_thread(require_current, path)
        return cls(path, wall_clock or SystemWallClock())

    async def session(self, session_id: str) -> ChatSession:
        """The session's metadata; `SessionNotFound` if there is none."""
        check_id("session_id", session_id)
        return await self._read(reading.session, session_id, self._clock.now_us())

    async def session_runs(self, session_id: str, limit: int = 50, cursor: str | None = None) -> Page[RunSummary]:
        """The session's runs, newest first; `SessionNotFound` if there is no such session."""
        check_id("session_id", session_id)
        _check_number("limit", limit, 1, PAGE_RUNS_MAX)
        after = None if cursor is None else RunCursor.decode(cursor)
        return await self._read(reading.session_runs, session_id, limit, after, self._clock.now_us())

    async def recent_runs(self, limit: int = 50, cursor: str | None = None) -> Page[RunSummary]:
        """The runs of all sessions, newest first."""
        _check_number("limit", limit, 1, PAGE_RUNS_MAX)
        after = None if cursor is None else RunCursor.decode(cursor)
        return await self._read(reading.recent_runs, limit, after)

    async def trace(self, session_id: str, run_id: str) -> RunTrace:
        """Exactly one run (SPEC R4); `RunNotFound` for an unknown one and for another session's alike."""
        return await self._read(reading.trace, _run_keys(session_id, run_id), self._clock.now_us())

    async def events(self, session_id: str, run_id: str, after_seq: int = 0, limit: int = 200) -> list[RecordedEvent]:
        """The run's events after a position, in order; `RunNotFound` as for `trace`."""
        keys = _run_keys(session_id, run_id)
        _check_number("after_seq", after_seq, 0, MAX_SAFE_INTEGER)
        _check_number("limit", limit, 1, PAGE_EVENTS_MAX)
        return await self._read(reading.events, keys, after_seq, limit)

    async def system_events(self, after_seq: int = 0, limit: int = 200) -> list[RecordedEvent]:
        """What was decided about the ledger itself after a position of that stream, in order (SPEC D2)."""
        _check_number("after_seq", after_seq, 0, MAX_SAFE_INTEGER)
        _check_number("limit", limit, 1, PAGE_EVENTS_MAX)
        return await self._read(reading.system_events, after_seq, limit)

    async def close(self) -> None:
        """Let go of the file, once the reads under way have ended; whoever reads later gets `LedgerUnreadable`."""
        self._is_closed = True
        if self._reads:
            await asyncio.wait(self._reads)
        await self._engine.dispose()

    async def __aenter__(self) -> LedgerReader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _choose_address(self, dialect: object, record: object, args: list[Any], kwargs: object) -> None:
        args[0] = read_address(self._path)

    async def _read(self, read: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._is_closed:
            raise LedgerUnreadable(self._path, "was closed")
        if file_at(self._path) != self._file:
            raise LedgerUnreadable(self._path, "was replaced or removed since it was opened")
        # Whoever asked may be cancelled: the read goes on to its end, or its connection would be lost in mid-air.
        task = asyncio.create_task(self._in_transaction(read, *args, **kwargs))
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)
        return await asyncio.shield(task)

    async def _in_transaction(
        self, read: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            async with self._engine.begin() as connection:
                return await connection.run_sync(read, *args, **kwargs)
        except sa.exc.TimeoutError as error:
            raise LedgerUnreadable(self._path, "is read by too many at once") from error
        except sa.exc.DBAPIError as error:
            raise LedgerUnreadable(self._path, f"cannot be read ({error.orig})") from error


def _run_keys(session_id: str, run_id: str) -> reading.Keys:
    check_id("session_id", session_id)
    check_id("run_id", run_id)
    return {"session_id": session_id, "run_id": run_id, "stream_id": run_stream(run_id)}


def _check_number(field: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, f"must be a whole number from {least} to {most}, not {value!r}")


def _leave_transactions_to_us(connection: Any, _: object) -> None:
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")
