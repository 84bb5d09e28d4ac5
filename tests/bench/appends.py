"""How many events a second become durable, links and projections included, with few and with many runs at once."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

from harness.concurrency.waiting import result_of
from harness.journal import Submission
from ledger import Ledger
from tests.bench.boundary import commit_some, plain_log
from tests.bench.figure import Figure, figure, timed_ns
from tests.ledger.scripted import ScriptedRun

ROUNDS = 3
EVENTS = 6_000
"""Of one round, over all its runs."""
EVENTS_PER_BOUNDARY = 3
PLAIN_BATCH = 100
OTHER_EVENTS = 300
GOALS = {1: (None, None), 50: (None, 0.2), 500: (2.0, 0.2)}
"""By the number of runs: beside plain batches, and beside the other library."""


async def measure(folder: Path) -> list[Figure]:
    """Rounds of each in turn, so that all meet the same noise."""
    plain, other = plain_log(folder / "plain-batches.db"), OtherLibrary(folder / "other.db")
    ledger_us: dict[int, list[float]] = {size: [] for size in GOALS}
    plain_us, single_us, other_us = [], [], []
    async with await Ledger.open(folder / "appends.db") as ledger:
        for round_no in range(ROUNDS):
            for size, took_us in ledger_us.items():
                took_us.append(await _us_each(ledger, f"{round_no}-{size}", size))
            plain_us.append(timed_ns(partial(_commit_batches, plain)) / EVENTS / 1_000)
            single_us.append(timed_ns(partial(_commit_each, plain)) / OTHER_EVENTS / 1_000)
            other_us.append(timed_ns(other.append_each) / OTHER_EVENTS / 1_000)
    plain.close()
    other.close()
    figures = []
    for size, (beside_plain, beside_other) in GOALS.items():
        name, value = f"event, {size} runs at once", median(ledger_us[size])
        references = (
            (f"plain sqlite3, commits of {PLAIN_BATCH}", plain_us, beside_plain),
            ("plain sqlite3, one event a commit", single_us, None),
            ("eventsourcing, one event at a time", other_us, beside_other),
        )
        figures += [figure(name, "us", value, said, median(took), goal) for said, took, goal in references]
    return figures


async def _us_each(ledger: Ledger, prefix: str, runs: int) -> float:
    """How long an event takes, over runs that each wait for their starts, as a harness does."""
    boundaries = EVENTS // runs // EVENTS_PER_BOUNDARY
    work = [list(submissions(f"{prefix}-{number}", boundaries)) for number in range(runs)]
    count = sum(len(submission.events) for submissions in work for submission in submissions)
    gc.collect()
    gc.freeze()  # what was made beforehand is not the writer's to look through
    started_ns = perf_counter_ns()
    await asyncio.gather(*(_record(ledger, submissions) for submissions in work))
    took_ns = perf_counter_ns() - started_ns
    gc.unfreeze()
    return took_ns / count / 1_000


async def _record(ledger: Ledger, submissions: Sequence[Submission]) -> None:
    for submission in submissions:
        future = ledger.journal.submit(submission)
        if submission.is_awaited:
            await result_of(future)


def submissions(run_id: str, boundaries: int) -> Iterator[Submission]:
    run = ScriptedRun(run_id, writer_id=run_id)
    yield run.start()
    for number in range(boundaries):
        tool = run.attempt()
        yield tool.start(f"input {number}")
        yield tool.succeed(f"output {number}")._replace(is_awaited=False)
    yield run.end()


def _commit_batches(plain: sqlite3.Connection) -> None:
    for _ in range(EVENTS // PLAIN_BATCH):
        commit_some(plain, PLAIN_BATCH)


def _commit_each(plain: sqlite3.Connection) -> None:
    for _ in range(OTHER_EVENTS):
        commit_some(plain, 1)


class OtherLibrary:
    """Events of aggregates of the library `eventsourcing`, each saved on its own."""

    def __init__(self, path: Path) -> None:
        self._application = Application[UUID](
            env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
        )

    def append_each(self) -> None:
        run = _Run()
        for number in range(OTHER_EVENTS):
            run.cross(f"boundary {number} " + "x" * 300)
            self._application.save(run)

    def close(self) -> None:
        self._application.close()


class _Run(Aggregate):
    def __init__(self) -> None:
        self.crossed = 0

    @event("Crossed")
    def cross(self, what: str) -> None:
        self.crossed += 1
