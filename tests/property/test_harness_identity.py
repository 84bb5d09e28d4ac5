"""The identity of a boundary is given by the calls, in whatever order the work is done (SPEC D7)."""

import asyncio
import random
from collections.abc import Awaitable
from hashlib import sha256
from typing import Any

from harness import Capture, CapturePolicy, Harness, RunContext, ToolCall
from tests.harness.fakes import HandJournal, each, harness_over, limits

SCHEDULES = 200

Identity = dict[str, str]
"""The boundary of each attempt, and the digest of what it was given."""


class Scheduler:
    """Lets one thing go on at a time: work that waits at a gate, or the oldest append of the journal."""

    def __init__(self, seed: int, journal: HandJournal) -> None:
        self._chance = random.Random(seed)
        self._journal = journal
        self._gates: list[asyncio.Future[None]] = []
        journal.holds = True

    async def gate(self) -> None:
        """Wait for one's turn."""
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gates.append(gate)
        await gate

    async def drive(self, work: asyncio.Task[None]) -> None:
        """Choose who goes on until the work is done, each time after everybody else has come to a stop."""
        while not work.done():
            await self._settle()
            choices = len(self._gates) + bool(self._journal.waiting)
            if choices == 0:
                continue
            chosen = self._chance.randrange(choices)
            if chosen < len(self._gates):
                self._gates.pop(chosen).set_result(None)
            else:
                self._journal.store()
        await work

    async def _settle(self) -> None:
        """Until nothing more is ready: a turn of the loop takes whatever the last one made ready."""
        seen = (-1, -1)
        while seen != (seen := (len(self._gates), len(self._journal.submissions))):
            for _ in range(10):
                await asyncio.sleep(0)


async def agent(harness: Harness, run: RunContext, scheduler: Scheduler) -> None:
    """Three branches with calls and batches in them, side by side with a batch whose calls go on by themselves."""

    async def tool(run: RunContext, n: int, deep: bool = False) -> int:
        await scheduler.gate()
        if deep:
            await harness.tool(run, "inner", tool, args={"n": n + 1})
            await harness.tools(run, [call(n + 2), call(n + 3)])
        await scheduler.gate()
        return n

    def call(n: int, *, deep: bool = False) -> ToolCall:
        return ToolCall(tool, {"n": n, "deep": deep}, name="look", call_id="call_0")

    async def branch(run: RunContext, n: int) -> None:
        await scheduler.gate()
        await harness.model(run, "planner", tool, args={"n": n})
        await harness.tools(run, [call(n + 1), call(n + 2, deep=True), call(n + 3)])
        await harness.tool(run, "look", tool, args={"n": n + 4})
        await harness.tool(run, "look", tool, args={"n": n + 5})

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(branch(run.branch(f"b{number}"), 100 * (number + 1)))
        # The calls give the ordinals, here, and not the awaiting, somewhere else.
        for batch in (harness.tools(run, [call(1), call(2, deep=True)]), harness.tools(run, [call(3)])):
            group.create_task(awaited(scheduler, batch))


async def awaited(scheduler: Scheduler, work: Awaitable[Any]) -> None:
    await scheduler.gate()
    await work


async def under(seed: int) -> tuple[Identity, tuple[str, ...]]:
    """Who is who under one schedule, and the order in which they started."""
    journal = HandJournal()
    scheduler = Scheduler(seed, journal)
    harness = harness_over(journal, capture=CapturePolicy(model_input=Capture.FULL))

    async def work() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await agent(harness, run, scheduler)

    await scheduler.drive(asyncio.create_task(work()))
    started = each(journal.events("r"), "attempt.started")
    # The recorded digest is salted, and salts are drawn in the order of the work.
    given = {event.boundary: sha256(journal.contents[event.input_digest].data or b"").hexdigest() for event in started}
    assert len(given) == len(started)
    return given, tuple(event.boundary for event in started)


async def test_two_hundred_schedules_of_branches_and_batches_give_one_identity_map():  # D7
    expected, _ = await under(0)
    orders = set()
    for seed in range(SCHEDULES):
        identity, order = await under(seed)
        assert identity == expected, f"schedule {seed}"
        orders.add(order)
    assert len(expected) == 3 * (1 + 3 + 3 + 2) + 2 + 3 + 1
    assert len(orders) > SCHEDULES * 0.9
