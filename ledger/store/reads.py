"""Reading an SQLite file while others may be writing it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ledger.bell import Bell
from ledger.errors import LedgerUnreadable
from ledger.leaves import LeafQueries
from ledger.schema import event
from ledger.store.place import file_at
from ledger.store.probe import can_share, read_address
from ledger.store.tail import SqliteTail

BUSY_TIMEOUT_S = 5.0


class SqliteReads:
    """A `ledger.reader.Reads`: connections that cannot write, each opened as the file is then."""

    leaf_queries = LeafQueries(event.c.pos, 1, event)

    def __init__(self, path: Path, bell: Bell | None = None) -> None:
        """`bell` is that of a writer in this process."""
        self.place = path
        self._file = file_at(path)
        self._bell = bell or Bell()

    def engine(self) -> AsyncEngine:
        # Where a reader can make no side file it looks anew, at each read, whether somebody writes.
        engine = create_async_engine(
            "sqlite+aiosqlite:///ledger",
            poolclass=None if can_share(self.place) else sa.NullPool,
            connect_args={"timeout": BUSY_TIMEOUT_S, "uri": True},
        )
        sa.event.listen(engine.sync_engine, "do_connect", self._choose_address)
        # The driver's own transactions would begin at the first write, that is never; a trace needs one moment.
        sa.event.listen(engine.sync_engine, "connect", _leave_transactions_to_us)
        sa.event.listen(engine.sync_engine, "begin", _begin)
        return engine

    def tail(self) -> SqliteTail:
        return SqliteTail(self.place, self._bell, self.check)

    def check(self) -> None:
        if file_at(self.place) != self._file:
            raise LedgerUnreadable(self.place, "was replaced or removed since it was opened")

    def _choose_address(self, dialect: object, record: object, args: list[Any], kwargs: object) -> None:
        args[0] = read_address(self.place)


def _leave_transactions_to_us(connection: Any, _: object) -> None:
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")
