"""Opening the page of a long run, and of a moment in it, beside plainly reading the rows of its steps and events."""

from __future__ import annotations

import gc
import sqlite3
import tracemalloc
from pathlib import Path
from time import perf_counter_ns

import orjson

from ledger import Ledger, LedgerReader
from tests.bench.figure import Figure, figure, median_ms, timed_ns
from tests.bench.long_run import BOUNDARIES_AT_ONCE, EVENTS_PER_BOUNDARY, LONG, boundaries
from tests.ledger.scripted import ScriptedRun
from viewer.present.links import TraceLinks
from viewer.present.trace.page import TracePage, trace_page
from viewer.reading.replays import Replays
from viewer.reading.run import Asked, read_run
from viewer.reading.searching import EventFilter

FAR = 50_000
"""An event of the run."""
REPEATS = 9
READ_STEPS = "SELECT * FROM tool_invocation WHERE run_id = ? ORDER BY invocation_no"
READ_EVENTS = "SELECT body FROM event WHERE stream_id = ? AND seq <= ? ORDER BY seq"


async def measure(folder: Path) -> list[Figure]:
    """The page without its template, which costs the same for a run of any length."""
    path, run = folder / "long_page.db", ScriptedRun("run-long")
    async with await Ledger.open(path) as ledger:
        ledger.journal.submit(run.start())
        for _ in range(LONG // EVENTS_PER_BOUNDARY // BOUNDARIES_AT_ONCE):
            last = ledger.journal.submit(boundaries(run))
        last.result()
    plain = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    async with await LedgerReader.open(path) as reader:
        try:
            return await _figures(reader, plain, (run.session_id, run.run_id))
        finally:
            plain.close()


async def _figures(reader: LedgerReader, plain: sqlite3.Connection, keys: tuple[str, str]) -> list[Figure]:
    rows_ms = median_ms([timed_ns(lambda: plain.execute(READ_STEPS, keys[1:]).fetchall()) for _ in range(REPEATS)])
    decode_ms = median_ms([timed_ns(lambda: _decoded(plain, keys[1], FAR)) for _ in range(REPEATS)])
    page_rows = 200
    page_ms = median_ms([timed_ns(lambda: _decoded(plain, keys[1], page_rows)) for _ in range(REPEATS)])
    replays = Replays(reader)
    first_ms = await _took_ms(reader, replays, Asked(*keys), REPEATS)
    cold_ms = await _took_ms(reader, replays, Asked(*keys, at_seq=FAR), 1)
    warm_ms = await _took_ms(reader, replays, Asked(*keys, at_seq=FAR - 1), REPEATS)
    search_ms = await _took_ms(reader, replays, Asked(*keys, wanted=EventFilter(text="no such words")), 3)
    steps, bodies = "plain sqlite3 reading its steps", f"plain sqlite3 reading {FAR:,} bodies, orjson decoding them"
    return [
        figure(f"page of a run of {LONG:,} events, p50", "ms", first_ms, steps, rows_ms, at_most=300.0),
        figure(f"memory for it, of {LONG:,} events", "MB", await _peak_mb(reader, keys), "16 MB", 16.0, goal=1.0),
        figure(f"the same at event {FAR:,}, for the first time", "ms", cold_ms, bodies, decode_ms, at_most=3_000.0),
        figure("the same one event before, p50", "ms", warm_ms, steps, rows_ms, at_most=300.0),
        figure("a page of its search, p50", "ms", search_ms, f"reading {page_rows} bodies", page_ms, at_most=1_500.0),
    ]


async def _took_ms(reader: LedgerReader, replays: Replays, asked: Asked, repeats: int) -> float:
    took_ns = []
    for _ in range(repeats):
        started_ns = perf_counter_ns()
        await _page(reader, replays, asked)
        took_ns.append(perf_counter_ns() - started_ns)
    return median_ms(took_ns)


async def _page(reader: LedgerReader, replays: Replays, asked: Asked) -> TracePage:
    links = TraceLinks(*asked.keys, at=asked.at_seq, text=asked.wanted.text, view="events")
    return trace_page(await read_run(reader, replays, asked), links)


async def _peak_mb(reader: LedgerReader, keys: tuple[str, str]) -> float:
    gc.collect()
    tracemalloc.start()
    await _page(reader, Replays(reader), Asked(*keys))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def _decoded(plain: sqlite3.Connection, run_id: str, last_seq: int) -> list[object]:
    return [orjson.loads(body) for (body,) in plain.execute(READ_EVENTS, (f"r:{run_id}", last_seq))]
