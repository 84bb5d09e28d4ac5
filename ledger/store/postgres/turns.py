"""One connection for whoever asks for it, from whatever loop: used in the ledger's own, for one thing at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import asyncpg

from ledger.loop_thread import LoopThread
from ledger.store.postgres.faults import FAULTS, unavailable
from ledger.store.postgres.link import Link
from ledger.store.postgres.place import PostgresPlace

T = TypeVar("T")


class Turns:
    """A link that lives in the ledger's thread, and is lent to one piece of work after another."""

    def __init__(self, place: PostgresPlace, thread: LoopThread) -> None:
        self.link = Link(place)
        """Only for what has its turn."""
        self._thread = thread
        self._turn = asyncio.Lock()

    async def connection(self) -> asyncpg.Connection[Any]:
        """The link's, for what has its turn."""
        return await self.link.connection()

    async def do(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `act` does in its turn, even if whoever waits is cancelled.

        `LedgerUnavailable` for whatever the driver raises, and then the connection is used no more.
        """
        return await self._thread.done(self._take_turn(act))

    async def stop(self) -> None:
        """Say goodbye to the server, after what has its turn; call in the ledger's loop."""
        async with self._turn:
            await self.link.close()

    async def _take_turn(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._turn:
            try:
                return await act()
            except FAULTS as error:
                self.link.drop()
                raise unavailable(error) from error
