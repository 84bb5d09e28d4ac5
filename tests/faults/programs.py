"""Programs that use a ledger and are then treated badly; each runs in a process of its own."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness import Harness, Limits, Run, RunEnded
from harness.journal import Submission
from ledger import Ledger, LedgerError, LedgerReader, Signing, WriterLimits, failpoints
from ledger.audit.notes.notes import SigningKey
from ledger.copies.backup import restore
from ledger.erasing.erasures import ErasureList
from tests.ledger.scripted import ScriptedRun

NOBODY = 65534
ENDLESS = {"model_calls": 10**9, "tool_calls": 10**9, "run_bytes": 10**12}
KEY = SigningKey("log.example/1", bytes(32))


async def append(pipe: Connection, path: str, run_id: str) -> None:
    """Cross boundaries for ever, and say which are acknowledged, with the link that vouches for them."""
    async with await Ledger.open(path) as ledger:
        run = ScriptedRun(run_id, writer_id=f"w-{run_id}")
        first = ledger.journal.submit(run.start(limits=ENDLESS)).result()
        pipe.send((first.last_seq, first.head_link))
        ledger.journal.submit(run.transition("planner"))
        while True:
            tool = run.attempt()
            started = ledger.journal.submit(tool.start(f"input {run.events_made}")).result()
            pipe.send((started.last_seq, started.head_link))
            ledger.journal.submit(tool.succeed("x" * 2_000))


async def die_at(pipe: Connection, path: str, point: failpoints.Point, times: int) -> None:
    """Do everything that a ledger can do, and die when the point is reached for the so manieth time."""
    _arm_death(point, times)
    async with await Ledger.open(path, limits=WriterLimits(rest_after_s=0.02), signing=signing_of(path)) as ledger:
        for number in range(3):
            run = ScriptedRun(f"run-{number}", f"session-{number % 2}", writer_id=f"w{number}")
            submissions = [run.start(), run.transition("planner")]
            for _ in range(5):
                tool = run.attempt()
                submissions += [tool.start(f"words of {run.run_id}"), tool.succeed("x" * 500)]
            for submission in submissions:
                recorded = ledger.journal.submit(submission).result()
                pipe.send((run.run_id, recorded.last_seq, recorded.head_link))
        await ledger.record_feedback("session-0", "run-0", useful=True, comment="thanks")
        await ledger.rebuild()
        await asyncio.sleep(0.1)  # nothing is to do, and so a checkpoint is
        await ledger.erase(session="session-1")
    pipe.send("closed")


async def append_and_die(pipe: Connection, url: str, run_id: str, point: failpoints.Point, times: int) -> None:
    """Append to a run, and die when the point is reached for the so manieth time."""
    _arm_death(point, times)
    async with await Ledger.open(url, lease_s=0.5) as ledger:
        for submission in start_and_transitions(run_id, times):
            pipe.send(ledger.journal.submit(submission).result())


async def sign_and_die(pipe: Connection, url: str, place: str, point: failpoints.Point, times: int) -> None:
    """Append and sign again and again, and die when the point is reached for the so manieth time."""
    _arm_death(point, times)
    async with await Ledger.open(url, signing=signing_of(place)) as ledger:
        for number in range(10):
            run = ScriptedRun(f"{point.replace(' ', '-')}-{number}", writer_id=f"w-{point.replace(' ', '-')}-{number}")
            ledger.journal.submit(run.start()).result()
            pipe.send((await ledger.checkpoint()).note)


async def restore_and_die(pipe: Connection, backup: str, target: str, erasures: str, point: failpoints.Point) -> None:
    """Restore a ledger, and die when the point is reached."""
    _arm_death(point, 1)
    await restore(backup, Path(target), erasures=ErasureList(Path(erasures)))


def signing_of(path: str | Path) -> Signing:
    """How that ledger's checkpoints are signed, with an anchor beside its folder."""
    return Signing(key=KEY, anchor=Path(path).parent.with_suffix(".anchor"))


def start_and_transitions(run_id: str, count: int) -> list[Submission]:
    """So many submissions of a run, the same each time."""
    run = ScriptedRun(run_id, writer_id=f"w-{run_id}")
    return [run.start(), *(run.transition(f"n{number}") for number in range(count - 1))]


def _arm_death(point: failpoints.Point, times: int) -> None:
    reached = 0

    def die() -> None:
        nonlocal reached
        reached += 1
        if reached == times:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.arm(point, die)


async def keep_house(pipe: Connection, path: str, seed: float) -> None:
    """Rebuild, recover, erase and follow for ever, in whatever order, beside those who append."""
    chance = random.Random(seed)
    async with await Ledger.open(path) as ledger:
        pipe.send("open")
        while True:
            await asyncio.sleep(chance.random() * 0.05)
            match chance.randrange(4):
                case 0:
                    await ledger.rebuild()
                case 1:
                    await ledger.recover()
                case 2:
                    await ledger.open_session("session-1")
                    await ledger.erase(session="session-1")
                case 3:
                    await ledger.reader.follow().page()


async def erase(pipe: Connection, path: str, session_id: str) -> None:
    """Erase a session, run after run, until it is gone from the file."""
    async with await Ledger.open(path) as ledger:
        pipe.send("ready")
        pipe.recv()
        await ledger.erase(session=session_id, on_progress=pipe.send)
        pipe.send("erased")


async def race(pipe: Connection, path: str, name: str, boundaries: int) -> None:
    """Cross some boundaries beside other processes, and say how long the slowest took."""
    async with await Ledger.open(path) as ledger:
        pipe.send("ready")
        pipe.recv()
        slowest_s = 0.0
        run = ScriptedRun(f"run-{name}", writer_id=f"w-{name}")
        ledger.journal.submit(run.start()).result()
        for _ in range(boundaries):
            tool = run.attempt()
            began_s = time.perf_counter()
            ledger.journal.submit(tool.start()).result()
            slowest_s = max(slowest_s, time.perf_counter() - began_s)
            ledger.journal.submit(tool.succeed())
        ledger.journal.submit(run.end()).result()
        pipe.send(slowest_s)


async def tell_times(pipe: Connection, path: str, count: int) -> None:
    """Record some events at leisure, and say when each was acknowledged."""
    async with await Ledger.open(path) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        pipe.send("ready")
        pipe.recv()
        acknowledged: dict[int, float] = {}
        for number in range(count):
            seq = ledger.journal.submit(run.transition(f"n{number}")).result().last_seq
            acknowledged[seq] = time.monotonic()
            await asyncio.sleep(0.02)
        pipe.send(acknowledged)


async def work_until_told(pipe: Connection, url: str, run_id: str) -> None:
    """Call a model that takes for ever, and say how the run ended."""
    limits = Limits(
        model_calls=5, tool_calls=5, per_tool_default=5, input_tokens=9, output_tokens=9, total_tokens=9, run_bytes=999
    )

    async def slow(run: Run) -> None:
        pipe.send("working")
        await asyncio.sleep(600)

    async with await Ledger.open(url, lease_s=1.0) as ledger:
        harness = Harness(ledger.journal)
        try:
            async with harness.run(session_id="session-1", run_id=run_id, limits=limits, timeout_s=600) as run:
                await harness.model(run, "planner", slow)
        except RunEnded as error:
            pipe.send(error.outcome)


async def apply_until_killed(pipe: Connection, url: str, stop_at: int) -> None:
    """Apply events to a table of its own, and stand still between applying some and storing the place."""

    def apply_there(connection: Any, events: list[Any]) -> None:
        connection.executemany("INSERT INTO applied VALUES (?)", [(place,) for place, _ in events])
        if events[-1][0] >= stop_at:
            pipe.send("applied")
            time.sleep(600)

    async def apply_in_database(connection: Any, events: list[Any]) -> None:
        await connection.executemany("INSERT INTO applied VALUES ($1)", [(place,) for place, _ in events])
        if events[-1][0] >= stop_at:
            pipe.send("applied")
            time.sleep(600)

    async with await Ledger.open(url) as ledger:
        await ledger.followers.apply("copy", apply_in_database if url.startswith("postgresql:") else apply_there)


async def deliver_until_killed(pipe: Connection, url: str, stop_at: int) -> None:
    """Send events elsewhere, and stand still between sending some and storing the place."""

    async def send(events: list[Any]) -> None:
        pipe.send([place for place, _ in events])
        if events[-1][0] >= stop_at:
            time.sleep(600)

    async with await Ledger.open(url) as ledger:
        await ledger.followers.deliver("export", send)


async def open_once(pipe: Connection, path: str) -> None:
    """Open a ledger at the same time as others do."""
    pipe.send("ready")
    pipe.recv()
    async with await Ledger.open(path) as ledger:
        await ledger.open_session("session-1")
    pipe.send("opened")


async def fork(pipe: Connection, path: str) -> None:
    """Fork while the ledger is open: the child can do nothing with it, and its end does the parent no harm."""
    ledger = await Ledger.open(path)
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    # A loop does not survive a fork, so the child gets a thread that has none.
    pipe.send(("child", await asyncio.to_thread(fork_and_wait, ledger, run)))
    async with await Ledger.open(path) as other:
        pipe.send(("recovered", list((await other.recover()).ended)))
    pipe.send(("next", ledger.journal.submit(run.transition("executor")).result().first_seq))
    await ledger.close()


def fork_and_wait(ledger: Ledger, run: ScriptedRun) -> int:
    """The exit code of a child that tries to use the ledger, and to close it."""
    child = os.fork()
    if child != 0:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    futures = (ledger.journal.submit(run.transition("planner")), ledger.journal.request_permit(1.0))
    refused = all("forked" in str(future.exception(5)) for future in futures)
    ledger.journal.close()
    os._exit(0 if refused else 3)


async def read_as_guest(pipe: Connection, other_path: str, path: str) -> None:
    """Read as somebody who may not write there, which to the superuser does not apply."""
    async with await LedgerReader.open(other_path) as reader:
        await reader.recent_runs()  # imports all that reading needs, perhaps from where only the superuser may read
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    async with await LedgerReader.open(path) as reader:
        pipe.send([run.status for run in (await reader.recent_runs()).rows])


async def open_as_guest(pipe: Connection, other_path: str, path: str) -> None:
    """Try to open a ledger that somebody else may write, and only they."""
    async with await Ledger.open(other_path) as ledger:
        await ledger.reader.recent_runs()  # imports all that a ledger needs
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    try:
        await Ledger.open(path)
    except LedgerError as error:
        pipe.send((error.code, str(error)))


async def leave(path: str, how: str) -> None:
    """End without closing anything, with submissions still under way."""
    ledger = await Ledger.open(path, signing=signing_of(path))
    await ledger.reader.recent_runs()
    run = ScriptedRun()
    for submission in (run.start(), *(run.transition(f"n{number}") for number in range(200))):
        ledger.journal.submit(submission)
    if how == "raise":
        raise RuntimeError("on purpose")


def run(program: Callable[..., Any], *args: object) -> None:
    asyncio.run(program(*args))


if __name__ == "__main__":
    run(leave, *sys.argv[1:])
