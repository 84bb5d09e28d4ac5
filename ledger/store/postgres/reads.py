"""Reading a ledger in a database, over connections that cannot write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from ledger.following.lag import Unsequenced
from ledger.following.leaves import LeafQueries
from ledger.store.postgres.place import PostgresPlace, place_at
from ledger.store.postgres.probe import require_current
from ledger.store.postgres.sequencing import SET_BY_INDEX, UNSEQUENCED
from ledger.store.postgres.tail import LEAF_QUERIES, PostgresTail
from ledger.store.quiet import LOGGING_NAME

if TYPE_CHECKING:
    from ledger.store.postgres.verifying import PostgresVerifiable

T = TypeVar("T")

AT_ONCE = 15
READERS = 5
"""Connections that are kept; while many read at once there are more."""
READ_ONLY = {
    "default_transaction_isolation": "repeatable read",
    "default_transaction_read_only": "on",
    "plan_cache_mode": "auto",
}
"""One moment for each transaction, and no write."""


class PostgresReads:
    """A `ledger.reading.reads.Reads`."""

    at_once = AT_ONCE

    def __init__(self, place: PostgresPlace) -> None:
        self.place = place
        self.engine = create_async_engine(
            "postgresql+asyncpg://",
            logging_name=LOGGING_NAME,
            hide_parameters=True,
            pool_size=READERS,
            max_overflow=AT_ONCE - READERS,
            pool_pre_ping=True,
            async_creator=lambda: place.connect(READ_ONLY),
        )

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        async with self.engine.begin() as connection:
            return await connection.run_sync(work)

    async def close(self) -> None:
        await self.engine.dispose()

    @property
    def leaf_queries(self) -> LeafQueries:
        return LEAF_QUERIES

    def tail(self) -> PostgresTail:
        return PostgresTail(self.place)

    def verifiable(self) -> AbstractAsyncContextManager[PostgresVerifiable]:
        # Who only reads needs nothing of what verifying takes; and that takes settings of this module.
        from ledger.store.postgres.verifying import opened_at

        return opened_at(self.place)

    def check(self) -> None:
        """A database that is gone says so by itself."""

    def wal_bytes(self) -> int | None:
        return None

    def unsequenced(self, connection: sa.Connection) -> Unsequenced:
        connection.exec_driver_sql(SET_BY_INDEX)
        count, oldest_us = connection.exec_driver_sql(UNSEQUENCED).one()
        return Unsequenced(count, oldest_us)


async def open_reads(url: str) -> PostgresReads:
    """Where to read, once it is known to be a ledger of this program's."""
    place = place_at(url)
    await require_current(place)
    return PostgresReads(place)
