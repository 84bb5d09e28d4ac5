"""Followers' places in an SQLite ledger, stored by its writer in the transaction of what they cover."""

from __future__ import annotations

import contextlib
import inspect
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from harness.errors import InvalidInput
from ledger.errors import LedgerError
from ledger.following.followers import ENDED, FollowerPlace, OnConnection
from ledger.following.leaves import START, Wanted
from ledger.schema import metadata
from ledger.store.batch import Batch

PLACES = "SELECT name, leaf_index, session_id, run_id FROM follower ORDER BY name"
PLACE = "SELECT leaf_index FROM follower WHERE name = ?"
ADVANCE = (
    "INSERT INTO follower (name, leaf_index, session_id, run_id) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET leaf_index = excluded.leaf_index"
)
FORGET = "DELETE FROM follower WHERE name = ?"

NOT_YOURS = frozenset({sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA})
SETTINGS = ("row_factory", "text_factory")
"""What others may set of a connection as they like, for as long as it is lent to them."""
ONLY_LOOKS = frozenset({sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION})
IS_TEMPORARY = "temp"
LEDGER_TABLES = frozenset(metadata.tables)

Runner = Callable[[Callable[[Batch], Any]], Awaitable[Any]]


class _Raised(LedgerError):
    """What an application raised in a transaction of the ledger's, which is undone for it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(str(error))


class SqliteFollowers:
    """A `ledger.following.followers.FollowerPlaces`."""

    def __init__(self, run: Runner) -> None:
        self._run = run

    async def all(self) -> dict[str, FollowerPlace]:
        rows = await self._run(lambda batch: batch.connection.execute(PLACES).fetchall())
        return {name: FollowerPlace(place, Wanted(*wanted)) for name, place, *wanted in rows}

    async def advance(self, name: str, before: int, after: FollowerPlace, write: OnConnection | None) -> bool:
        try:
            return bool(await self._run(partial(_advance, name, before, after, write)))
        except _Raised as raised:
            raise raised.error from None

    async def forget(self, name: str) -> bool:
        return bool(await self._run(lambda batch: batch.connection.execute(FORGET, (name,)).rowcount))


def _advance(name: str, before: int, after: FollowerPlace, write: OnConnection | None, batch: Batch) -> bool:
    row = batch.connection.execute(PLACE, (name,)).fetchone()
    if before != (START if row is None else row[0]):
        return False
    if write is not None:
        with _lent(batch.connection):
            _apply(write, batch.connection)
    batch.connection.execute(ADVANCE, (name, after.place, after.wanted.session_id, after.wanted.run_id))
    return True


def _apply(write: OnConnection, connection: sqlite3.Connection) -> None:
    result = write(connection)
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()
        raise InvalidInput("write", "returned what nobody awaits: on SQLite it is a plain function")
    if not connection.in_transaction:
        # As of a conflict that says OR ROLLBACK.
        raise InvalidInput("write", ENDED)


@contextlib.contextmanager
def _lent(connection: sqlite3.Connection) -> Iterator[None]:
    """Others may use the connection, but neither end its transaction nor change what is the ledger's.

    Not even `SystemExit` goes further than to who called: it would end the thread that writes for all.
    """
    kept = {name: getattr(connection, name) for name in SETTINGS}
    connection.set_authorizer(_judge)
    try:
        yield
    except BaseException as error:
        raise _Raised(error) from error
    finally:
        connection.set_authorizer(None)
        for name, value in kept.items():
            setattr(connection, name, value)


def _judge(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action in ONLY_LOOKS:
        return sqlite3.SQLITE_OK
    # What is temporary and has the name of a table comes before it, however that is written.
    is_ours = any(name is not None and name.lower() in LEDGER_TABLES for name in (first, second))
    is_ours = is_ours or action in NOT_YOURS or (action == sqlite3.SQLITE_ALTER_TABLE and first == IS_TEMPORARY)
    return sqlite3.SQLITE_DENY if is_ours else sqlite3.SQLITE_OK
