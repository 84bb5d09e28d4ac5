"""One round: processes work on one ledger, are killed at any moment, and then everything must hold."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from harness.errors import HarnessError
from ledger import Ledger, LedgerError
from ledger.verifying import verify
from tests.faults import programs
from tests.faults.processes import Program, start

WRITERS = 3
LIFE_S = 1.5
"""How long a process lives at most."""
START_TIMEOUT_S = 30.0
LEASE_S = 0.5
"""Nobody who is looked at lives any more."""
PAGE = 5_000

Acknowledged = list[tuple[int, bytes]]
"""Sequence numbers with their links."""


@dataclass
class Tally:
    """What was seen so far."""

    rounds: int = 0
    processes_killed: int = 0
    servers_killed: int = 0
    events_acknowledged: int = 0
    events_verified: int = 0
    runs_ended_by_recovery: int = 0
    erasures_finished: int = 0
    slowest_recovery_s: float = 0.0
    problems: list[str] = field(default_factory=list)


class Worker:
    """A process, and all that it said before it was killed."""

    def __init__(self, program: Callable[..., Any], *args: object) -> None:
        self.program: Program = start(_while_it_goes, program, *args)
        self.said: list[Any] = []
        self._has_spoken = threading.Event()
        self._listener = threading.Thread(target=self._listen, args=(self.program.pipe,))
        self._listener.start()

    def begun(self) -> None:
        """Wait until it is at work."""
        self._has_spoken.wait(START_TIMEOUT_S)

    def kill(self) -> None:
        self.program.process.kill()
        self.program.process.join()
        self._listener.join()

    def _listen(self, pipe: Connection) -> None:
        try:
            while True:
                self.said.append(pipe.recv())
                self._has_spoken.set()
        except (EOFError, OSError):
            self._has_spoken.set()
            pipe.close()


async def _while_it_goes(pipe: Connection, program: Callable[..., Any], *args: object) -> None:
    """The program, until the server under it is killed."""
    logging.disable()  # it is told what happens to it again and again
    with contextlib.suppress(LedgerError, HarnessError):
        await program(pipe, *args)


async def play(url: str, tally: Tally, chance: random.Random, kill_server: Callable[[], None] | None = None) -> None:
    """Let them work, kill them, and look; `kill_server` kills the server, and starts it again."""
    tally.rounds += 1
    run_ids = [f"run-{tally.rounds}-{number}" for number in range(WRITERS)]
    writers = {run_id: Worker(programs.append, url, run_id) for run_id in run_ids}
    keeper = Worker(programs.keep_house, url, chance.random())
    for worker in (*writers.values(), keeper):
        worker.begun()
    if kill_server is not None and chance.random() < 0.5:
        time.sleep(chance.random() * LIFE_S)
        tally.servers_killed += 1
        kill_server()
    for worker in chance.sample([*writers.values(), keeper], WRITERS + 1):
        time.sleep(chance.random() * LIFE_S / WRITERS)
        worker.kill()
    tally.processes_killed += WRITERS + 1
    await _check(url, tally, {run_id: worker.said for run_id, worker in writers.items()})


async def _check(url: str, tally: Tally, acknowledged: dict[str, Acknowledged]) -> None:
    began_s = time.perf_counter()
    async with await Ledger.open(url, lease_s=LEASE_S) as ledger:
        await ledger.recover()
        tally.slowest_recovery_s = max(tally.slowest_recovery_s, time.perf_counter() - began_s)
        if (await ledger.recover()).ended:
            tally.problems.append(f"round {tally.rounds}: a run was ended twice")
        for run_id, said in acknowledged.items():
            if not said:
                continue
            tally.events_acknowledged += len(said)
            links = await _links(ledger, run_id)
            if any(links[seq] != link.hex() for seq, link in said):
                tally.problems.append(f"round {tally.rounds}: {run_id} has lost what was acknowledged")
            trace = await ledger.reader.overview("session-1", run_id)
            tally.runs_ended_by_recovery += trace.run.outcome_reason == "HARNESS_LOST"
            if trace.run.summary.status == "RUNNING":
                tally.problems.append(f"round {tally.rounds}: {run_id} was not ended")
        finished, *_ = await ledger.finish_erasures()
        tally.erasures_finished += finished
        if not (await ledger.rebuild()).is_clean:
            tally.problems.append(f"round {tally.rounds}: a rebuild found rows that were wrong")
    report = await verify(url)
    tally.events_verified = report.event_count
    tally.problems += [f"round {tally.rounds}: {finding}" for finding in report.findings]


async def _links(ledger: Ledger, run_id: str) -> dict[int, str]:
    links: dict[int, str] = {}
    while page := await ledger.reader.events("session-1", run_id, len(links), PAGE):
        links |= {event.seq: event.link for event in page}
    return links
