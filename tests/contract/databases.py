"""The databases that a ledger can lie in, as tests see them: opened, and looked at from outside."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest

from ledger import Ledger
from tests.ledger.tables import PROJECTIONS
from tests.servers.postgres import Loop


class Refused(Exception):
    """The database itself refused a statement."""


class Rows(NamedTuple):
    """What a statement gave."""

    rows: Sequence[tuple[Any, ...]]
    rowcount: int

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self.rows)

    def fetchone(self) -> Any:
        return self.rows[0] if self.rows else None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)


class SqliteOutsider:
    """A connection as any program would make it: no pragmas, no care."""

    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)

    def execute(self, statement: str, values: Sequence[object] = ()) -> Rows:
        try:
            cursor = self.connection.execute(statement, values)
            return Rows(cursor.fetchall(), cursor.rowcount)
        except sqlite3.DatabaseError as error:
            raise Refused(str(error)) from error

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.execute(f"PRAGMA table_info({table})")]

    def version(self) -> object:
        """Something that is another after anybody has written."""
        return self.execute("PRAGMA data_version").fetchone()

    def lay_open(self, table: str) -> None:
        """Take away what guards the table against strange rows."""
        self.execute(f"DROP TRIGGER {table}_insert")

    def close(self) -> None:
        self.connection.close()


class PostgresOutsider:
    """The same with a loop of its own, so that tests need not wait for it."""

    dialect = "postgresql"

    def __init__(self, url: str, **settings: str) -> None:
        self._loop = Loop()
        self.connection = self._loop.run(asyncpg.connect(url, server_settings=settings))

    def execute(self, statement: str, values: Sequence[object] = ()) -> Rows:
        numbers = iter(range(1, 100))
        numbered = re.sub(r"\?", lambda _: f"${next(numbers)}", statement)
        try:
            prepared = self._loop.run(self.connection.prepare(numbered))
            rows = self._loop.run(prepared.fetch(*values))
        except asyncpg.PostgresError as error:
            raise Refused(str(error)) from error
        count = str(prepared.get_statusmsg()).rpartition(" ")[2]
        return Rows([tuple(row) for row in rows], int(count) if count.isdigit() else -1)

    def script(self, statements: str) -> None:
        """Several statements at once."""
        try:
            self._loop.run(self.connection.execute(statements))
        except asyncpg.PostgresError as error:
            raise Refused(str(error)) from error

    def columns(self, table: str) -> list[str]:
        named = "SELECT attname::text FROM pg_attribute WHERE attrelid = ?::regclass AND attnum > 0 ORDER BY attnum"
        return [row[0] for row in self.execute(named.replace("?::regclass", f"'{table}'::regclass"))]

    def version(self) -> object:
        """Something that is another after anybody has written a projection; owners go on saying that they live."""
        return [self.execute(f"SELECT xmin::text, ctid::text FROM {table} ORDER BY 1, 2").rows for table in PROJECTIONS]

    def lay_open(self, table: str) -> None:
        """Take away what guards the table against strange rows."""
        self.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")

    def close(self) -> None:
        self._loop.run(self.connection.close())
        self._loop.close()


Outsider = SqliteOutsider | PostgresOutsider


def stored(outsider: Outsider, tables: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    """All rows of these tables."""
    return [outsider.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables]


@contextmanager
def refused(outsider: Outsider, tables: Sequence[str], rules: str | None = None) -> Iterator[None]:
    """What is done meanwhile fails by one of these rules, and afterwards the tables hold what they held."""
    before = stored(outsider, tables)
    with pytest.raises(Refused, match=rules):
        yield
    assert stored(outsider, tables) == before


class Database:
    """A database with an empty ledger in it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_postgres = url.startswith("postgresql:")
        self._outsiders: list[Outsider] = []

    async def open(self, **settings: Any) -> Ledger:
        """The ledger, opened once more."""
        if self.is_postgres:
            settings = {"lease_s": 2.0} | settings
        return await Ledger.open(self.url, **settings)

    def outsider(self, database: str | None = None) -> Outsider:
        """A further connection, which no code of ours has made; on a server also to another database."""
        if self.is_postgres:
            url = self.url if database is None else f"{self.url.rpartition('/')[0]}/{database}"
            self._outsiders.append(PostgresOutsider(url))
        else:
            self._outsiders.append(SqliteOutsider(Path(self.url.removeprefix("sqlite:///"))))
        return self._outsiders[-1]

    def close(self) -> None:
        for outsider in self._outsiders:
            outsider.close()
