"""What one durable boundary costs beside a plain one-event commit on the same disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import perf_counter_ns

from harness import Harness
from ledger import Ledger
from tests.bench.figure import Figure, figure, median_ms, timed_ns
from tests.bench.workload import echo, no_limit_in_the_way

ROUNDS = 12
BOUNDARIES_PER_ROUND = 50
BODY = b"x" * 400


async def measure(folder: Path) -> list[Figure]:
    """Rounds of boundaries and of plain commits in turn, so that both meet the same noise."""
    plain = plain_log(folder / "plain.db")
    boundary_ns: list[int] = []
    commit_ns: list[int] = []
    async with await Ledger.open(f"sqlite:///{folder / 'boundary.db'}") as ledger:
        harness = Harness(ledger.journal)
        async with harness.run(session_id="bench", limits=no_limit_in_the_way(), timeout_s=3600) as run:
            for _ in range(ROUNDS):
                for number in range(BOUNDARIES_PER_ROUND):
                    started_ns = perf_counter_ns()
                    await harness.tool(run, "echo", echo, args={"number": number})
                    boundary_ns.append(perf_counter_ns() - started_ns)
                commit_ns += [timed_ns(lambda: commit_some(plain, 1)) for _ in range(BOUNDARIES_PER_ROUND)]
    plain.close()
    return [
        figure(
            "durable boundary, p50",
            "ms",
            median_ms(boundary_ns),
            "plain sqlite3, one 400-byte event a commit",
            median_ms(commit_ns),
            goal=2.0,
        )
    ]


def plain_log(path: Path) -> sqlite3.Connection:
    """What is compared with: the least that an event log can be."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE event (pos INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return connection


def commit_some(connection: sqlite3.Connection, events: int) -> None:
    """Some events in one durable commit."""
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO event (body) VALUES (?)", [(BODY,)] * events)
    connection.execute("COMMIT")
