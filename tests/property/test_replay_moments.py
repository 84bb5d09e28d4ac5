"""At whatever moment a run is told to stop, executing it again comes to the same (SPEC D7, H2, H3).

The runs are recorded in virtual time, in which something may come between any two looks at the clock: so between a
start and its record, its operation and its end, that and what the code does next.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

import pytest

from harness import CancelReason, Harness, OperationKind, RunContext, ScopeExhausted, ToolCall
from harness import events as e
from harness.journal import Submission
from harness.replay import Recording
from tests.harness.fakes import CountingIds, on_thread
from tests.harness.replays import again, opened
from tests.harness.virtual_time import LOOK_NS, LaterJournal, LaterThreads, VirtualClock, VirtualLoop

PAUSES_S = (0.0, 0.001, 0.002, 0.004)
PLENTY_S = 60.0
QUIET_S = 0.001
"""Nothing outside of the loop can wake it."""


@dataclass(frozen=True)
class Moment:
    """When a run is told to stop, and how: by its deadline, or after it has recorded something."""

    timeout_s: float = PLENTY_S
    submission: int = 0
    is_task_cancelled: bool = False


class Agent:
    """Crosses boundaries of every kind, in branches that work side by side."""

    def __init__(self, seed: int, branches: int, moment: Moment) -> None:
        self.chance = random.Random(seed)
        self.scope_s = self.chance.choice([0.002, 0.006, PLENTY_S])
        self.own_s = self.chance.choice([0.001, 0.003, PLENTY_S])
        self.branches = branches
        self.moment = moment
        self.run: RunContext | None = None
        self.task: asyncio.Task[object] | None = None

    def pause_s(self) -> float:
        return self.chance.choice(PAUSES_S)

    async def look(self, run: RunContext, n: int) -> int:
        await asyncio.sleep(self.pause_s())
        if n % 4 == 3:
            raise ConnectionError("gone")
        return n + 1

    async def ask(self, run: RunContext, n: int) -> int:
        assert run.sent is not None
        run.sent.add(ends_run=True)
        return await self.look(run, 4 * n)

    def on_thread(self, run: RunContext, n: int) -> int:
        return n * 2

    async def deep(self, run: RunContext, n: int) -> int:
        self.harness.transition(run, None, "inner")
        return await self.harness.tool(run, "look", self.look, args={"n": 4 * n})

    async def words(self, run: RunContext) -> AsyncIterator[str]:
        for word in ("a", "b"):
            await asyncio.sleep(self.pause_s())
            yield word

    async def branch(self, run: RunContext, n: int) -> int:
        harness = self.harness
        n = await harness.model(run, "ask", self.ask, args={"n": n})
        harness.transition(run, None, f"step.{n % 5}")
        results = await harness.tools(run, [ToolCall(self.look, {"n": n + k}) for k in range(3)])
        n = await harness.model(run, "double", self.on_thread, args={"n": n + sum(each.value or 0 for each in results)})
        try:
            n = await harness.model(run, "route", self.look, args={"n": n | 3}, kind=OperationKind.INTENT_ROUTER)
        except ConnectionError:
            harness.transition(run, None, "repair")
        with contextlib.suppress(ScopeExhausted), harness.scope(run, "narrow", timeout_s=self.scope_s) as narrow:
            n = await harness.model(narrow, "ask", self.ask, args={"n": n})
            n = await harness.tool(narrow, "double", self.on_thread, args={"n": n})
        async for word in harness.stream(run, "words", self.words):
            n += len(word)
        with contextlib.suppress(TimeoutError):
            n = await harness.tool(run, "double", self.on_thread, args={"n": n}, timeout_s=self.own_s)
        return await harness.tool(run, "deep", self.deep, args={"n": n})

    async def __call__(self, harness: Harness) -> None:
        self.harness, self.task = harness, asyncio.current_task()
        async with opened(harness, timeout_s=self.moment.timeout_s) as run:
            self.run = run
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.branch(run.branch(f"b{k}"), 10 * k)) for k in range(self.branches)]
            harness.answer(run, str(sum(task.result() for task in tasks)))

    def stop(self) -> None:
        """As somebody else does it, from a thread of his own."""
        run, task = self.run, self.task
        assert run is not None
        assert task is not None
        if self.moment.is_task_cancelled:
            run.live.lock.put_off(task.cancel)
        else:
            run.live.lock.put_off(lambda: on_thread(lambda: run.cancellation.signal(CancelReason.USER_REQUESTED)))


class Recorded:
    """A run that is told to stop at a moment, if it had begun by then."""

    def __init__(self, seed: int, branches: int, moment: Moment) -> None:
        self.clock = VirtualClock()
        self.submissions = 0
        self._agent = Agent(seed, branches, moment)
        self.journal = LaterJournal(self._agent.pause_s, self._note)
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.clock)) as runner:
            runner.run(self._to_its_end())

    @property
    def recording(self) -> Recording | None:
        events = self.journal.events("run-1")
        return Recording(events, self.journal.contents) if events else None

    def _note(self, _: Submission) -> None:
        self.submissions += 1
        if self.submissions == self._agent.moment.submission:
            self._agent.stop()

    async def _to_its_end(self) -> None:
        clock, threads = self.clock, LaterThreads(self._agent.pause_s)
        harness = Harness(
            self.journal, monotonic_clock=clock, wall_clock=clock, ids=CountingIds(), threads=threads, observers=(seen,)
        )
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await self._agent(harness)
        # What was left on a thread comes to its end.
        await asyncio.sleep(2 * max(PAUSES_S))


async def seen(_: object) -> None:
    """An observer, so that between an end and what the code does next others get their turn."""
    await asyncio.sleep(0)


def deadlines(seed: int, branches: int) -> Iterator[Moment]:
    """At each look at the clock, and while nobody looks."""
    first, *looks = Recorded(seed, branches, Moment()).clock.looks
    for before, at in pairwise([first, *looks]):
        yield Moment(timeout_s=(at - first) / 1e9)
        if at - before > LOOK_NS:
            yield Moment(timeout_s=((at + before) // 2 - first) // 1_000 / 1e6)


def stops(seed: int, branches: int, *, is_task_cancelled: bool) -> Iterator[Moment]:
    """After each submission but the first, before which there is no run."""
    for number in range(2, Recorded(seed, branches, Moment()).submissions + 1):
        yield Moment(submission=number, is_task_cancelled=is_task_cancelled)


def check(seed: int, branches: int, moments: Iterator[Moment]) -> Counter[str]:
    """Execute the run again for each moment; how attempts ended that did not succeed, and the runs."""
    ends: Counter[str] = Counter()
    for moment in moments:
        recording = Recorded(seed, branches, moment).recording
        if recording is None:
            continue
        done = again(recording, Agent(seed, branches, moment), quiet_s=QUIET_S)
        assert done.is_same, f"seed {seed}, {moment}: {done}\n{done.error!r}"
        for event in recording.events:
            if isinstance(event, e.AttemptFailed):
                ends[event.failure] += 1
            elif isinstance(event, e.AttemptAbandoned | e.RunTerminated):
                ends[event.reason] += 1
    return ends


@pytest.mark.parametrize(("seed", "branches", "every"), [(0, 1, 1), (1, 2, 29)])
def test_a_deadline_may_come_at_any_moment(seed: int, branches: int, every: int):
    ends = check(seed, branches, islice(deadlines(seed, branches), 0, None, every))
    assert ends["HIDDEN_RETRY"] == 0  # H7
    assert ends.keys() >= {"DEADLINE_EXCEEDED", e.NOT_INVOKED}


@pytest.mark.parametrize("is_task_cancelled", [False, True])
@pytest.mark.parametrize(("seed", "branches", "every"), [(0, 1, 1), (1, 2, 7)])
def test_a_run_may_be_told_to_stop_at_any_moment(seed: int, branches: int, every: int, is_task_cancelled: bool):
    ends = check(seed, branches, islice(stops(seed, branches, is_task_cancelled=is_task_cancelled), 0, None, every))
    assert ends["TASK_CANCELLED" if is_task_cancelled else "USER_REQUESTED"] > 0
    assert ends["HIDDEN_RETRY"] == 0
    assert ends[e.NOT_INVOKED] > 0
