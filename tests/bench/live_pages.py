"""What appends cost while many pages follow running runs, beside the same appends while nobody looks.

The pages are those of one server in a process of its own, as `tachograph serve` beside an agent.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns, process_time

from ledger import Ledger
from tests.bench.figure import Figure, figure
from tests.bench.serving import Connection, Served, serving
from tests.ledger.scripted import ScriptedRun

PAGES = 200
FOLLOWED_RUNS = 20
APPENDS = 300
PACE_S = 0.005
"""Between two appends: an agent waits for its models and tools most of the time."""
ROUNDS = 6
"""Of each kind, in turn."""
GOAL = 1.10


async def measure(folder: Path) -> list[Figure]:
    """Rounds in pairs; the pages come before the one and go after it."""
    path = folder / "live.db"
    alone: list[tuple[float, float, float]] = []
    watched: list[tuple[float, float, float]] = []
    server_s: list[float] = []
    async with await Ledger.open(path) as ledger:
        runs = [ScriptedRun(f"run-live-{number}", f"session-{number}") for number in range(FOLLOWED_RUNS)]
        for run in runs:
            await asyncio.wrap_future(ledger.journal.submit(run.start()))
        with serving(path) as served:
            for number in range(ROUNDS):
                for is_watched in (False, True)[:: 1 if number % 2 else -1]:
                    if is_watched:
                        watched.append(await _while_watched(ledger, runs, served, server_s))
                    else:
                        alone.append(await _appends(ledger, runs))
    name, reference = f"append while {PAGES} pages follow", "the same while nobody looks"
    pairs = [tuple(median(each[kind] for each in rounds) for rounds in (watched, alone)) for kind in range(3)]
    return [
        figure(f"{name}, p50", "ms", pairs[0][0], reference, pairs[0][1], goal=GOAL),
        figure(f"{name}, p99", "ms", pairs[1][0], reference, pairs[1][1]),
        figure(f"{name}, processor of the writer", "ms", pairs[2][0], reference, pairs[2][1], goal=GOAL),
        figure(
            f"{name}, processor of the server",
            "ms",
            median(server_s) * 1e3 / APPENDS,
            "processor of the writer",
            pairs[2][0],
        ),
    ]


async def _while_watched(
    ledger: Ledger, runs: list[ScriptedRun], served: Served, server_s: list[float]
) -> tuple[float, float, float]:
    pages = [await Connection.open(served.port) for _ in range(PAGES)]
    for number, page in enumerate(pages):
        run = runs[number % len(runs)]
        await page.ask(f"/api/diagnosis/{run.session_id}/runs/{run.run_id}/live?from=now")
    for page in pages:
        while await page.line() != b": following\n":
            pass
    before_s = served.processor_s()
    took = await _appends(ledger, runs)
    server_s.append(served.processor_s() - before_s)
    for page in pages:
        await page.close()
    return took


async def _appends(ledger: Ledger, runs: list[ScriptedRun]) -> tuple[float, float, float]:
    """p50, p99 and the processor's time of this process for each, in milliseconds."""
    made = [runs[number % len(runs)].transition(f"n{number}") for number in range(APPENDS)]
    took_ns = []
    before_s = process_time()
    for append in made:
        started_ns = perf_counter_ns()
        await asyncio.wrap_future(ledger.journal.submit(append))
        took_ns.append(perf_counter_ns() - started_ns)
        await asyncio.sleep(PACE_S)
    used_s = process_time() - before_s
    return median(took_ns) / 1e6, quantiles(took_ns, n=100)[98] / 1e6, used_s * 1e3 / APPENDS
