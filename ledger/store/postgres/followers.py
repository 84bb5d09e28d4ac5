"""Followers' places in a database, stored in the transaction of what they cover."""

from __future__ import annotations

from functools import partial
from typing import Any

from harness.errors import InvalidInput
from ledger.following.followers import ENDED, FollowerPlace, OnConnection
from ledger.following.leaves import START, Wanted
from ledger.loop_thread import LoopThread
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.turns import Turns

PLACES = "SELECT name, leaf_index, session_id, run_id FROM follower ORDER BY name"
BEGIN = (
    "INSERT INTO follower (name, leaf_index, session_id, run_id) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING"
)
ADVANCE = "UPDATE follower SET leaf_index = $3 WHERE name = $1 AND leaf_index = $2"
"""Waits for whoever is advancing under that name, and then finds that it has."""
FORGET = "DELETE FROM follower WHERE name = $1"


class _Raised(Exception):
    """What an application raised in a transaction of the ledger's, which is undone for it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class PostgresFollowers:
    """A `ledger.following.followers.FollowerPlaces`; its connections are used in the ledger's own loop."""

    def __init__(self, place: PostgresPlace, thread: LoopThread) -> None:
        self._turns = Turns(place, thread)

    async def all(self) -> dict[str, FollowerPlace]:
        return await self._turns.do(self._all)

    async def advance(self, name: str, before: int, after: FollowerPlace, write: OnConnection | None) -> bool:
        try:
            return await self._turns.do(partial(self._advance, name, before, after, write))
        except _Raised as raised:
            raise raised.error from None

    async def forget(self, name: str) -> bool:
        return await self._turns.do(partial(self._forget, name))

    async def stop(self) -> None:
        """Let go of the connection."""
        await self._turns.stop()

    async def _all(self) -> dict[str, FollowerPlace]:
        rows = await (await self._turns.connection()).fetch(PLACES)
        return {name: FollowerPlace(place, Wanted(*wanted)) for name, place, *wanted in rows}

    async def _forget(self, name: str) -> bool:
        return bool(await (await self._turns.connection()).execute(FORGET, name) != "DELETE 0")

    async def _advance(self, name: str, before: int, after: FollowerPlace, write: OnConnection | None) -> bool:
        connection = await self._turns.connection()
        async with connection.transaction():
            if before == START:
                await connection.execute(BEGIN, name, START, after.wanted.session_id, after.wanted.run_id)
            if await connection.execute(ADVANCE, name, before, after.place) != "UPDATE 1":
                return False
            if write is not None:
                await _call(write, connection)
                await self._turns.link.reset()
            return True


async def _call(write: OnConnection, connection: Any) -> None:
    try:
        await write(connection)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        # The last two would end the loop's thread.
        raise _Raised(error) from error
    if not connection.is_in_transaction():
        raise _Raised(InvalidInput("write", ENDED))
