"""The trace of one run in a ledger of millions of events; only when it is named, or with `ARGS=--big`."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from time import perf_counter_ns

from harness import Harness
from ledger import Ledger, LedgerReader
from tests.bench.figure import Figure, figure, median_ms
from tests.bench.workload import run_of

EVENTS_PER_RUN = 1_000
FEW_RUNS, MANY_RUNS = 10, 5_000
REPEATS = 60
MAY_GROW_BY = 1.2
COPIED = ("stream", "event", "content", "diagnosis_run", "tool_invocation")
PLAIN_SETTINGS = ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000", "foreign_keys = OFF")


async def measure(folder: Path) -> list[Figure]:
    """The same run in both, read in turn."""
    small, big = folder / "small.db", folder / "big.db"
    async with await Ledger.open(small) as ledger:
        run_id = await run_of(Harness(ledger.journal), "bench", events=EVENTS_PER_RUN)
    shutil.copy(small, big)
    _multiply(small, run_id, FEW_RUNS)
    _multiply(big, run_id, MANY_RUNS)
    took_ns: dict[Path, list[int]] = {small: [], big: []}
    async with await LedgerReader.open(small) as in_small, await LedgerReader.open(big) as in_big:
        for _ in range(REPEATS):
            for path, reader in ((small, in_small), (big, in_big)):
                started_ns = perf_counter_ns()
                await reader.trace("bench", run_id)
                took_ns[path].append(perf_counter_ns() - started_ns)
    name = f"trace of {EVENTS_PER_RUN:,} events among {MANY_RUNS * EVENTS_PER_RUN:,}, p50"
    reference = f"the same among {FEW_RUNS * EVENTS_PER_RUN:,}"
    return [figure(name, "ms", median_ms(took_ns[big]), reference, median_ms(took_ns[small]), goal=MAY_GROW_BY)]


def _multiply(path: Path, run_id: str, runs: int) -> None:
    """Copy the rows of the run, under other ids, into a ledger of so many runs; what they say is read by nobody."""
    plain = sqlite3.connect(path, isolation_level=None)
    for setting in PLAIN_SETTINGS:
        plain.execute(f"PRAGMA {setting}")
    triggers = plain.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        plain.execute(f"DROP TRIGGER {name}")
    plain.execute("BEGIN")
    (events,) = plain.execute("SELECT max(pos) FROM event").fetchone()
    statements = [_copy(plain, table) for table in COPIED]
    # In the order of their ids, so that every index only grows at its end.
    for number in range(1, runs):
        for statement in statements:
            plain.execute(statement, {"run_id": run_id, "other": f"{run_id}-{number:06}", "shift": number * events})
    plain.execute("COMMIT")
    for _, sql in triggers:
        plain.execute(sql)
    plain.close()


def _copy(plain: sqlite3.Connection, table: str) -> str:
    other = {"run_id": ":other", "stream_id": "'r:' || :other", "pos": "pos + :shift"}
    columns = [row[1] for row in plain.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(other.get(column, column) for column in columns)
    # By what is indexed, or each run would take as long as all before it.
    key = "stream_id = 'r:' || :run_id" if "stream_id" in columns else "run_id = :run_id"
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {key}"
