"""The trace of a small run over HTTP: how many a second from one server, and how long its page takes.

Beside the same reads from the reader itself, in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter_ns, process_time

from harness import Harness
from ledger import Ledger, LedgerReader
from tests.bench.figure import Figure, figure, median_ms
from tests.bench.serving import Connection, Served, serving
from tests.bench.workload import run_of
from viewer.proof import Proofs
from viewer.reading.replays import Replays
from viewer.reading.run import Asked, read_run

EVENTS = 20
SESSION = "bench"
REPEATS = 150
WARM_UP = 40
CLIENTS = 8
AT_ONCE = 1_000
"""Requests of a round, or reads."""
ROUNDS = 5
"""Of which the least disturbed counts."""
EACH_AT_MOST_MS = 1_000 / 400
"""So that there are 400 a second."""
OVER_QUERY_AT_MOST_MS = 5.0

Work = Callable[[], Awaitable[object]]


async def measure(folder: Path) -> list[Figure]:
    """One connection at a time for how long it takes, several for how many a second."""
    path = folder / "requests.db"
    async with await Ledger.open(path) as ledger:
        run_id = await run_of(Harness(ledger.journal), SESSION, events=EVENTS)
    api, page = f"/api/diagnosis/{SESSION}/trace?runId={run_id}", f"/trace?sessionId={SESSION}&runId={run_id}"
    async with await LedgerReader.open(path) as reader:
        with serving(path) as served:
            connection = await Connection.open(served.port)
            proofs, replays = Proofs(reader), Replays(reader)

            async def read_page() -> None:
                reading = await read_run(reader, replays, Asked(SESSION, run_id, lists_events=False))
                await proofs.of(reading.whole, reading.events)
                await reader.related(SESSION, run_id)

            page_ms, read_ms = await _in_turns(lambda: connection.get(page), read_page)
            trace_ms, query_ms = await _in_turns(lambda: connection.get(api), lambda: reader.trace(SESSION, run_id))
            await connection.close()
            figures = await _rates(served, api, lambda: reader.trace(SESSION, run_id))
    name = f"trace of a run of {EVENTS} events"
    return [
        _over(f"page of the {name}", page_ms, "the same reads from the reader", read_ms),
        _over(f"{name} over HTTP", trace_ms, "the same from the reader", query_ms),
        *figures,
    ]


def _over(name: str, took_ms: float, reference: str, reference_ms: float) -> Figure:
    at_most_ms = reference_ms + OVER_QUERY_AT_MOST_MS
    return figure(f"{name}, p50", "ms", took_ms, reference, reference_ms, at_most=round(at_most_ms, 1))


async def _in_turns(one: Work, other: Work) -> tuple[float, float]:
    """The medians of both, in milliseconds."""
    took_ns: tuple[list[int], list[int]] = ([], [])
    for _ in range(WARM_UP + REPEATS):
        for work, took in zip((one, other), took_ns, strict=True):
            started_ns = perf_counter_ns()
            await work()
            took.append(perf_counter_ns() - started_ns)
    return median_ms(took_ns[0][WARM_UP:]), median_ms(took_ns[1][WARM_UP:])


async def _rates(served: Served, path: str, read: Work) -> list[Figure]:
    """Several connections, each with one request after the other; and as many readers."""
    connections = [await Connection.open(served.port) for _ in range(CLIENTS)]
    answered_ms, server_ms, client_ms, read_ms = [], [], [], []
    for _ in range(ROUNDS):
        before_s, own_before_s = served.processor_s(), process_time()
        answered_ms.append(await _each_ms([partial(each.get, path) for each in connections]))
        server_ms.append((served.processor_s() - before_s) * 1e3 / AT_ONCE)
        client_ms.append((process_time() - own_before_s) * 1e3 / AT_ONCE)
        read_ms.append(await _each_ms([read] * CLIENTS))
    for connection in connections:
        await connection.close()
    name, reference = f"each of many traces of {EVENTS} events", "the same from the reader, as many at once"
    answered, worked, asked, own = map(min, (answered_ms, server_ms, client_ms, read_ms))
    return [
        figure(f"{name} over HTTP", "ms", answered, reference, own, at_most=EACH_AT_MOST_MS),
        figure(f"{name}, processor", "ms", worked, "the client that asks", asked),
    ]


async def _each_ms(workers: Sequence[Work]) -> float:
    """What one takes where each of these does its share."""
    share = AT_ONCE // len(workers)

    async def repeat(work: Work) -> None:
        for _ in range(share):
            await work()

    started_ns = perf_counter_ns()
    await asyncio.gather(*map(repeat, workers))
    return (perf_counter_ns() - started_ns) / 1e6 / (share * len(workers))
