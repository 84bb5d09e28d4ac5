"""A ledger in a database of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.contract.databases import Database, PostgresOutsider


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    database = Database(postgres_url)
    yield database
    database.close()


@pytest.fixture
def plain(database: Database) -> Callable[[], PostgresOutsider]:
    def connect() -> PostgresOutsider:
        outsider = database.outsider()
        assert isinstance(outsider, PostgresOutsider)
        return outsider

    return connect


@pytest.fixture
def empty_url(postgres_server) -> Iterator[str]:
    """A database with nothing in it."""
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)
