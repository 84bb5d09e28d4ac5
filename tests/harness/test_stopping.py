"""Programs stop in more ways than by returning: each leaves a run that has ended (SPEC H5, CASES 18)."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anyio

from harness import Harness, RunContext
from tests.harness.fakes import HandJournal, harness_over, left_with, limits, on_thread, only, say, types

ROOT = Path(__file__).parents[2]


async def hang(run: RunContext) -> None:
    await asyncio.Event().wait()


async def test_a_scope_that_cancels_again_and_again_gets_its_run_recorded_and_its_cancellation(
    harness: Harness, journal: HandJournal
):
    # As an ASGI server does to a request whose client has gone: anyio cancels at every await until the block is left.
    with anyio.move_on_after(0.02) as scope:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds = True
            asyncio.get_running_loop().call_later(0.05, lambda: on_thread(journal.store_all))
            await harness.tool(run, "hang", hang)
    assert scope.cancelled_caught
    assert journal.state("r").reason == "TASK_CANCELLED"
    await asyncio.sleep(0)
    assert not asyncio.current_task().cancelling()  # type: ignore[union-attr]


def test_a_run_in_a_task_of_its_own_ends_with_its_loop(journal: HandJournal):
    async def main() -> None:
        async def serve() -> None:
            async with harness_over(journal).run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                inside.set()
                await harness_over(journal).tool(run, "hang", hang)

        inside = asyncio.Event()
        tasks.append(asyncio.create_task(serve()))
        await inside.wait()

    tasks: list[asyncio.Task[None]] = []
    asyncio.run(main())
    assert journal.state("r").outcome == "CANCELLED"


def test_a_thread_that_outlives_the_loop_still_records_its_end(journal: HandJournal):  # D4
    go_on, ended = threading.Event(), threading.Event()

    def work(run: RunContext) -> None:
        go_on.wait(timeout=30)
        ended.set()

    async def main() -> None:
        with left_with(TimeoutError):
            async with asyncio.timeout(0.02):
                async with harness_over(journal).run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                    await harness_over(journal).tool(run, "work", work)

    asyncio.run(main())
    go_on.set()
    assert ended.wait(timeout=30)
    for thread in threading.enumerate():
        if thread.name == "harness-tool":
            thread.join(timeout=30)
    assert types(journal.events("r"))[-2:] == ["run.terminated", "attempt.finished_late"]


def test_a_run_can_be_crossed_from_several_loops(journal: HandJournal):  # H1a
    harness = harness_over(journal)

    async def main() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds = True

            async def elsewhere() -> object:
                return await harness.tool(run.branch("elsewhere"), "say", say, args={"n": 1})

            crossing = asyncio.get_running_loop().run_in_executor(None, lambda: asyncio.run(elsewhere()))
            here = asyncio.ensure_future(harness.tool(run.branch("here"), "say", say, args={"n": 2}))
            while len(journal.waiting) < 2:
                await asyncio.sleep(0.001)
            journal.store_all()
            results: list[object] = [await crossing, await here]
            assert results == [{"n": 1}, {"n": 2}]

    asyncio.run(main())
    assert journal.state("r").usage["tool_calls"] == 2


async def test_tasks_that_start_eagerly_cross_boundaries_too(harness: Harness, journal: HandJournal):
    factory = getattr(asyncio, "eager_task_factory", None)
    asyncio.get_running_loop().set_task_factory(factory)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        both = [asyncio.ensure_future(harness.tool(run.branch(f"{n}"), "say", say)) for n in range(2)]
        await asyncio.gather(*both)
    assert only(journal.events("r"), "run.terminated").outcome == "SUCCESS"


INTERRUPTED = """
import asyncio, sys
from harness import Harness, Limits, MemoryJournal

journal = MemoryJournal()
limits = Limits(model_calls=1, tool_calls=1, input_tokens=1, output_tokens=1, total_tokens=1, run_bytes=1000,
                per_tool_default=1)

async def hang(run):
    print("inside", flush=True)
    await asyncio.Event().wait()

async def main():
    harness = Harness(journal)
    async with harness.run(session_id="s", run_id="r", limits=limits, timeout_s=60) as run:
        await harness.tool(run, "hang", hang)

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print(journal.state("r").outcome, journal.state("r").reason, flush=True)
"""


def test_a_program_that_is_interrupted_from_the_keyboard_ends_its_run():
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "inside\n"
        os.kill(program.pid, signal.SIGINT)
        rest, complaint = program.communicate(timeout=30)
    assert (rest, complaint, program.returncode) == ("CANCELLED TASK_CANCELLED\n", "", 0)
