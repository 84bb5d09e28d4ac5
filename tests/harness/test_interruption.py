"""The harness stops what it must, and never takes that for a cancellation from outside (SPEC H3, CASES 18)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import anyio
import pytest

from harness import CancelReason, Harness, RunContext, RunEnded
from harness.concurrency.interruption import Cause, Interruption, Interruptions
from harness.concurrency.lock import RunLock
from tests.harness.fakes import HandJournal, each, left_with, limits, on_thread, only, race, say, types, until

STOPPED = ValueError("stopped")
CAUSE = Cause(STOPPED, lambda: STOPPED)
EVER = asyncio.Event


def open_one() -> Interruption:
    return Interruptions(RunLock()).open()


def here() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def test_an_interruption_alone_raises_its_cause_and_leaves_the_task_uncancelled():
    with left_with(ValueError, match="stopped") as stopped, open_one() as interruption:
        interruption.interrupt(CAUSE)
        await EVER().wait()
    assert isinstance(stopped.value.__cause__, asyncio.CancelledError)
    assert here().cancelling() == 0
    await asyncio.sleep(0)


async def test_an_interruption_reaches_the_task_from_any_thread():
    with left_with(ValueError), open_one() as interruption:
        on_thread(lambda: interruption.interrupt(CAUSE))
        await EVER().wait()


@pytest.mark.parametrize("order", ["inside first", "outside first"])
async def test_a_cancellation_from_outside_in_the_same_moment_wins_unchanged(order: str):  # CASES 18
    async def work() -> None:
        with open_one() as interruption:
            interruptions.append(interruption)
            await EVER().wait()

    interruptions: list[Interruption] = []
    working = asyncio.create_task(work())
    await until(lambda: interruptions)
    acts: list[Callable[[], Any]] = [lambda: interruptions[0]._stop(CAUSE), lambda: working.cancel("from outside")]
    for act in acts if order == "inside first" else reversed(acts):
        act()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert (working.cancelled(), working.cancelling()) == (True, 1)


async def test_a_cancellation_that_waited_when_the_block_was_entered_comes_from_outside():
    async def work() -> None:
        here().cancel("from outside")
        with open_one() as interruption:
            interruption.interrupt(CAUSE)
            await EVER().wait()

    with pytest.raises(asyncio.CancelledError, match="from outside"):
        await asyncio.create_task(work())


async def test_in_a_task_that_was_cancelled_before_an_interruption_is_still_told_apart():
    async def work() -> None:
        try:
            await EVER().wait()
        finally:
            with contextlib.suppress(ValueError), open_one() as interruption:
                interruption.interrupt(CAUSE)
                await EVER().wait()
            cleaned_up.append(here().cancelling())

    cleaned_up: list[int] = []
    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert cleaned_up == [1]


async def test_of_two_within_each_other_the_outer_one_stops_both():
    inner = None
    with left_with(ValueError, match="stopped"), open_one() as outer:
        try:
            with open_one():
                outer.interrupt(CAUSE)
                await EVER().wait()
        except asyncio.CancelledError as error:
            inner = error
            raise
    assert inner is not None


async def test_of_two_within_each_other_the_inner_one_stops_alone():
    with open_one():
        with left_with(ValueError, match="stopped"), open_one() as inner:
            inner.interrupt(CAUSE)
            await EVER().wait()
        await asyncio.sleep(0)


async def test_a_time_out_around_it_is_a_time_out_and_one_inside_stays_inside():
    with left_with(TimeoutError):
        async with asyncio.timeout(0.01):
            with open_one() as interruption:
                interruption.arm((30, CAUSE))
                await EVER().wait()
    with open_one() as interruption:
        with left_with(TimeoutError):
            async with asyncio.timeout(0.01):
                await EVER().wait()
        assert not interruption.is_cancelling


async def test_the_latest_timer_counts_and_none_outlives_the_block():
    with left_with(ValueError, match="stopped"), open_one() as interruption:
        interruption.arm((0.001, Cause(STOPPED, lambda: KeyError())))
        interruption.arm((0.002, CAUSE))
        await EVER().wait()
    with open_one() as interruption:
        interruption.arm((0.001, CAUSE))
    with open_one() as interruption:
        interruption.arm((0.001, CAUSE))
        interruption.disarm()
        await asyncio.sleep(0.01)


async def test_what_comes_after_the_block_was_left_is_for_nobody():
    with open_one() as interruption:
        pass
    interruption.interrupt(CAUSE)
    await asyncio.sleep(0.001)
    assert (interruption.owner, here().cancelling()) == (None, 0)


async def test_an_interruption_that_the_block_swallows_leaves_nothing_behind():
    with open_one() as interruption:
        interruption.interrupt(CAUSE)
        with contextlib.suppress(asyncio.CancelledError):
            await EVER().wait()
    assert here().cancelling() == 0
    await asyncio.sleep(0)


def test_a_loop_that_has_closed_has_nobody_to_interrupt():
    async def work() -> None:
        with open_one() as interruption:
            interruptions.append(interruption)
            await EVER().wait()

    interruptions: list[Interruption] = []
    loop = asyncio.new_event_loop()
    task = loop.create_task(work())
    loop.call_soon(loop.call_soon, loop.stop)
    loop.run_forever()
    loop.close()
    interruptions[0].interrupt(CAUSE)
    assert interruptions[0].is_lost
    task.get_coro().close()
    task._log_destroy_pending = False


class Elsewhere:
    """Something in flight that belongs to no task."""

    owner: object = "elsewhere"
    thread_id = None
    is_lost = False

    def interrupt(self, cause: Cause) -> None:
        raise AssertionError("nobody tells it")


def test_who_waits_for_all_to_leave_is_told_however_they_race():  # D4
    for _ in range(50):
        interruptions, each = Interruptions(RunLock()), [Elsewhere() for _ in range(3)]
        for one in each:
            interruptions.add(one)
        actions: list[Callable[[], Any]] = [partial(interruptions.remove, one) for one in each]
        left = race([*actions, interruptions.all_left])[-1]
        assert left is None or isinstance(left, Future)
        assert left is None or left.result(timeout=30) is None


async def hang(run: RunContext) -> None:
    await EVER().wait()


@contextlib.asynccontextmanager
async def in_an_anyio_group() -> AsyncIterator[None]:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0)
        yield


@contextlib.asynccontextmanager
async def in_an_asyncio_group() -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))
        yield


@contextlib.asynccontextmanager
async def in_an_anyio_scope() -> AsyncIterator[None]:
    with anyio.CancelScope():
        yield


@contextlib.asynccontextmanager
async def in_an_anyio_time_out() -> AsyncIterator[None]:
    with anyio.fail_after(30):
        yield


AROUND = [in_an_anyio_group, in_an_asyncio_group, in_an_anyio_scope, in_an_anyio_time_out, lambda: asyncio.timeout(30)]
around_each = pytest.mark.parametrize(
    "around", AROUND, ids=["anyio group", "asyncio group", "anyio scope", "anyio time-out", "asyncio time-out"]
)


def bare(error: BaseException) -> BaseException:
    """The one error in a group of one."""
    return bare(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


@pytest.mark.parametrize("where", ["around the run", "in the run", "in the tool"])
@around_each
async def test_a_run_that_is_told_to_stop_raises_the_same_within_every_kind_of_scope(
    harness: Harness, journal: HandJournal, around: Any, where: str
):  # H3
    async def hang_in_scope(run: RunContext) -> None:
        async with around() if where == "in the tool" else contextlib.nullcontext():
            await EVER().wait()

    with left_with((RunEnded, ExceptionGroup)) as raised:
        async with (
            around() if where == "around the run" else contextlib.nullcontext(),
            harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
            around() if where == "in the run" else contextlib.nullcontext(),
        ):
            signal = run.cancellation.signal
            asyncio.get_running_loop().call_later(0.01, lambda: signal(CancelReason.USER_REQUESTED))
            await harness.tool(run, "hang", hang_in_scope)
    ended = bare(raised.value)
    assert isinstance(ended, RunEnded)
    assert ended.reason == "USER_REQUESTED"
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    assert journal.state("r").reason == "USER_REQUESTED"
    assert here().cancelling() == 0
    await asyncio.sleep(0)


@pytest.mark.parametrize("kind", ["asyncio.timeout", "anyio.fail_after", "anyio.move_on_after"])
@pytest.mark.parametrize("where", ["around the run", "around one tool", "in the tool"])
async def test_a_time_out_of_the_applications_own_stays_one(
    harness: Harness, journal: HandJournal, kind: str, where: str
):  # CASES 18, 20
    @contextlib.asynccontextmanager
    async def limited(place: str) -> AsyncIterator[None]:
        if place != where:
            yield
        elif kind == "asyncio.timeout":
            async with asyncio.timeout(0.01):
                yield
        else:
            with (anyio.fail_after if kind == "anyio.fail_after" else anyio.move_on_after)(0.01):
                yield

    async def hang_limited(run: RunContext) -> str:
        async with limited("in the tool"):
            await EVER().wait()
        return "moved on"

    async def serve() -> None:
        async with (
            limited("around the run"),
            harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
        ):
            async with limited("around one tool"):
                await harness.tool(run, "hang", hang_limited)
            await harness.tool(run, "say", say)

    if kind == "anyio.move_on_after":
        await serve()
    else:
        with pytest.raises(TimeoutError):
            await serve()
    attempts = [event for event in journal.events("r") if event.type in ("attempt.failed", "attempt.succeeded")]
    first = getattr(attempts[0], "failure", "none")
    if where == "in the tool":
        assert first == ("none" if kind == "anyio.move_on_after" else "TIMEOUT")
    else:
        assert first == "CANCELLED"
    outcome = "CANCELLED" if where == "around the run" else "SUCCESS" if kind == "anyio.move_on_after" else "FAILED"
    assert journal.state("r").outcome == outcome
    assert here().cancelling() == 0


async def test_a_group_of_tools_ends_with_its_run_and_each_is_recorded(harness: Harness, journal: HandJournal):  # H3
    async def hang_in(branch: RunContext) -> None:
        await harness.tool(branch, "hang", hang)

    with left_with(ExceptionGroup) as raised:
        async with (
            harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
            anyio.create_task_group() as group,
        ):
            for number in range(3):
                group.start_soon(hang_in, run.branch(f"{number}"))
            await until(lambda: len(run.live.state.open_attempts) == 3)
            on_thread(lambda: run.cancellation.signal(CancelReason.SHUTDOWN))
    assert {type(error) for error in raised.value.exceptions} == {RunEnded}
    assert [event.failure for event in each(journal.events("r"), "attempt.failed")] == ["CANCELLED"] * 3
    assert types(journal.events("r"))[-1] == "run.terminated"


async def test_a_tool_that_calls_a_tool_is_stopped_with_it_once(harness: Harness, journal: HandJournal):  # H3
    seen: list[BaseException] = []

    async def outer(run: RunContext) -> None:
        try:
            await harness.tool(run, "inner", hang)
        except BaseException as error:
            seen.append(error)
            raise

    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            signal = run.cancellation.signal
            asyncio.get_running_loop().call_later(0.01, lambda: signal(CancelReason.USER_REQUESTED))
            await harness.tool(run, "outer", outer)
    assert [type(error) for error in seen] == [asyncio.CancelledError]
    assert [event.failure for event in each(journal.events("r"), "attempt.failed")] == ["CANCELLED"] * 2
    assert here().cancelling() == 0


async def test_a_run_within_a_tool_is_cancelled_with_it_from_outside(harness: Harness, journal: HandJournal):  # H3
    async def delegate(run: RunContext) -> None:
        async with harness.run(session_id="s", run_id="inner", limits=limits(), timeout_s=60) as inner:
            await harness.tool(inner, "hang", hang)

    with left_with(RunEnded, match="s/outer ended CANCELLED .USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="outer", limits=limits(), timeout_s=60) as outer:
            signal = outer.cancellation.signal
            asyncio.get_running_loop().call_later(0.01, lambda: signal(CancelReason.USER_REQUESTED))
            await harness.tool(outer, "delegate", delegate)
    assert (journal.state("inner").reason, journal.state("outer").reason) == ("TASK_CANCELLED", "USER_REQUESTED")


async def test_a_crossing_in_another_threads_loop_is_stopped_and_awaited(
    harness: Harness, journal: HandJournal
):  # D4, H1a
    async def elsewhere(run: RunContext) -> None:
        await harness.tool(run.branch("elsewhere"), "hang", hang)

    loop = asyncio.get_running_loop()
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            crossing = loop.run_in_executor(None, lambda: asyncio.run(elsewhere(run)))
            await until(lambda: run.live.state.open_attempts)
            run.cancellation.signal(CancelReason.USER_REQUESTED)
    assert types(journal.events("r"))[-2:] == ["attempt.failed", "run.terminated"]
    with pytest.raises(RunEnded):
        await crossing


async def test_eager_tasks_that_stop_each_other_leave_no_cancellation_behind(harness: Harness, journal: HandJournal):
    asyncio.get_running_loop().set_task_factory(getattr(asyncio, "eager_task_factory", None))

    async def stop_from_a_child(run: RunContext) -> str:
        async def tell() -> None:
            run.cancellation.signal(CancelReason.USER_REQUESTED)

        child = asyncio.create_task(tell())
        if child.done():
            return "told at once"
        await child
        return "told"

    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            with contextlib.suppress(RunEnded):
                await harness.tool(run, "tell", stop_from_a_child)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    assert here().cancelling() == 0
