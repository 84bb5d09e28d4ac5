"""Code for plain threads is executed again as it is; its record is that of any harness (SPEC H1a, D7)."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import MemoryJournal, SyncHarness, TokenUsage, ToolCall
from harness.concurrency.threads import ToolThreads
from harness.replay import Kind, Recording, reexecute_sync
from tests.harness.fakes import Reply, limits
from tests.harness.replays import again


class World:
    def __init__(self):
        self.is_closed = False

    async def ask(self, run, question):
        assert not self.is_closed
        return Reply(TokenUsage(3, 4))

    def look(self, run, n):
        assert not self.is_closed
        return n + 1

    async def words(self, run):
        assert not self.is_closed
        yield "one "
        yield "two"


def recorded(agent):
    journal = MemoryJournal()
    with SyncHarness(journal, threads=ToolThreads(idle_s=0.0)) as harness, contextlib.suppress(Exception):
        agent(harness)
    (run_id,) = journal._events
    return Recording(journal.events(run_id), journal.contents)


def again_sync(recording, agent, **settings):
    return reexecute_sync(recording, agent, quiet_s=0.05, **settings)


def agent_of(world, *, question="why?", extra=False, calls=10, timeout_s=60):
    def agent(harness):
        fields = {"limits": limits(per_tool_default=calls), "timeout_s": timeout_s}
        with harness.run(session_id="s", query="why?", **fields) as run:
            harness.transition(run, None, "planner")
            harness.model(run, "planner", world.ask, args={"question": question})
            n = harness.tool(run, world.look)(n=1)
            if extra:
                harness.tool(run, "extra", world.look, args={"n": 7})
            n += sum(result.value for result in harness.tools(run, [ToolCall(world.look, {"n": k}) for k in range(3)]))
            text = "".join(harness.stream(run, "writer", world.words))
            harness.answer(run, f"{text}{n}")
        return n

    return agent


def test_code_for_threads_is_the_same_without_calling_anything():
    world = World()
    recording = recorded(agent_of(world))
    world.is_closed = True
    done = again_sync(recording, agent_of(world))
    assert (done.is_same, done.result) == (True, 8), str(done)
    assert done.crossed_count == len(recording.events)


def test_code_for_threads_ends_at_its_first_divergence():
    world = World()
    recording = recorded(agent_of(world))
    world.is_closed = True
    assert again_sync(recording, agent_of(world, question="who?")).divergence.kind is Kind.ARGUMENTS
    done = again_sync(recording, agent_of(world, extra=True))
    assert done.divergence.kind is Kind.EXTRA
    assert "input of tool/extra/1/1" in str(done)


def test_a_limit_that_ended_a_run_of_threads_ends_it_again():
    world = World()
    recording = recorded(agent_of(world, calls=2))
    assert recording.events[-1].outcome == "BUDGET_EXHAUSTED"
    world.is_closed = True
    assert again_sync(recording, agent_of(world, calls=2)).is_same


def test_what_threads_recorded_is_executed_again_by_code_that_awaits():
    world = World()

    async def agent(harness):
        fields = {"limits": limits(per_tool_default=10), "timeout_s": 60}
        async with harness.run(session_id="s", query="why?", **fields) as run:
            harness.transition(run, None, "planner")
            await harness.model(run, "planner", world.ask, args={"question": "why?"})
            n = await harness.tool(run, world.look)(n=1)
            results = await harness.tools(run, [ToolCall(world.look, {"n": k}) for k in range(3)])
            text = "".join([word async for word in harness.stream(run, "writer", world.words)])
            harness.answer(run, f"{text}{n + sum(result.value for result in results)}")

    assert again(recorded(agent_of(world)), agent).is_same


@pytest.mark.parametrize("seed", range(10))
def test_threads_that_share_a_run_are_executed_again_the_same(seed):
    world, barrier = World(), threading.Barrier(3)

    def agent(harness):
        def branch(run, k):
            barrier.wait(timeout=10)
            n = k
            for _ in range(3):
                n = harness.tool(run, world.look)(n=n)
            return n

        with harness.run(session_id="s", limits=limits(), timeout_s=60) as run, ThreadPoolExecutor(3) as pool:
            return list(pool.map(lambda k: branch(run.branch(f"b{k}"), k), range(3)))

    recording = recorded(agent)
    world.is_closed = True
    done = again_sync(recording, agent)
    assert (done.is_same, done.result) == (True, [3, 4, 5]), str(done)
