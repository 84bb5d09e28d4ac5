"""Programs that use a ledger and are then treated badly; each is run as a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from ledger import Ledger
from tests.ledger.scripted import ScriptedRun


def say(*words: object) -> None:
    print(*words, flush=True)


async def append(path: str, run_id: str) -> None:
    """Cross boundaries for ever, and say which are acknowledged, with the link that vouches for them."""
    async with await Ledger.open(path) as ledger:
        run = ScriptedRun(run_id, writer_id=f"w-{run_id}")
        first = ledger.journal.submit(run.start()).result()
        say("acknowledged", first.last_seq, first.head_link.hex())
        ledger.journal.submit(run.transition("planner"))
        while True:
            tool = run.attempt()
            started = ledger.journal.submit(tool.start(f"input {run.events_made}")).result()
            say("acknowledged", started.last_seq, started.head_link.hex())
            ledger.journal.submit(tool.succeed("x" * 2_000))


async def race(path: str, name: str, boundaries: str) -> None:
    """Cross some boundaries beside other processes, and say how long the slowest took."""
    async with await Ledger.open(path) as ledger:
        say("ready")
        sys.stdin.readline()
        slowest_s = 0.0
        run = ScriptedRun(f"run-{name}", writer_id=f"w-{name}")
        ledger.journal.submit(run.start()).result()
        for _ in range(int(boundaries)):
            tool = run.attempt()
            began_s = time.perf_counter()
            ledger.journal.submit(tool.start()).result()
            slowest_s = max(slowest_s, time.perf_counter() - began_s)
            ledger.journal.submit(tool.succeed())
        ledger.journal.submit(run.end()).result()
        say("slowest", slowest_s)


async def leave(path: str, how: str) -> None:
    """End without closing anything, with submissions still under way."""
    ledger = await Ledger.open(path)
    await ledger.reader.recent_runs()
    run = ScriptedRun()
    for submission in (run.start(), *(run.transition(f"n{number}") for number in range(200))):
        ledger.journal.submit(submission)
    if how == "exit":
        sys.exit(0)
    if how == "raise":
        raise RuntimeError("on purpose")


async def fork(path: str) -> None:
    """Fork while the ledger is open: the child can do nothing with it, and its end does the parent no harm."""
    ledger = await Ledger.open(path)
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    # A loop does not survive a fork, so the child gets a thread that has none.
    say("child", await asyncio.to_thread(fork_and_wait, ledger, run))
    async with await Ledger.open(path) as other:
        say("recovered", len(await other.recover()))
    say("next", ledger.journal.submit(run.transition("executor")).result().first_seq)
    await ledger.close()


def fork_and_wait(ledger: Ledger, run: ScriptedRun) -> int:
    """The exit code of a child that tries to use the ledger, and then ends as any program does."""
    child = os.fork()
    if child != 0:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    futures = (ledger.journal.submit(run.transition("planner")), ledger.journal.request_permit(1.0))
    refused = all("forked" in str(future.exception(5)) for future in futures)
    ledger.journal.close()
    os._exit(0 if refused else 3)


PROGRAMS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "append": append,
    "race": race,
    "leave": leave,
    "fork": fork,
}

if __name__ == "__main__":
    asyncio.run(PROGRAMS[sys.argv[1]](*sys.argv[2:]))
