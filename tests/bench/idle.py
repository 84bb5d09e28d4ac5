"""What an open run that does nothing holds in memory, beside an open span."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider

from harness import Harness, MemoryJournal
from tests.bench.figure import Figure, figure
from tests.bench.workload import open_run

RUNS = 2_000
AT_MOST_KB = 10


async def measure(_: Path) -> list[Figure]:
    """Both with what the first of their kind brings along left out."""
    harness, tracer = Harness(MemoryJournal()), TracerProvider(shutdown_on_exit=False).get_tracer("bench")
    async with AsyncExitStack() as runs:

        async def enter_run() -> object:
            return await runs.enter_async_context(open_run(harness))

        async def start_span() -> object:
            return tracer.start_span("invoke_agent", attributes={f"attribute.{n}": n for n in range(8)})

        run_kb, span_kb = await _kb_each(enter_run), await _kb_each(start_span)
    reference = "open OpenTelemetry SDK span, 8 attributes"
    return [figure("idle run and its first event", "kB", run_kb, reference, span_kb, at_most=AT_MOST_KB)]


async def _kb_each(open_one: Callable[[], Awaitable[object]]) -> float:
    held = [await open_one()]
    gc.collect()
    tracemalloc.start()
    before_bytes, _ = tracemalloc.get_traced_memory()
    held += [await open_one() for _ in range(RUNS)]
    gc.collect()
    after_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after_bytes - before_bytes) / 1_000 / RUNS
