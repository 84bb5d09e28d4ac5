"""What reading a long run page by page holds in memory, beside doing so with a short one."""

from __future__ import annotations

import gc
import tracemalloc
from itertools import chain
from pathlib import Path

from harness.journal import Submission
from ledger import Ledger, LedgerReader
from tests.bench.figure import Figure, figure
from tests.ledger.scripted import ScriptedRun

LONG, SHORT = 60_000, 600
"""Events."""
EVENTS_PER_BOUNDARY = 3
BOUNDARIES_AT_ONCE = 100
PAGE = 200


async def measure(folder: Path) -> list[Figure]:
    """Both runs through all of their pages, of which none is kept."""
    path = folder / "long.db"
    runs = {events: ScriptedRun(f"run-{events}", writer_id=f"w{events}") for events in (SHORT, LONG)}
    async with await Ledger.open(path) as ledger:
        for events, run in runs.items():
            ledger.journal.submit(run.start())
            for _ in range(events // EVENTS_PER_BOUNDARY // BOUNDARIES_AT_ONCE):
                last = ledger.journal.submit(boundaries(run))
            last.result()
    async with await LedgerReader.open(path) as reader:
        await _peak_mb(reader, runs[SHORT])  # what is made once, and remembered
        short_mb, long_mb = await _peak_mb(reader, runs[SHORT]), await _peak_mb(reader, runs[LONG])
    name, reference = f"memory to read a run of {LONG:,} events by pages", f"a run of {SHORT:,}"
    return [figure(name, "MB", long_mb, reference, short_mb, goal=1.5)]


def boundaries(run: ScriptedRun) -> Submission:
    """Many boundaries in one append."""
    parts: list[Submission] = []
    for _ in range(BOUNDARIES_AT_ONCE):
        tool = run.attempt()
        # As long in the one run as in the other.
        parts += [tool.start(f"input {run.events_made:06}"), tool.succeed(f"output {run.events_made:06}" * 20)]
    contents = {content.digest: content for part in parts for content in part.contents}
    return run.submission(*chain.from_iterable(part.events for part in parts), contents=tuple(contents.values()))


async def _peak_mb(reader: LedgerReader, run: ScriptedRun) -> float:
    keys = (run.session_id, run.run_id)
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    await reader.overview(*keys)
    last = 0
    while tools := await reader.tools(*keys, last, PAGE):
        last = tools[-1].invocation_no
    last = 0
    while events := await reader.events(*keys, last, PAGE):
        last = events[-1].seq
        gc.collect()  # only what is held on to counts
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gc.unfreeze()
    return peak_bytes / 1e6
