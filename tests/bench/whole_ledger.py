"""What going through a whole ledger costs, beside reading it plainly: verifying, rebuilding, and the memory of both."""

from __future__ import annotations

import gc
import sqlite3
import tracemalloc
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter

import orjson

from harness.events import parse_event
from ledger import Ledger
from ledger.verifying import verify
from ledger.verifying.chain import BODY, COLUMNS
from tests.bench.figure import Figure, figure
from tests.ledger.scripted import ScriptedRun

ROUNDS = 5
RUNS = 100
BOUNDARIES_PER_RUN = 30
SHORT_RUNS, SHORT_BOUNDARIES = 800, 3
MORE = 4
"""So many times the runs, to see whether memory grows."""
MAY_GROW_BY = 1.25
HALF_THE_RATE = 2.0
FORTY_PERCENT_OF_THE_RATE = 2.5
READ_ALL = (
    f"SELECT {', '.join(COLUMNS)} FROM event ORDER BY stream_id, seq",
    "SELECT data FROM content ORDER BY stream_id, digest",
)
HASHED = "plain sqlite3 reading all events and contents, SHA-256 of their bytes"
READ_BODIES = "SELECT body FROM event ORDER BY stream_id, seq"
PLAIN = "plain sqlite3 reading all events, orjson decoding them"
EVENTS = "the same, each made into an event"


async def measure(folder: Path) -> list[Figure]:
    """All ways in turn, round by round, so that all meet the same noise."""
    small, large, short = folder / "small.db", folder / "large.db", folder / "short.db"
    event_count = await record(small, RUNS)
    short_count = await record(short, SHORT_RUNS, SHORT_BOUNDARIES)
    await record(large, MORE * RUNS)
    verify_us, rebuild_us, plain_us, events_us, hashed_us, short_us, short_hashed_us = [], [], [], [], [], [], []
    async with await Ledger.open(small) as ledger:
        for _ in range(ROUNDS):
            verify_us.append(await us_each(event_count, lambda: verify(small)))
            rebuild_us.append(await us_each(event_count, ledger.rebuild))
            plain_us.append(await us_each(event_count, lambda: _read_plainly(small, orjson.loads)))
            events_us.append(await us_each(event_count, lambda: _read_plainly(small, _event_of)))
            hashed_us.append(await us_each(event_count, lambda: hash_plainly(small)))
            short_us.append(await us_each(short_count, lambda: verify(short)))
            short_hashed_us.append(await us_each(short_count, lambda: hash_plainly(short)))
    return [
        figure("verify, per event", "us", median(verify_us), HASHED, median(hashed_us), goal=FORTY_PERCENT_OF_THE_RATE),
        figure(
            "verify of short runs, per event",
            "us",
            median(short_us),
            HASHED,
            median(short_hashed_us),
            goal=FORTY_PERCENT_OF_THE_RATE,
        ),
        figure("verify, per event", "us", median(verify_us), EVENTS, median(events_us), goal=HALF_THE_RATE),
        figure("verify, per event", "us", median(verify_us), PLAIN, median(plain_us), goal=HALF_THE_RATE),
        figure("rebuild, per event", "us", median(rebuild_us), EVENTS, median(events_us), goal=HALF_THE_RATE),
        figure("rebuild, per event", "us", median(rebuild_us), PLAIN, median(plain_us), goal=HALF_THE_RATE),
        figure(
            f"memory of verify, {MORE * RUNS:,} runs",
            "MB",
            await _peak_mb(lambda: verify(large)),
            f"{RUNS:,} runs",
            await _peak_mb(lambda: verify(small)),
            goal=MAY_GROW_BY,
        ),
    ]


async def record(path: Path, run_count: int, boundaries_per_run: int = BOUNDARIES_PER_RUN) -> int:
    """So many runs in a new ledger; how many events it has."""
    async with await Ledger.open(path) as ledger:
        last = None
        for number in range(run_count):
            run = ScriptedRun(f"run-{number}", f"session-{number}", writer_id=f"w{number}")
            ledger.journal.submit(run.start())
            for _boundary in range(boundaries_per_run):
                tool = run.attempt()
                ledger.journal.submit(tool.start())
                ledger.journal.submit(tool.succeed())
            last = ledger.journal.submit(run.end())
        assert last is not None, "there is a run"
        last.result()
        return await ledger.reader.last_leaf() + 1


async def _read_plainly(path: Path, decode: Callable[[bytes], object]) -> None:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    for (body,) in connection.execute(READ_BODIES):
        decode(body)
    connection.close()


async def hash_plainly(path: Path) -> None:
    """What verifying is measured beside: every byte read and hashed once, and nothing compared."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    events, contents = READ_ALL
    for row in connection.execute(events):
        sha256(row[BODY]).digest()
    for (data,) in connection.execute(contents):
        sha256(data or b"").digest()
    connection.close()


def _event_of(body: bytes) -> object:
    return parse_event(orjson.loads(body))


async def us_each(event_count: int, work: Callable[[], Awaitable[object]]) -> float:
    """How long `work` takes for each event, in microseconds."""
    began_s = perf_counter()
    await work()
    return (perf_counter() - began_s) * 1e6 / event_count


async def _peak_mb(work: Callable[[], Awaitable[object]]) -> float:
    gc.collect()
    tracemalloc.start()
    await work()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak_bytes / 1e6
