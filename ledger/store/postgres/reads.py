"""Reading a ledger in a database, over connections that cannot write."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ledger.errors import LedgerUnreadable
from ledger.following import Tail
from ledger.leaves import LeafQueries
from ledger.store.postgres.place import PostgresPlace, place_at
from ledger.store.postgres.probe import require_current

READERS = 5
READERS_MORE = 10
"""Connections beside those, while many read at once."""
WAIT_S = 30.0
READ_ONLY = {
    "default_transaction_isolation": "repeatable read",
    "default_transaction_read_only": "on",
    "plan_cache_mode": "auto",
}
"""One moment for each transaction, and no write."""


@dataclass(frozen=True, slots=True)
class PostgresReads:
    """A `ledger.reader.Reads`."""

    place: PostgresPlace

    def engine(self) -> AsyncEngine:
        return create_async_engine(
            "postgresql+asyncpg://",
            pool_size=READERS,
            max_overflow=READERS_MORE,
            pool_timeout=WAIT_S,
            pool_pre_ping=True,
            async_creator=lambda: self.place.connect(READ_ONLY),
        )

    @property
    def leaf_queries(self) -> LeafQueries:
        raise LedgerUnreadable(self.place, "cannot be followed yet")

    def tail(self) -> Tail:
        raise LedgerUnreadable(self.place, "cannot be followed yet")

    def check(self) -> None:
        """A database that is gone says so by itself."""


async def open_reads(url: str) -> PostgresReads:
    """Where to read, once it is known to be a ledger of this program's."""
    place = place_at(url)
    await require_current(place)
    return PostgresReads(place)
