"""Every test here runs on every engine: what holds on one holds on the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.ids import RandomIds
from ledger import Ledger
from tests.contract.databases import Database, Outsider
from tests.ledger.blank import blank_at


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        database = Database(f"sqlite:///{blank_at(tmp_path / 'runs.db')}")
    else:
        database = Database(request.getfixturevalue("postgres_url"))
    yield database
    database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def ledger(database: Database, clock: ManualClock) -> AsyncIterator[Ledger]:
    async with await database.open(wall_clock=clock, ids=RandomIds()) as opened:
        yield opened


@pytest.fixture
def plain(database: Database) -> Callable[[], Outsider]:
    """Further connections as any program would make them."""
    return database.outsider
