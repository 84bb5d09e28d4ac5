"""A step back in a long run beside a step forward; and comparing two long runs beside folding both."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter_ns

from ledger import Ledger, LedgerReader
from ledger.audit.comparing.comparing import compare
from ledger.audit.walking.replay import PAGE_EVENTS, Replay
from tests.bench.figure import Figure, figure, median_ms
from tests.bench.long_run import BOUNDARIES_AT_ONCE, EVENTS_PER_BOUNDARY, LONG, boundaries
from tests.ledger.scripted import ScriptedRun

PAGES = 40
"""Gone through in both directions."""


async def measure(folder: Path) -> list[Figure]:
    """Pages are entered from either side: within one, a step costs nothing."""
    runs = [ScriptedRun(f"run-{number}", writer_id=f"w{number}") for number in range(2)]
    path = folder / "stepping.db"
    async with await Ledger.open(path) as ledger:
        for run in runs:
            ledger.journal.submit(run.start())
            for _ in range(LONG // EVENTS_PER_BOUNDARY // BOUNDARIES_AT_ONCE):
                last = ledger.journal.submit(boundaries(run))
            last.result()
    keys = [(run.session_id, run.run_id) for run in runs]
    async with await LedgerReader.open(path) as reader:
        walk = Replay.read(reader, *keys[0])
        fold_ns = await _took_ns(walk, LONG)
        forward, back = [], []
        for page in range(LONG // PAGE_EVENTS - PAGES - 1, LONG // PAGE_EVENTS - 1):
            forward.append(await _took_ns(walk, page * PAGE_EVENTS + 1))
            back.append(await _took_ns(walk, (page - PAGES) * PAGE_EVENTS))
        started_ns = perf_counter_ns()
        found = await compare(reader, keys[0], keys[1])
        compare_ns = perf_counter_ns() - started_ns
    assert found.is_same, "they did the same"
    step = f"step into an earlier page of {PAGE_EVENTS} events, of {LONG:,}, p50"
    return [
        figure(step, "ms", median_ms(back), "into a later one", median_ms(forward), goal=1.5),
        figure(f"compare two runs of {LONG:,} events", "ms", compare_ns / 1e6, "fold one", fold_ns / 1e6, goal=3.0),
    ]


async def _took_ns(walk: Replay, seq: int) -> int:
    started_ns = perf_counter_ns()
    await walk.at(seq)
    return perf_counter_ns() - started_ns
