"""What is in flight when a block is left ends before the run does, each with an end of its own (SPEC D4, CASES 19)."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness import CancelReason, Harness, InvalidInput, RunContext, RunEnded
from tests.harness.fakes import HandJournal, each, harness_over, left_with, limits, only, say, types, until


async def hang(run: RunContext) -> None:
    await asyncio.Event().wait()


async def fall(run: RunContext) -> None:
    await asyncio.sleep(0)
    raise ValueError("the third")


async def in_a_group(works: list[Any]) -> None:
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(_await(work))


async def _await(awaitable: Any) -> Any:
    return await awaitable


@pytest.mark.parametrize(
    ("together", "raised"), [(lambda works: asyncio.gather(*works), ValueError), (in_a_group, ExceptionGroup)]
)
async def test_of_three_parallel_tools_one_raises_and_the_others_end_before_the_run(
    harness: Harness, journal: HandJournal, together: Callable[..., Any], raised: type[Exception]
):  # CASES 19
    with left_with(raised):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            tools = enumerate((hang, hang, fall))
            await together([harness.tool(run.branch(f"{number}"), "work", tool) for number, tool in tools])
    events = journal.events("r")
    assert sorted(event.failure for event in each(events, "attempt.failed")) == ["CANCELLED", "CANCELLED", "UNKNOWN"]
    assert types(events)[-1] == "run.terminated"
    assert (events[-1].outcome, events[-1].error_type) == ("FAILED", raised.__name__)
    assert journal.state("r").open_attempts == {}


async def test_the_thread_of_three_parallel_tools_is_abandoned_and_its_result_is_late(
    harness: Harness, journal: HandJournal
):  # CASES 19
    begun, go_on = threading.Event(), threading.Event()

    def work(run: RunContext) -> str:
        begun.set()
        go_on.wait(timeout=30)
        return "late"

    async def fall_late(run: RunContext) -> None:
        await until(begun.is_set)
        raise ValueError("the third")

    with left_with(ValueError):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            tools = enumerate((hang, work, fall_late))
            await asyncio.gather(*(harness.tool(run.branch(f"{number}"), "work", tool) for number, tool in tools))
    ended = types(journal.events("r"))
    go_on.set()
    await until(lambda: len(journal.events("r")) > len(ended))
    assert sorted(ended[-3:-1]) == ["attempt.abandoned", "attempt.failed"]
    assert types(journal.events("r"))[-2:] == ["run.terminated", "attempt.finished_late"]
    assert only(journal.events("r"), "attempt.finished_late").succeeded


async def test_a_child_that_nobody_awaits_is_stopped_at_the_exit_and_the_run_is_still_a_success(
    harness: Harness, journal: HandJournal, clock: Any
):  # D4: the termination bears the time of the decision, not that of the last child's end.
    begun = asyncio.Event()

    async def work(run: RunContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            clock.advance(1)

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        child = asyncio.ensure_future(harness.model(run, "ask", work))
        await begun.wait()
    assert child.done()
    with pytest.raises(RunEnded, match="SUCCESS"):
        await child
    events = journal.events("r")
    assert only(events, "attempt.failed").failure == "CANCELLED"
    assert (types(events)[-1], events[-1].outcome) == ("run.terminated", "SUCCESS")
    assert (only(events, "attempt.failed").elapsed_us, events[-1].elapsed_us) == (1_000_000, 0)
    with pytest.raises(RunEnded, match="SUCCESS"):
        await harness.tool(run, "say", say)


async def test_a_child_that_does_not_stop_in_time_is_abandoned_and_ends_late(journal: HandJournal):  # D4, E6
    harness = harness_over(journal, drain_timeout_s=0.02)
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def ignore(run: RunContext) -> str:
        begun.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        child = asyncio.ensure_future(harness.model(run, "ask", ignore))
        await begun.wait()
    assert only(journal.events("r"), "attempt.abandoned").reason == "RUN_ENDED"
    assert types(journal.events("r"))[-1] == "run.terminated"
    go_on.set()
    assert await child == "late"
    assert not child.cancelling()
    assert types(journal.events("r"))[-2:] == ["attempt.finished_late", "usage.settled"]
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_cancellation_during_the_drain_is_kept_until_the_end_is_recorded(
    harness: Harness, journal: HandJournal
):  # D4, CASES 18
    stopping, go_on = asyncio.Event(), asyncio.Event()

    async def slow_to_stop(run: RunContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await go_on.wait()

    async def serve() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            children.append(asyncio.ensure_future(harness.tool(run, "slow", slow_to_stop)))
            await until(lambda: run.live.state.open_attempts)

    children: list[Any] = []
    serving = asyncio.create_task(serve())
    await stopping.wait()
    serving.cancel("the server stops")
    await asyncio.sleep(0)
    assert not serving.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError, match="the server stops"):
        await serving
    assert types(journal.events("r"))[-2:] == ["attempt.failed", "run.terminated"]
    assert journal.state("r").outcome == "SUCCESS"
    with pytest.raises(RunEnded):
        await children[0]


async def test_a_run_that_is_told_to_stop_stops_what_other_tasks_await(harness: Harness, journal: HandJournal):  # H3
    with left_with(RunEnded, match="CLIENT_DISCONNECTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            loop = asyncio.get_running_loop()
            loop.call_later(0.01, lambda: run.cancellation.signal(CancelReason.CLIENT_DISCONNECTED))
            with pytest.raises(RunEnded, match="CLIENT_DISCONNECTED"):
                await harness.tool(run, "hang", hang)
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    assert types(journal.events("r"))[-3:] == ["cancellation.signalled", "attempt.failed", "run.terminated"]


async def test_the_task_that_tells_a_run_to_stop_is_not_stopped_itself(harness: Harness, journal: HandJournal):  # H3
    async def tell(run: RunContext) -> str:
        run.cancellation.signal(CancelReason.USER_REQUESTED)
        await asyncio.sleep(0.01)
        return "told"

    def tell_on_thread(run: RunContext) -> str:
        run.cancellation.signal(CancelReason.USER_REQUESTED)
        return "told"

    for number, tool in enumerate((tell, tell_on_thread)):
        with left_with(RunEnded, match="USER_REQUESTED"):
            async with harness.run(session_id="s", run_id=f"r{number}", limits=limits(), timeout_s=60) as run:
                assert await harness.tool(run, "tell", tool) == "told"
        assert "attempt.succeeded" in types(journal.events(f"r{number}"))


async def test_a_limit_that_one_task_passes_stops_the_others(harness: Harness, journal: HandJournal):  # H3, H4
    with left_with(RunEnded, match="BUDGET_EXHAUSTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(tool_calls=1), timeout_s=60) as run:
            hanging = asyncio.ensure_future(harness.tool(run.branch("a"), "hang", hang))
            await until(lambda: run.live.state.open_attempts)
            with pytest.raises(RunEnded, match="tool_calls"):
                await harness.tool(run.branch("b"), "say", say)
            with pytest.raises(RunEnded, match="BUDGET_EXHAUSTED"):
                await hanging
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"


async def test_the_deadline_that_one_task_meets_stops_the_others(
    harness: Harness, journal: HandJournal, clock: Any
):  # H2
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            hanging = asyncio.ensure_future(harness.tool(run.branch("a"), "hang", hang))
            await until(lambda: run.live.state.open_attempts)
            clock.advance(60)
            for work in (harness.tool(run.branch("b"), "say", say), hanging):
                with pytest.raises(RunEnded, match="TIMED_OUT"):
                    await work
    assert only(journal.events("r"), "attempt.failed").failure == "DEADLINE_EXCEEDED"


async def test_a_lost_ledger_stops_what_is_in_flight(harness: Harness, journal: HandJournal):  # D1
    with left_with(RunEnded, match="LEDGER_UNAVAILABLE"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            hanging = asyncio.ensure_future(harness.tool(run.branch("a"), "hang", hang))
            await until(lambda: run.live.state.open_attempts)
            journal.holds = True
            harness.transition(run, None, "planner")
            journal.holds = False
            journal.lose()
            with pytest.raises(RunEnded, match="LEDGER_UNAVAILABLE"):
                await hanging
    assert only(journal.events("r"), "attempt.abandoned").reason == "RUN_ENDED"
    assert journal.state("r").outcome == "FAILED"


async def test_a_block_that_is_left_from_within_a_tool_of_its_own_does_not_wait_for_itself(
    harness: Harness, journal: HandJournal
):  # D4
    scope = harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60)
    run = await scope.__aenter__()

    async def leave(inside: RunContext) -> None:
        await scope.__aexit__(None, None, None)

    await harness.tool(run, "leave", leave)
    assert types(journal.events("r"))[-3:] == ["attempt.abandoned", "run.terminated", "attempt.finished_late"]


@pytest.mark.parametrize("bad", [0, -1, True, float("inf"), "5"])
def test_a_drain_without_a_bound_is_refused(journal: HandJournal, bad: Any):
    with pytest.raises(InvalidInput, match="drain_timeout_s"):
        harness_over(journal, drain_timeout_s=bad)
