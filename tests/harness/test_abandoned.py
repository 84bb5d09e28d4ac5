"""A block that is not left properly still ends its run, wherever the interpreter allows it (SPEC H5)."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness import Harness, RunContext
from tests.harness.fakes import HandJournal, harness_over, limits, only, say, types, until


async def hang(run: RunContext) -> None:
    await asyncio.Event().wait()


def ended(journal: HandJournal) -> tuple[int, str, str | None]:
    state = journal.state("r")
    return types(journal.events("r")).count("run.terminated"), state.outcome, state.reason


CANCELLED = (1, "CANCELLED", "TASK_CANCELLED")


async def serve(harness: Harness) -> AsyncIterator[object]:
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        yield await harness.tool(run, "say", say)
        yield run


async def test_a_generator_that_its_consumer_drops_ends_its_run(harness: Harness, journal: HandJournal):
    async for _ in serve(harness):
        break
    gc.collect()
    await until(lambda: journal.state("r").outcome != "RUNNING")
    assert ended(journal) == CANCELLED


def test_a_generator_that_is_left_when_its_loop_ends_ends_its_run(journal: HandJournal):
    async def main() -> None:
        generators.append(serve(harness_over(journal)))
        await anext(generators[0])

    generators: list[Any] = []
    asyncio.run(main())
    assert ended(journal) == CANCELLED


def test_a_coroutine_that_is_closed_within_a_tool_ends_the_attempt_and_the_run(journal: HandJournal):
    async def work() -> None:
        harness = harness_over(journal)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.tool(run, "hang", hang)

    loop, working = asyncio.new_event_loop(), work()
    task = loop.create_task(working)
    loop.call_soon(loop.call_soon, loop.stop)
    loop.run_forever()
    working.close()
    task.cancel()
    loop.run_until_complete(asyncio.wait({task}))
    loop.close()
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.error_type) == ("CANCELLED", "GeneratorExit")
    assert ended(journal) == CANCELLED


async def test_a_child_in_flight_is_stopped_when_the_coroutine_with_the_block_is_thrown_away(
    harness: Harness, journal: HandJournal
):  # D4: nobody can wait for it, so it is recorded as abandoned, and its end as late.
    generator = serve(harness)
    await anext(generator)
    run: Any = await anext(generator)
    child = asyncio.ensure_future(harness.tool(run, "hang", hang))
    await until(lambda: run.live.state.open_attempts)
    await generator.aclose()  # type: ignore[attr-defined]
    await asyncio.wait({child})
    assert types(journal.events("r"))[-3:] == ["attempt.abandoned", "run.terminated", "attempt.finished_late"]


def collect_silently() -> None:
    """A task that is collected while it waits complains to its loop, as it should."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    gc.collect()


async def test_a_task_that_is_garbage_collected_ends_its_run(harness: Harness, journal: HandJournal):
    async def work() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(work())
    await until(lambda: journal.events("r"))
    await asyncio.sleep(0)
    del task
    collect_silently()
    assert ended(journal) == CANCELLED


async def test_a_run_that_was_entered_by_hand_lives_as_long_as_anybody_has_it(harness: Harness, journal: HandJournal):
    run: RunContext | None
    run = await harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60).__aenter__()
    gc.collect()
    await asyncio.sleep(0)
    await harness.tool(run, "say", say)
    assert run.lifecycle.is_running
    run = None
    gc.collect()
    await until(lambda: journal.state("r").outcome != "RUNNING")
    assert ended(journal) == CANCELLED


def test_a_run_that_was_entered_by_hand_in_a_loop_that_has_closed_ends_when_it_is_dropped(journal: HandJournal):
    async def main() -> None:
        run = harness_over(journal).run(session_id="s", run_id="r", limits=limits(), timeout_s=60)
        runs.append(await run.__aenter__())

    runs: list[Any] = []
    asyncio.run(main())
    assert journal.state("r").outcome == "RUNNING"
    runs.clear()
    gc.collect()
    assert ended(journal) == CANCELLED


async def test_a_run_that_was_left_by_hand_ends_once(harness: Harness, journal: HandJournal):
    block: Any = harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60)
    await block.__aenter__()
    await block.__aexit__(None, None, None)
    del block
    gc.collect()
    await asyncio.sleep(0)
    assert ended(journal) == (1, "SUCCESS", "COMPLETED")


@pytest.mark.parametrize("stored", [True, False])
async def test_a_coroutine_that_is_closed_while_its_beginning_is_recorded_leaves_no_open_run(
    harness: Harness, journal: HandJournal, stored: bool
):
    journal.holds = True
    entering = harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60).__aenter__()
    waiting = entering.send(None)
    entering.close()
    if stored:
        journal.store_all()
        assert ended(journal) == CANCELLED
    else:
        journal.holds = False
        journal.lose()
        journal.waiting.clear()
        assert journal.events("r") == []
    assert waiting is not None
