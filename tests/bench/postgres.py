"""What appends cost on PostgreSQL beside plain asyncpg, which only puts the same rows into the same tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

import asyncpg

from harness import Harness
from harness.journal import Submission
from ledger import Ledger
from ledger.store.postgres.writer import CONNECTIONS_MAX
from tests.bench.figure import Figure, figure, median_ms
from tests.bench.workload import echo, no_limit_in_the_way
from tests.ledger.scripted import ScriptedRun
from tests.servers.postgres import PostgresServer

ROUNDS = 6
BOUNDARIES_PER_ROUND = 50
BOUNDARIES_AT_ONCE = 1_000
"""Of all runs together, in one round."""
RUN_COUNTS = (1, 50, 500)
BODY = b"x" * 400
LINK = bytes(32)
BOUNDARY_GOAL = 2.0
"""A boundary may take twice as long as the plain commit of one event,"""
THROUGHPUT_GOAL = 2.0
"""and so may many of them beside the same rows from nobody who checks, links or folds anything."""

TABLES = ("event", "content", "tool_invocation", "diagnosis_run", "stream")
INSERT_EVENT = (
    "INSERT INTO plain.event (stream_id, seq, event_id, type, version, session_id, run_id, occurred_us, recorded_us,"
    " body, body_hash, link) VALUES ($1, $2, $3, 'attempt.started', 1, 's', 'r', 1, 1, $4, $5, $5)"
)
INSERT_CONTENT = (
    "INSERT INTO plain.content (stream_id, digest, salt, size_bytes, media_type, data, state)"
    " VALUES ($1, $2, $3, 400, 'text/plain', $4, 'stored')"
)
INSERT_TOOL = (
    "INSERT INTO plain.tool_invocation (run_id, invocation_no, session_id, attempt_id, boundary, scope, tool_name,"
    " status, started_us, started_elapsed_us) VALUES ($1, $2, 's', 'a', 'tool/x/1/1', '', 'x', 'RUNNING', 1, 1)"
)
END_TOOL = (
    "UPDATE plain.tool_invocation SET status = 'SUCCESS', duration_us = 1 WHERE run_id = $1 AND invocation_no = $2"
)
UPDATE_RUN = "UPDATE plain.diagnosis_run SET updated_us = $2, usage = '{\"tool_calls\":1}' WHERE run_id = $1"
UPDATE_STREAM = "UPDATE plain.stream SET head_seq = $2 WHERE stream_id = $1"


async def measure(_: Path) -> list[Figure]:
    """A server that keeps what it says; both meet the same noise, round by round."""
    server = await asyncio.to_thread(lambda: PostgresServer().start())
    try:
        url = server.url(await asyncio.to_thread(server.create_database))
        async with (
            await Ledger.open(url) as ledger,
            asyncpg.create_pool(url, min_size=CONNECTIONS_MAX, max_size=CONNECTIONS_MAX) as pool,
        ):
            await pool.execute("CREATE SCHEMA plain")
            for table in TABLES:
                await pool.execute(f"CREATE TABLE plain.{table} (LIKE {table} INCLUDING ALL)")
            return [await _one(ledger, pool), *[await _many(ledger, pool, count) for count in RUN_COUNTS]]
    finally:
        await asyncio.to_thread(server.stop)


async def _one(ledger: Ledger, pool: asyncpg.Pool[Any]) -> Figure:
    harness = Harness(ledger.journal)
    boundary_ns: list[int] = []
    commit_ns: list[int] = []
    async with harness.run(session_id="bench", limits=no_limit_in_the_way(), timeout_s=3600) as run:
        for round_no in range(ROUNDS):
            for number in range(BOUNDARIES_PER_ROUND):
                cross_one = partial(harness.tool, run, "echo", echo, args={"number": number})
                boundary_ns.append(await _timed_ns(cross_one))
            for number in range(BOUNDARIES_PER_ROUND):
                event = ("r:one", round_no * BOUNDARIES_PER_ROUND + number, f"w1:{round_no}-{number}", BODY, LINK)
                commit_ns.append(await _timed_ns(partial(pool.execute, INSERT_EVENT, *event)))
    value, reference = median_ms(boundary_ns), median_ms(commit_ns)
    name = "durable boundary on PostgreSQL, p50"
    return figure(name, "ms", value, "plain asyncpg, one 400-byte event a commit", reference, goal=BOUNDARY_GOAL)


async def _many(ledger: Ledger, pool: asyncpg.Pool[Any], run_count: int) -> Figure:
    """Milliseconds for each boundary of two appends and three events, with so many runs at once."""
    each = BOUNDARIES_AT_ONCE // run_count
    runs = [ScriptedRun(f"run-{run_count}-{number}", f"session-{number}") for number in range(run_count)]
    for run in runs:
        ledger.journal.submit(run.start())
    await _begin_plain(pool, runs)
    value_ms: list[float] = []
    reference_ms: list[float] = []
    for round_no in range(ROUNDS):
        made = [[boundary_of(run) for _ in range(each)] for run in runs]
        value_ms.append(await _all_at_once([partial(append_each, ledger, boundaries) for boundaries in made]))
        plain = [partial(_insert_each, pool, run.run_id, round_no * each, each) for run in runs]
        reference_ms.append(await _all_at_once(plain))
    per_boundary = each * run_count
    name = f"boundary of two appends on PostgreSQL among {run_count} runs"
    reference = f"plain asyncpg, the same rows, {CONNECTIONS_MAX} connections"
    values = (median(value_ms) / per_boundary, median(reference_ms) / per_boundary)
    return figure(name, "ms", values[0], reference, values[1], goal=THROUGHPUT_GOAL)


def boundary_of(run: ScriptedRun) -> tuple[Submission, Submission]:
    """Both appends of one boundary."""
    tool, number = run.attempt(), run.events_made
    return tool.start(f"in {number}".ljust(400)), tool.succeed(f"out {number}".ljust(400))._replace(is_awaited=False)


async def append_each(ledger: Ledger, boundaries: Sequence[tuple[Submission, Submission]]) -> None:
    """Cross them, one after the other."""
    for start, end in boundaries:
        await asyncio.wrap_future(ledger.journal.submit(start))
        last = ledger.journal.submit(end)
    await asyncio.wrap_future(last)


async def _begin_plain(pool: asyncpg.Pool[Any], runs: Sequence[ScriptedRun]) -> None:
    ids = [run.run_id for run in runs]
    for table in ("stream", "diagnosis_run"):
        await pool.execute(f"INSERT INTO plain.{table} SELECT * FROM {table} WHERE run_id = ANY($1)", ids)


async def _insert_each(pool: asyncpg.Pool[Any], run_id: str, after: int, count: int) -> None:
    stream_id = f"r:{run_id}"
    for number in range(after + 1, after + count + 1):
        events = [(stream_id, 3 * number + n, f"w1:{3 * number + n}", BODY, LINK) for n in range(3)]
        contents = [(stream_id, f"{number}-{n}", LINK, BODY) for n in range(2)]
        async with pool.acquire() as connection, connection.transaction():
            await connection.executemany(INSERT_EVENT, events)
            await connection.executemany(INSERT_CONTENT, contents)
            await connection.execute(INSERT_TOOL, run_id, number)
            await connection.execute(END_TOOL, run_id, number - 1)
            await connection.execute(UPDATE_RUN, run_id, number)
            await connection.execute(UPDATE_STREAM, stream_id, 3 * number + 2)


async def _all_at_once(works: Sequence[Callable[[], Awaitable[None]]]) -> float:
    """Milliseconds until all of it is done."""

    async def all_of_it() -> None:
        await asyncio.gather(*(work() for work in works))

    return await _timed_ns(all_of_it) / 1e6


async def _timed_ns(work: Callable[[], Awaitable[object]]) -> int:
    started_ns = perf_counter_ns()
    await work()
    return perf_counter_ns() - started_ns
