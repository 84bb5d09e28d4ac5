"""Tokens of an SQLite ledger, changed by its writer in the transaction of the event that tells of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from harness.clock import WallClock
from ledger.append.unfolded import Statement
from ledger.store.batch import Batch
from ledger.store.faults import unavailable

Runner = Callable[[Callable[[Batch], Any]], Awaitable[Any]]


class SqliteTokens:
    """A `ledger.tokens.tokens.TokenStore`."""

    def __init__(self, run: Runner, clock: WallClock) -> None:
        self._run = run
        self._clock = clock

    async def change(self, statement: str, values: Mapping[str, Any], said: Statement | None = None) -> bool:
        try:
            return bool(await self._run(partial(_change, statement, values, said, self._clock.now_us())))
        except sqlite3.Error as error:
            raise unavailable(error) from error


def _change(statement: str, values: Mapping[str, Any], said: Statement | None, now_us: int, batch: Batch) -> bool:
    if batch.connection.execute(statement, values).rowcount == 0:
        return False
    if said is not None:
        said.record(batch, now_us)
    return True
