"""A ledger for each test, in a folder of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.ids import RandomIds
from ledger import Ledger
from tests.ledger.blank import blank_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return blank_at(tmp_path / "runs.db")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def ledger(path: Path, clock: ManualClock) -> AsyncIterator[Ledger]:
    async with await Ledger.open(path, wall_clock=clock, ids=RandomIds()) as opened:
        yield opened


@pytest.fixture
def plain(path: Path) -> Iterator[Callable[[], sqlite3.Connection]]:
    """Further connections as any program would make them: no pragmas, no care."""
    opened: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        opened.append(sqlite3.connect(path, isolation_level=None))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
