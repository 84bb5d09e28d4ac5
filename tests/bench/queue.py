"""What a queue of waiting events holds in memory, beside the bytes that are to be written."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from harness.journal import Recorded
from ledger.append.front import WriterLimits
from ledger.append.prepared import Append
from ledger.append.writer import Writer
from ledger.store.batch import Batch
from tests.bench.figure import Figure, figure
from tests.bench.workload import EVENTS_PER_BOUNDARY
from tests.ledger.scripted import ScriptedRun

T = TypeVar("T")

EVENTS = 100_000
AT_MOST_MB = 200


async def measure(_: Path) -> list[Figure]:
    """Boundaries as a harness submits them: two events at the start, one at the end."""
    store = Stuck()
    writer = Writer(store, WriterLimits())
    run = ScriptedRun()
    gc.collect()
    tracemalloc.start()
    before_bytes, _peak = tracemalloc.get_traced_memory()
    for _number in range(EVENTS // EVENTS_PER_BOUNDARY):
        tool = run.attempt()
        writer.submit(tool.start())
        writer.submit(tool.succeed())
    gc.collect()
    after_bytes, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bodies_mb = writer.measures().load.queue_bytes / 1e6
    store.go_on.set()
    writer.close()
    value_mb = (after_bytes - before_bytes) / 1e6
    return [figure(f"queue of {EVENTS:,} events", "MB", value_mb, "their bodies", bodies_mb, at_most=AT_MOST_MB)]


class Stuck:
    """A database that does not answer until it is let go."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def append_all(self, appends: Sequence[Append]) -> list[Recorded | Exception]:
        self.go_on.wait()
        return [Recorded(1, len(append.events), bytes(32)) for append in appends]

    def run(self, job: Callable[[Batch], T], run_ids: Sequence[str] = ()) -> T:
        raise NotImplementedError

    def tidy(self, *, is_idle: bool) -> bool:
        return True

    def close(self) -> None:
        """Nothing is open."""
