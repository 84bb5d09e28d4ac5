"""A block that is not left properly still ends its run, wherever the interpreter allows it (SPEC H5)."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from harness import Harness, RunContext
from tests.harness.fakes import LOST, HandJournal, harness_over, limits, only, say, types, until


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


def thrown_away(work: Coroutine[Any, Any, None], when: Callable[[], object]) -> None:
    """Let the coroutine go on until then, and close it."""

    async def turn() -> None:
        task = asyncio.ensure_future(work)
        await until(when)
        work.close()
        task.cancel()
        await asyncio.wait({task})
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    asyncio.run(turn())


def test_a_block_that_is_thrown_away_while_it_waits_for_its_children_ends_its_run(journal: HandJournal):  # H5, D4
    is_stopping = asyncio.Event()

    async def linger(run: RunContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            is_stopping.set()
            await asyncio.sleep(0.05)

    async def work() -> None:
        harness = harness_over(journal)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            children.append(asyncio.ensure_future(harness.tool(run, "linger", linger)))
            await until(lambda: run.live.state.open_attempts)

    children: list[Any] = []
    thrown_away(work(), is_stopping.is_set)
    assert ended(journal) == (1, "SUCCESS", "COMPLETED")


def test_a_block_that_is_thrown_away_while_its_end_cannot_be_recorded_ends_its_run(journal: HandJournal):  # D1, H5
    def is_lost() -> bool:
        if len(journal.submissions) < 2:
            return False
        journal.fail_with = None
        return True

    async def work() -> None:
        async with harness_over(journal).run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            journal.fail_with = LOST
            raise ValueError("no such index")

    thrown_away(work(), is_lost)
    assert ended(journal) == (1, "FAILED", "UNHANDLED_EXCEPTION")


def test_a_block_that_is_thrown_away_after_its_end_was_submitted_ends_once(journal: HandJournal):  # H5
    async def work() -> None:
        async with harness_over(journal).run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            journal.holds = True

    thrown_away(work(), lambda: journal.waiting)
    journal.store_all()
    assert ended(journal) == (1, "SUCCESS", "COMPLETED")


def test_a_crossing_that_is_thrown_away_while_it_waits_for_room_leaves_none_taken(journal: HandJournal):
    async def work() -> None:
        harness = harness_over(journal)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds_permits = True
            await harness.tool(run, "say", say)

    thrown_away(work(), lambda: journal.permits_waiting)
    journal.grant()
    assert journal.permits_open == 0
    assert ended(journal) == CANCELLED


def test_a_thread_of_a_coroutine_that_is_thrown_away_is_abandoned_and_ends_late(journal: HandJournal):  # D4
    is_inside, may_end = threading.Event(), threading.Event()

    def wait(run: RunContext) -> None:
        is_inside.set()
        may_end.wait(30)

    async def work() -> None:
        harness = harness_over(journal)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.tool(run, "wait", wait)

    thrown_away(work(), is_inside.is_set)
    assert types(journal.events("r"))[-3:] == ["attempt.abandoned", "cancellation.signalled", "run.terminated"]
    may_end.set()
    while "attempt.finished_late" not in types(journal.events("r")):
        threading.Event().wait(0.001)
