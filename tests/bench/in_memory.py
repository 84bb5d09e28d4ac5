"""What one boundary costs without a disk: beside an OpenTelemetry span, and late in a run beside early in one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from statistics import median
from time import perf_counter_ns

from harness import Harness, MemoryJournal, Recorded, Submission
from harness.journal import Permit
from tests.bench.figure import Figure, figure
from tests.bench.span import Dropping, Serializing, Spans
from tests.bench.workload import cross, open_run

ROUNDS = 15
WORK = range(300)
"""The calls of one round."""
EARLY = 10
LATE = 100_000
MAY_GROW_BY = 1.25
"""The noise that a shared machine makes."""


async def measure(_: Path) -> list[Figure]:
    """What is compared goes in turn, round by round, so that all meet the same noise."""
    return [*await _beside_spans(), await _late_beside_early()]


async def _beside_spans() -> list[Figure]:
    harness = Harness(MemoryJournal())
    exported, dropped = Spans(Serializing()), Spans(Dropping())
    boundary_us, exported_us, dropped_us = [], [], []
    async with open_run(harness) as run:
        for _ in range(ROUNDS):
            boundary_us.append(await _us_each(cross(harness, run, WORK)))
            exported_us.append(await _us_each(exported.around_echo(run, WORK)))
            dropped_us.append(await _us_each(dropped.around_echo(run, WORK)))
    exported.close()
    dropped.close()
    name, value_us = "boundary in memory", median(boundary_us)
    return [
        figure(name, "us", value_us, "OpenTelemetry SDK span, 8 attributes, as OTLP", median(exported_us), goal=1.0),
        figure(name, "us", value_us, "the same span, never serialized", median(dropped_us)),
    ]


async def _late_beside_early() -> Figure:
    harness = Harness(NothingKept())
    late_us, early_us = [], []
    async with open_run(harness) as old:
        await cross(harness, old, range(LATE))
        for _ in range(ROUNDS):
            async with open_run(harness) as young:
                await cross(harness, young, range(EARLY))
                early_us.append(await _us_each(cross(harness, young, WORK)))
            late_us.append(await _us_each(cross(harness, old, WORK)))
    name, reference = f"boundary after {LATE:,} others in its run", f"after {EARLY}"
    return figure(name, "us", median(late_us), reference, median(early_us), goal=MAY_GROW_BY)


async def _us_each(work: Awaitable[None]) -> float:
    started_ns = perf_counter_ns()
    await work
    return (perf_counter_ns() - started_ns) / 1_000 / len(WORK)


class NothingKept:
    """A journal that answers at once and forgets, since all that a long run leaves behind would fill the memory."""

    def request_permit(self, timeout_s: float) -> Future[Permit]:
        permit: Future[Permit] = Future()
        permit.set_result(self)
        return permit

    def release(self) -> None:
        """Forgetting needs no room."""

    def watch(self, run_id: str, on_request: object) -> Callable[[], None]:
        return self.release

    def submit(self, submission: Submission) -> Future[Recorded]:
        recorded: Future[Recorded] = Future()
        recorded.set_result(Recorded(1, len(submission.events), bytes(32)))
        return recorded
