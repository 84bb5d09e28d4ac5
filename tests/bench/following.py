"""How soon a follower sees what was acknowledged, beside plain polling; and what the public order costs appends."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns

import asyncpg
import psutil

from ledger import Ledger, LedgerReader
from ledger.store.postgres.sequencing import REST_S, Sequencer
from ledger.store.tail import POLL_S
from tests.bench.figure import Figure, figure
from tests.bench.postgres import append_each, boundary_of
from tests.ledger.scripted import ScriptedRun
from tests.servers.postgres import PostgresServer

EVENTS = 200
PAUSE_MAX_S = 0.03
SIGHT_AT_MOST_MS = 100.0
"""SPEC E8, by what an event is seen after its acknowledgement."""
ROUNDS = 10
RUNS = 50
BOUNDARIES = 10
SEQUENCING_GOAL = 1.05


async def measure(folder: Path) -> list[Figure]:
    """On SQLite where the follower lives with the writer and where it does not, and on PostgreSQL."""
    path = folder / "following.db"
    async with await Ledger.open(path) as ledger, await LedgerReader.open(path) as reader:
        polled = await _seen_ms(ledger, _polling(reader))
        figures = _figures("in the writer's process", await _seen_ms(ledger, _following(ledger.reader)), polled)
        figures += _figures("from outside", await _seen_ms(ledger, _following(reader)), polled)
    server = await asyncio.to_thread(lambda: PostgresServer().start())
    try:
        url = server.url(await asyncio.to_thread(server.create_database))
        async with await Ledger.open(url) as ledger, await LedgerReader.open(url) as reader:
            polled = await _seen_ms(ledger, _polling(reader))
            figures += _figures("on PostgreSQL", await _seen_ms(ledger, _following(reader)), polled)
        return [*figures, *await _sequencing(server)]
    finally:
        await asyncio.to_thread(server.stop)


def _figures(where: str, seen_ms: list[float], polled_ms: list[float]) -> list[Figure]:
    reference = f"plain polling every {POLL_S * 1000:.0f} ms"
    return [
        figure(f"acknowledged until seen {where}, p50", "ms", median(seen_ms), reference, median(polled_ms)),
        figure(
            f"acknowledged until seen {where}, p99",
            "ms",
            quantiles(seen_ms, n=100)[98],
            reference,
            quantiles(polled_ms, n=100)[98],
            at_most=SIGHT_AT_MOST_MS,
        ),
    ]


async def _following(reader: LedgerReader) -> AsyncIterator[int]:
    follower = reader.follow(await reader.last_leaf())
    while True:
        page = await follower.page()
        yield len(page)


async def _polling(reader: LedgerReader) -> AsyncIterator[int]:
    """What anybody could do: ask again and again."""
    last = await reader.last_leaf()
    while True:
        await asyncio.sleep(POLL_S)
        now = await reader.last_leaf()
        if now > last:
            yield now - last
            last = now


async def _seen_ms(ledger: Ledger, counts: AsyncIterator[int]) -> list[float]:
    """For each of some events that come at odd moments, how long after its acknowledgement it is seen."""
    run = ScriptedRun(f"run-{random.getrandbits(64)}")
    await asyncio.wrap_future(ledger.journal.submit(run.start()))
    await asyncio.sleep(0.3)
    acknowledged_ns: list[int] = []
    seen_ns: list[int] = []

    async def see() -> None:
        async for count in counts:
            seen_ns.extend([perf_counter_ns()] * count)

    seeing = asyncio.ensure_future(see())
    await asyncio.sleep(0.3)
    for number in range(EVENTS):
        await asyncio.wrap_future(ledger.journal.submit(run.transition(f"n{number}")))
        acknowledged_ns.append(perf_counter_ns())
        await asyncio.sleep(random.uniform(0, PAUSE_MAX_S))
    while len(seen_ns) < EVENTS:
        await asyncio.sleep(0.01)
    seeing.cancel()
    await asyncio.wait([seeing])
    return [max(0, seen - known) / 1e6 for seen, known in zip(seen_ns, acknowledged_ns, strict=True)]


async def _sequencing(server: PostgresServer) -> list[Figure]:
    """Many runs at once, round by round with a sequencer, and without it and the index it needs.

    The processor's time is told beside what passes, which on a busy machine says more of the others.
    """
    with_ms: list[tuple[float, float]] = []
    without_ms: list[tuple[float, float]] = []
    async with _ledger(server) as sequenced, _ledger(server, is_sequenced=False) as plain:
        for round_no in range(ROUNDS):
            for ledger, results in ((sequenced, with_ms), (plain, without_ms))[:: 1 if round_no % 2 else -1]:
                results.append(await _append_ms(ledger, round_no))
    name = f"boundary among {RUNS} runs on PostgreSQL while it is sequenced"
    reference = "the same without a public order"
    passed, used = ([median(each[kind] for each in both) for both in (with_ms, without_ms)] for kind in (0, 1))
    return [
        figure(name, "ms", passed[0], reference, passed[1], goal=SEQUENCING_GOAL),
        figure(f"{name}, processor", "ms", used[0], reference, used[1], goal=SEQUENCING_GOAL),
    ]


@asynccontextmanager
async def _ledger(server: PostgresServer, *, is_sequenced: bool = True) -> AsyncIterator[Ledger]:
    url = server.url(await asyncio.to_thread(server.create_database))
    start = Sequencer.start
    try:
        if not is_sequenced:
            Sequencer.start = _do_nothing  # type: ignore[method-assign, assignment]
        ledger = await Ledger.open(url)
    finally:
        Sequencer.start = start  # type: ignore[method-assign]
    if not is_sequenced:
        connection = await asyncpg.connect(url)
        await connection.execute("DROP INDEX event_xid")
        await connection.close()
    async with ledger:
        yield ledger


def _do_nothing(_: Sequencer) -> None:
    """Instead of sequencing."""


async def _append_ms(ledger: Ledger, round_no: int) -> tuple[float, float]:
    """Milliseconds for each boundary that pass, and those that processors work for it here and in the server."""
    runs = [ScriptedRun(f"run-{round_no}-{number}", f"session-{number}") for number in range(RUNS)]
    await asyncio.gather(*(asyncio.wrap_future(ledger.journal.submit(run.start())) for run in runs))
    made = [[boundary_of(run) for _ in range(BOUNDARIES)] for run in runs]
    used_s, started_ns = _processor_s(), perf_counter_ns()
    await asyncio.gather(*(append_each(ledger, boundaries) for boundaries in made))
    passed_ms = (perf_counter_ns() - started_ns) / 1e6
    await asyncio.sleep(2 * REST_S)
    return passed_ms / (RUNS * BOUNDARIES), (_processor_s() - used_s) * 1e3 / (RUNS * BOUNDARIES)


def _processor_s() -> float:
    """Of this process and all that it has started and that still run."""
    total_s = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total_s += sum(process.cpu_times()[:2])
    return total_s
