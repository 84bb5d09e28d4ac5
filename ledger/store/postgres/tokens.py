"""Tokens of a ledger in a database, changed in the transaction of the event that tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

import asyncpg

from harness.clock import WallClock
from ledger.append.unfolded import Statement
from ledger.loop_thread import LoopThread
from ledger.store.postgres.appends import Appends
from ledger.store.postgres.named import numbered
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.turns import Turns

Connection: TypeAlias = "asyncpg.Connection[Any]"


class _Unchanged(Exception):
    """There was no such row, so there is nothing to tell."""


class PostgresTokens:
    """A `ledger.tokens.tokens.TokenStore`; its connection is used in the ledger's own loop."""

    def __init__(self, place: PostgresPlace, appends: Appends, thread: LoopThread, clock: WallClock) -> None:
        self._appends = appends
        self._clock = clock
        self._turns = Turns(place, thread)

    async def change(self, statement: str, values: Mapping[str, Any], said: Statement | None = None) -> bool:
        try:
            await self._turns.do(partial(self._change, statement, values, said))
        except _Unchanged:
            return False
        return True

    async def stop(self) -> None:
        """Let go of the connection."""
        await self._turns.stop()

    async def _change(self, statement: str, values: Mapping[str, Any], said: Statement | None) -> None:
        change = partial(_execute, statement, values)
        if said is None:
            await change(await self._turns.connection())
        else:
            now_us = self._clock.now_us()
            await self._appends.decide(self._turns.link, lambda draft: said.record(draft, now_us), beside=change)


async def _execute(statement: str, values: Mapping[str, Any], connection: Connection) -> None:
    text, given = numbered(statement, values)
    if (await connection.execute(text, *given)).endswith(" 0"):
        raise _Unchanged
