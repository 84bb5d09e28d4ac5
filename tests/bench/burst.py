"""A burst of events whose process is killed in its midst: what was acknowledged is there, and was soon to be seen."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from harness.journal import Recorded
from ledger import Ledger, LedgerReader
from tests.bench.figure import Figure, figure
from tests.faults.processes import start
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun

RUNS = 2_500
EVENTS_PER_RUN = 20
RUNS_AT_ONCE = 500
KILL_AFTER_EVENTS = RUNS * EVENTS_PER_RUN // 2
VISIBLE_WITHIN_MS = 100.0

Acknowledged = dict[tuple[str, int], float]
"""When, by run and sequence number, on a clock that all processes share."""


async def measure(folder: Path) -> list[Figure]:
    """One burst, killed half-way, with somebody following the log all the while."""
    path = blank_at(folder / "burst.db")
    program = start(burst, str(path))
    acknowledged: Acknowledged = {}
    listener = threading.Thread(target=_listen, args=(program.pipe, acknowledged, program.process.kill))
    async with await LedgerReader.open(path) as reader:
        seen: Acknowledged = {}
        following = asyncio.create_task(_follow(reader, seen))
        await asyncio.sleep(0.5)  # as somebody who has been there before
        gc.collect()
        gc.freeze()  # what all measurements have brought along is not the follower's to look through
        began_s = time.monotonic()
        program.pipe.send("go")
        listener.start()
        await asyncio.to_thread(listener.join)
        took_s = time.monotonic() - began_s
        while not acknowledged.keys() <= seen.keys() and time.monotonic() < began_s + took_s + 5:
            await asyncio.sleep(0.05)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    gc.unfreeze()
    program.process.join(30)
    lost, silent, stored = await _look(path, acknowledged)
    delays_ms = sorted((seen.get(key, float("inf")) - when_s) * 1_000 for key, when_s in acknowledged.items())
    name, count = f"burst of {RUNS * EVENTS_PER_RUN:,} events, killed half-way", float(len(acknowledged))
    return [
        figure(f"{name}: acknowledged and lost", "", lost, "acknowledged", count, at_most=0),
        figure(f"{name}: runs cut off that do not say so", "", silent, "runs begun", stored, at_most=0),
        figure(f"{name}: acknowledged", "/s", count / took_s, "in all", count),
        figure(
            f"{name}: from acknowledged to seen by a follower, p99",
            "ms",
            max(0.0, delays_ms[int(len(delays_ms) * 0.99)]),
            "the longest of all",
            max(0.001, delays_ms[-1]),
            at_most=VISIBLE_WITHIN_MS,
        ),
    ]


async def burst(pipe: Connection, path: str) -> None:
    """Record runs, many at once, and say what was acknowledged, as it is."""
    async with await Ledger.open(path) as ledger:
        pipe.recv()
        names = iter([f"run-{number}" for number in range(RUNS)])
        lock = threading.Lock()

        def acknowledge(run_id: str, future: Future[Recorded]) -> None:
            recorded = future.result()
            with lock:
                pipe.send((run_id, recorded.first_seq, recorded.last_seq, time.monotonic()))

        async def record_next() -> None:
            for run_id in names:
                run = ScriptedRun(run_id, writer_id=run_id)
                submissions = [run.start()]
                for _ in range((EVENTS_PER_RUN - 2) // 3):
                    tool = run.attempt()
                    submissions += [tool.start(), tool.succeed()]
                for submission in (*submissions, run.end()):
                    future = ledger.journal.submit(submission)
                    future.add_done_callback(partial(acknowledge, run_id))
                    await asyncio.wrap_future(future)

        await asyncio.gather(*(record_next() for _ in range(RUNS_AT_ONCE)))


def _listen(pipe: Connection, acknowledged: Acknowledged, kill: Callable[[], None]) -> None:
    is_killed = False
    try:
        while True:
            run_id, first_seq, last_seq, when_s = pipe.recv()
            acknowledged.update({(run_id, seq): when_s for seq in range(first_seq, last_seq + 1)})
            if not is_killed and len(acknowledged) >= KILL_AFTER_EVENTS:
                is_killed = True
                kill()
    except (EOFError, OSError):
        pipe.close()


async def _follow(reader: LedgerReader, seen: Acknowledged) -> None:
    follower = reader.follow()
    while True:
        page = await follower.page()
        now_s = time.monotonic()
        seen.update({(str(event.fields["run_id"]), event.seq): now_s for _, event in page if "run_id" in event.fields})


async def _look(path: Path, acknowledged: Acknowledged) -> tuple[float, float, float]:
    """How much of it is missing, how many runs are cut off without a word, and how many there are."""
    async with await Ledger.open(path):
        connection = sqlite3.connect(path)
        stored = set(connection.execute("SELECT run_id, seq FROM event WHERE run_id IS NOT NULL"))
        statuses = [row[0] for row in connection.execute("SELECT status FROM diagnosis_run")]
        ended = [row[0] for row in connection.execute("SELECT run_id FROM event WHERE type = 'run.terminated'")]
        connection.close()
    silent = statuses.count("RUNNING") + len(statuses) - len(set(ended)) + len(ended) - len(set(ended))
    return float(len(acknowledged.keys() - stored)), float(silent), float(len(statuses))
