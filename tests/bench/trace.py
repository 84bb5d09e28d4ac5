"""What reading an exact trace costs beside reading the run's event rows and decoding them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import perf_counter_ns

import orjson

from harness import Harness
from ledger import Ledger, LedgerReader
from tests.bench.figure import Figure, figure, median_ms, timed_ns
from tests.bench.workload import run_of

GOALS = {20: None, 1_000: 3.0}
"""By events of the run."""
REPEATS = 60
READ_EVENTS = "SELECT seq, body FROM event WHERE stream_id = ? ORDER BY seq"


async def measure(folder: Path) -> list[Figure]:
    """Both ways of reading in turn, for a small run and a big one."""
    path = folder / "trace.db"
    async with await Ledger.open(f"sqlite:///{path}") as ledger:
        harness = Harness(ledger.journal)
        run_ids = {size: await run_of(harness, "bench", events=size) for size in GOALS}
    plain = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    reader = await LedgerReader.open(f"sqlite:///{path}")
    try:
        return [await _trace_of(reader, plain, run_ids[size], size) for size in GOALS]
    finally:
        await reader.close()
        plain.close()


async def _trace_of(reader: LedgerReader, plain: sqlite3.Connection, run_id: str, size: int) -> Figure:
    trace_ns: list[int] = []
    plain_ns: list[int] = []
    for _ in range(REPEATS):
        started_ns = perf_counter_ns()
        await reader.trace("bench", run_id)
        trace_ns.append(perf_counter_ns() - started_ns)
        plain_ns.append(timed_ns(lambda: _decode_events(plain, run_id)))
    return figure(
        f"trace of a run of {size:,} events, p50",
        "ms",
        median_ms(trace_ns),
        "plain sqlite3 reading its events, orjson decoding them",
        median_ms(plain_ns),
        goal=GOALS[size],
    )


def _decode_events(plain: sqlite3.Connection, run_id: str) -> list[object]:
    return [orjson.loads(body) for _, body in plain.execute(READ_EVENTS, (f"r:{run_id}",))]
