"""Reading an SQLite file while others may be writing it: all the statements of a read in one thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import sqlalchemy as sa

from ledger.errors import LedgerUnreadable
from ledger.following.bell import Bell
from ledger.following.leaves import LeafQueries
from ledger.schema import event
from ledger.store.place import file_at, size_of
from ledger.store.probe import can_share, read_address
from ledger.store.quiet import LOGGING_NAME
from ledger.store.tail import SqliteTail

if TYPE_CHECKING:
    from ledger.store.verifying import SqliteVerifiable

T = TypeVar("T")

BUSY_TIMEOUT_S = 5.0
AT_ONCE = 3
"""Threads that read. Each waits for the interpreter after every row, so that fifteen need twice the time of three."""

PACKED_LINKS = sa.text(
    "SELECT group_concat(printf('%016x', pos - 1) || hex(link), '') FROM"
    " (SELECT pos, link FROM event WHERE pos > :after + 1 ORDER BY pos LIMIT :limit)"
)
"""One row, since for each a reader must wait for its turn beside a writer that is at work."""


class SqliteReads:
    """A `ledger.reading.reads.Reads`: connections that cannot write, each opened as the file is then."""

    at_once = AT_ONCE
    leaf_queries = LeafQueries(event.c.pos, 1, event, PACKED_LINKS)

    def __init__(self, path: Path, bell: Bell | None = None) -> None:
        """`bell` is that of a writer in this process."""
        self.place = path
        self._file = file_at(path)
        self._bell = bell or Bell()
        self._threads = ThreadPoolExecutor(AT_ONCE, "ledger-reader")
        # Where a reader can make no side file it looks anew, at each read, whether somebody writes.
        pool: type[sa.Pool] = sa.QueuePool if can_share(path) else sa.NullPool
        self.engine = sa.create_engine(
            "sqlite://", creator=self._connect, poolclass=pool, logging_name=LOGGING_NAME, hide_parameters=True
        )
        sa.event.listen(self.engine, "begin", _begin)

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._in_transaction, work)

    async def close(self) -> None:
        self._threads.shutdown(wait=False)
        self.engine.dispose()

    def tail(self) -> SqliteTail:
        return SqliteTail(self.place, self._bell, self.check)

    def verifiable(self) -> AbstractAsyncContextManager[SqliteVerifiable]:
        # Who only reads needs nothing of what verifying takes.
        from ledger.store.verifying import opened_sqlite

        return opened_sqlite(self.place)

    def check(self) -> None:
        if file_at(self.place) != self._file:
            raise LedgerUnreadable(self.place, "was replaced or removed since it was opened")

    def wal_bytes(self) -> int | None:
        return size_of(Path(f"{self.place}-wal"))

    def unsequenced(self, connection: sa.Connection) -> None:
        """Its position is an event's place."""

    def _in_transaction(self, work: Callable[[sa.Connection], T]) -> T:
        with self.engine.begin() as connection:
            return work(connection)

    def _connect(self) -> sqlite3.Connection:
        # The driver's own transactions would begin at the first write, that is never; a trace needs one moment.
        return sqlite3.connect(
            read_address(self.place), timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, uri=True
        )


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")
