"""What appends cost while many pages follow running runs, beside the same appends while nobody looks.

The pages are those of one server in a process of its own, as `tachograph serve` beside an agent, and are looked at from
another one. The kinds of rounds take turns within one run of this process, so that whatever else the machine does
weighs on all of them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns, process_time

from ledger import Ledger
from tests.bench.figure import Figure, figure
from tests.bench.serving import Served, serving
from tests.bench.watching import Watch, Watchers, never_at_rest
from tests.ledger.scripted import ScriptedRun

PAGES = 200
OTHER_RUNS = 20
"""Running runs to which nothing is appended meanwhile."""
APPENDS = 300
"""In a round, all to one run that is begun for it."""
NODES = 5
"""The run goes round and round, as agents do."""
PACE_S = 0.005
"""Between two appends: an agent waits for its models and tools most of the time."""
REST_S = 0.3
"""A round begins when the server has worked next to nothing for so long:"""
REST_SHARE = 0.05
"""less than this much of it, so that no round pays for what the one before has left to do."""
ROUNDS = 7
"""Of each kind."""
GOAL = 1.10


@dataclass(frozen=True, slots=True)
class Round:
    """For each append, in milliseconds."""

    p50_ms: float
    p99_ms: float
    writer_ms: float
    """What the processor worked in the process that appends,"""
    server_ms: float
    """and in that of the server."""
    passed_s: float


@dataclass(slots=True)
class Kind:
    """Who looks meanwhile, and what it came to."""

    name: str
    pages: int = PAGES
    is_of_the_run: bool = False
    is_drawn: bool = False
    drawn: int = 0
    rounds: list[Round] = field(default_factory=list)

    def __str__(self) -> str:
        if not self.is_drawn:
            return self.name
        return f"{self.name} ({self.drawn / sum(one.passed_s for one in self.rounds):.0f} times a second)"

    def median(self, what: str) -> float:
        """Of the rounds."""
        return median(getattr(one, what) for one in self.rounds)


async def measure(folder: Path) -> list[Figure]:
    """Rounds of each kind in turn; the pages come before a round and go after it."""
    alone, *watched = kinds = [
        Kind("nobody looks", pages=0),
        Kind(f"{PAGES} pages follow other runs"),
        Kind(f"{PAGES} pages follow the run", is_of_the_run=True),
        Kind(f"{PAGES} pages follow the run and are drawn anew", is_of_the_run=True, is_drawn=True),
    ]
    path = folder / "live.db"
    async with await Ledger.open(path) as ledger:
        others = [ScriptedRun(f"run-other-{number}", f"session-{number}") for number in range(OTHER_RUNS)]
        for run in others:
            await asyncio.wrap_future(ledger.journal.submit(run.start()))
        with serving(path) as served, never_at_rest():
            watchers = Watchers(served.port)
            for number in range(ROUNDS):
                for kind in kinds[:: 1 if number % 2 else -1]:
                    run = ScriptedRun(f"run-{kinds.index(kind)}-{number}", "session-watched")
                    await asyncio.wrap_future(ledger.journal.submit(run.start()))
                    await _round(ledger, run, kind, [run] if kind.is_of_the_run else others, served, watchers)
            watchers.end()
    return [row for kind in watched for row in _figures(kind, alone)]


async def _round(
    ledger: Ledger, run: ScriptedRun, kind: Kind, followed: list[ScriptedRun], served: Served, watchers: Watchers
) -> None:
    runs = [followed[number % len(followed)] for number in range(kind.pages)]
    await watchers.open([_watch(one, is_drawn=kind.is_drawn) for one in runs])
    await _rest(served)
    kind.rounds.append(await _appends(ledger, run, served))
    kind.drawn += await watchers.leave()
    await _rest(served)


async def _rest(served: Served) -> None:
    """Wait until the server has nothing to do any more."""
    worked_s = REST_S
    while worked_s > REST_SHARE * REST_S:
        before_s = served.processor_s()
        await asyncio.sleep(REST_S)
        worked_s = served.processor_s() - before_s


def _watch(run: ScriptedRun, *, is_drawn: bool) -> Watch:
    stream = f"/api/diagnosis/{run.session_id}/runs/{run.run_id}/live?from=now"
    return Watch(stream, f"/trace?sessionId={run.session_id}&runId={run.run_id}" if is_drawn else None)


def _figures(kind: Kind, alone: Kind) -> list[Figure]:
    name, reference = f"append while {kind}", "the same while nobody looks"
    of_writer = alone.median("writer_ms")
    return [
        figure(f"{name}, p50", "ms", kind.median("p50_ms"), reference, alone.median("p50_ms"), goal=GOAL),
        figure(f"{name}, p99", "ms", kind.median("p99_ms"), reference, alone.median("p99_ms")),
        figure(f"{name}, processor of the writer", "ms", kind.median("writer_ms"), reference, of_writer, goal=GOAL),
        figure(f"{name}, processor of the server", "ms", kind.median("server_ms"), "that of the writer", of_writer),
    ]


async def _appends(ledger: Ledger, run: ScriptedRun, served: Served) -> Round:
    made = [run.transition(f"n{number % NODES}") for number in range(APPENDS)]
    took_ns = []
    began_ns, before_s, server_before_s = perf_counter_ns(), process_time(), served.processor_s()
    for append in made:
        started_ns = perf_counter_ns()
        await asyncio.wrap_future(ledger.journal.submit(append))
        took_ns.append(perf_counter_ns() - started_ns)
        await asyncio.sleep(PACE_S)
    return Round(
        p50_ms=median(took_ns) / 1e6,
        p99_ms=quantiles(took_ns, n=100)[98] / 1e6,
        writer_ms=(process_time() - before_s) * 1e3 / APPENDS,
        server_ms=(served.processor_s() - server_before_s) * 1e3 / APPENDS,
        passed_s=(perf_counter_ns() - began_ns) / 1e9,
    )
