"""A connection that is there whenever it is needed: made at first use, and anew after it was lost."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import asyncpg

from ledger.store.postgres.faults import FAULTS
from ledger.store.postgres.place import PostgresPlace

GOODBYE_TIMEOUT_S = 2.0
CHECK = "SELECT current_setting('synchronous_commit')"
RESET = "RESET ALL"
DURABLE = "SET synchronous_commit = on"


class Link:
    """One connection at a time; one task uses it."""

    def __init__(self, place: PostgresPlace, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self._place = place
        self._settings = settings
        self._connection: asyncpg.Connection[Any] | None = None

    async def connection(self) -> asyncpg.Connection[Any]:
        """A connection whose commits are durable when they are answered."""
        if self._connection is None or self._connection.is_closed():
            connection = await self._place.connect(self._settings)
            try:
                await _make_durable(connection)
            except BaseException:
                connection.terminate()
                raise
            self._connection = connection
        return self._connection

    async def reset(self) -> None:
        """Take back what others have set of the connection that they were lent."""
        if self._connection is not None:
            await self._connection.execute(RESET)
            await _make_durable(self._connection)

    def drop(self) -> None:
        """Use this connection no more."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Say goodbye to the server."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=GOODBYE_TIMEOUT_S)
            except FAULTS:
                connection.terminate()


async def _make_durable(connection: asyncpg.Connection[Any]) -> None:
    """Whatever the server, the database or the user have been set to (SPEC E3)."""
    if await connection.fetchval(CHECK) == "off":
        await connection.execute(DURABLE)
