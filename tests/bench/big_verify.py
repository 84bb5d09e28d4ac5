"""Verifying a million events, by one process and by one for each core; only when it is named, or with `ARGS=--big`."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

from ledger.verifying import verify
from tests.bench.figure import Figure, figure
from tests.bench.whole_ledger import FORTY_PERCENT_OF_THE_RATE, HASHED, hash_plainly, record, us_each

RUNS = 10_800
"""Of 93 events each."""
ROUNDS = 3


async def measure(folder: Path) -> list[Figure]:
    """All ways in turn."""
    path, cores = folder / "million.db", os.cpu_count() or 1
    event_count = await record(path, RUNS)
    alone_us, together_us, hashed_us = [], [], []
    for _ in range(ROUNDS):
        alone_us.append(await us_each(event_count, lambda: verify(path)))
        together_us.append(await us_each(event_count, lambda: verify(path, jobs=cores)))
        hashed_us.append(await us_each(event_count, lambda: hash_plainly(path)))
    name = f"verify of {event_count:,} events, per event"
    hashed = median(hashed_us)
    return [
        figure(f"{name}, one process", "us", median(alone_us), HASHED, hashed, goal=FORTY_PERCENT_OF_THE_RATE),
        figure(f"{name}, {cores} processes", "us", median(together_us), f"{HASHED}, by one", hashed),
    ]
