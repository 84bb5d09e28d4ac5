"""Watching the end of the public order in a database: the sequencers say whenever it has grown."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import sqlalchemy as sa

from ledger.errors import LedgerUnreadable
from ledger.following.leaves import LeafQueries
from ledger.schema import Id, Int, event
from ledger.store.postgres.faults import FAULTS, unavailable
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.sequencing import here_of

POLL_S = 1.0
"""How often it is looked even though nobody says anything."""

_leaf = sa.table("leaf", sa.column("leaf_index", Int), sa.column("stream_id", Id), sa.column("seq", Int))
LEAF_QUERIES = LeafQueries(
    _leaf.c.leaf_index,
    0,
    _leaf.join(event, sa.and_(event.c.stream_id == _leaf.c.stream_id, event.c.seq == _leaf.c.seq)),
)


class PostgresTail:
    """A `ledger.following.following.Tail`; it is used in one loop."""

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._told = asyncio.Event()
        self._connection: asyncpg.Connection[Any] | None = None

    async def grows(self) -> bool:
        if self._connection is None or self._connection.is_closed():
            await self._listen()
            return True
        timer = asyncio.get_running_loop().call_later(POLL_S, self._told.set)
        try:
            await self._told.wait()
        finally:
            timer.cancel()
        self._told.clear()
        return True

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()

    async def _listen(self) -> None:
        try:
            self._connection = await self._place.connect()
            here = await here_of(self._connection)
            await self._connection.add_listener(here.channel, lambda *_: self._told.set())
        except FAULTS as error:
            raise LedgerUnreadable(self._place, f"cannot be followed: {unavailable(error).problem}") from error
