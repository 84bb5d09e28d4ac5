"""However a run ended, its record says enough to execute it again (SPEC H2 to H7, D1 to D6)."""

import asyncio
import threading
import time
from typing import Any

import pytest

from harness import (
    CancelReason,
    Capture,
    CapturePolicy,
    Decision,
    HarnessError,
    OperationKind,
    Price,
    PriceTable,
    ScopeExhausted,
    ScopeLimits,
    TokenUsage,
    ToolCall,
)
from tests.harness.fakes import Reply, left_with, limits
from tests.harness.replays import Recorder, again, opened

PRICE = Price(input_micros_per_million=1_000_000, output_micros_per_million=2_000_000)
PRICES = PriceTable("2026-07", "USD", {"m": PRICE})
SCENARIOS: dict[str, Any] = {}


def scenario(ends, **settings):
    """An agent, how its run ends, and what the harness is built with."""

    def note(agent):
        SCENARIOS[agent.__name__] = agent, ends, settings
        return agent

    return note


def mask(content):
    return content.data.replace(b"1234", b"****")


async def quick(run, **args):
    await asyncio.sleep(0.001)
    return args


def on_thread(run, **args):
    return args


async def endless(run, **args):
    await asyncio.Event().wait()


async def broken(run, **args):
    await asyncio.sleep(0)
    raise ValueError("no such index")


async def unreachable(run):
    raise ConnectionError("refused")


def slow_thread(run):
    time.sleep(0.08)
    return "late"


@scenario("SUCCESS")
async def retries_and_gives_up(harness):
    async with opened(harness) as run:
        for kind in (OperationKind.INTENT_ROUTER, OperationKind.DIAGNOSIS_AGENT):
            with pytest.raises(ConnectionError, match="refused"):
                await harness.model(run, "route", unreachable, kind=kind)
        with pytest.raises(ValueError, match="no such index"):
            await harness.tool(run, broken)()


@scenario("FAILED")
async def fails(harness):
    async with opened(harness) as run:
        await harness.tool(run, broken)(n=1)


@scenario("CANCELLED")
async def is_told_to_stop_by_itself(harness):
    async with opened(harness) as run:
        await harness.tool(run, quick)(n=1)
        run.cancellation.signal(CancelReason.USER_REQUESTED)
        await harness.tool(run, quick)(n=2)


@scenario("CANCELLED")
async def is_told_to_stop_by_a_thread(harness):
    async with opened(harness) as run:
        await harness.tool(run, quick)(n=1)
        if harness.journal_is_real:
            threading.Timer(0.02, lambda: run.cancellation.signal(CancelReason.USER_REQUESTED)).start()
        async with asyncio.TaskGroup() as group:
            group.create_task(harness.tool(run.branch("a"), endless)(n=2))
            group.create_task(harness.tool(run.branch("b"), endless)(n=3))


@scenario("CANCELLED")
async def is_told_to_stop_and_its_task_is_cancelled(harness):
    async with opened(harness) as run:
        if harness.journal_is_real:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()

            def stop():
                run.cancellation.signal(CancelReason.SHUTDOWN)
                task.cancel()

            loop.call_later(0.02, stop)
        await harness.tool(run, quick)(n=1)
        await harness.tool(run, endless)(n=2)


@scenario("CANCELLED")
async def its_task_is_cancelled_in_an_operation(harness):
    async with opened(harness) as run:
        if harness.journal_is_real:
            asyncio.get_running_loop().call_later(0.02, asyncio.current_task().cancel)
        await harness.tools(run, [ToolCall(quick, {"n": 1}), ToolCall(endless, {"n": 2}), ToolCall(endless)])


@scenario("CANCELLED")
async def its_task_is_cancelled_between_operations(harness):
    async with opened(harness) as run:
        await harness.tool(run, quick)(n=1)
        if harness.journal_is_real:
            asyncio.get_running_loop().call_later(0.02, asyncio.current_task().cancel)
        await asyncio.sleep(30)
        await harness.tool(run, quick)(n=2)


@scenario("CANCELLED")
async def a_thread_is_left_when_its_task_is_cancelled(harness):
    async with opened(harness) as run:
        if harness.journal_is_real:
            asyncio.get_running_loop().call_later(0.02, asyncio.current_task().cancel)
        await harness.tool(run, slow_thread)()


@scenario("TIMED_OUT")
async def comes_to_its_deadline_in_an_operation(harness):
    async with opened(harness, timeout_s=0.05) as run:
        await harness.tool(run, quick)(n=1)
        await harness.tool(run, endless)(n=2)


@scenario("TIMED_OUT")
async def comes_to_its_deadline_in_several_operations(harness):
    async with opened(harness, timeout_s=0.05) as run:
        calls = [ToolCall(endless, {"n": n}) for n in range(3)]
        await harness.tools(run, calls)


@scenario("TIMED_OUT")
async def comes_to_its_deadline_on_a_thread(harness):
    async with opened(harness, timeout_s=0.03) as run:
        await harness.tool(run, slow_thread)()


@scenario("TIMED_OUT")
async def comes_to_its_deadline_between_operations(harness):
    async with opened(harness, timeout_s=0.05) as run:
        await harness.tool(run, quick)(n=1)
        await asyncio.sleep(0.06)
        await harness.tool(run, quick)(n=2)


@scenario("TIMED_OUT")
async def comes_to_its_deadline_at_its_exit(harness):
    async with opened(harness, timeout_s=0.05) as run:
        harness.transition(run, None, "planner")
        await asyncio.sleep(0.06)


@scenario("SUCCESS")
async def attempts_time_out(harness):
    async with opened(harness) as run:
        for fn in (endless, slow_thread):
            try:
                await harness.tool(run, fn, timeout_s=0.02)()
            except TimeoutError:
                harness.transition(run, None, "after")
        try:
            await harness.model(run, "route", endless, kind=OperationKind.INTENT_ROUTER, timeout_s=0.02)
        except TimeoutError:
            await harness.tool(run, quick)()
        await asyncio.sleep(0.1)


@scenario("SUCCESS")
async def code_bounds_an_operation_itself(harness):
    async with opened(harness) as run:
        try:
            async with asyncio.timeout(0.02):
                await harness.tool(run, endless)()
        except TimeoutError:
            await harness.tool(run, quick)(n=1)


@scenario("BUDGET_EXHAUSTED")
async def passes_a_limit_of_calls(harness):
    async with opened(harness, limits=limits(per_tool={"quick": 2})) as run:
        for n in range(3):
            await harness.tool(run, quick)(n=n)


@scenario("BUDGET_EXHAUSTED")
async def passes_a_limit_in_a_race(harness):
    async with opened(harness, limits=limits(per_tool={"quick": 3})) as run, asyncio.TaskGroup() as group:
        for n in range(5):
            group.create_task(harness.tool(run.branch(f"b{n}"), quick)(n=n))


@scenario("BUDGET_EXHAUSTED")
async def passes_a_limit_in_a_batch(harness):
    async with opened(harness, limits=limits(per_tool={"quick": 2})) as run:
        results = await harness.tools(run, [ToolCall(quick, {"n": n}) for n in range(3)])
        assert {result.status.value for result in results} == {"NOT_EXECUTED"}


@scenario("BUDGET_EXHAUSTED")
async def uses_more_tokens_than_it_has(harness):
    async def ask(run):
        return Reply(TokenUsage(90, 30))

    async with opened(harness, limits=limits(total_tokens=100)) as run:
        await harness.model(run, "planner", ask, reserve=TokenUsage(50, 10))
        await harness.tool(run, quick)()


@scenario("BUDGET_EXHAUSTED")
async def gets_more_bytes_than_it_has(harness):
    def much(run):
        return "x" * 3_000

    async with opened(harness, limits=limits(run_bytes=2_000)) as run:
        await harness.tool(run, much)()
        await harness.tool(run, quick)()


@scenario("SUCCESS")
async def scopes_end_at_their_limits(harness):
    async with opened(harness) as run:
        for number in range(2):
            with left_with(ScopeExhausted, "tool_calls"):
                probe = harness.scope(run, "probe", limits=ScopeLimits(tool_calls=1), timeout_s=20)
                with probe as outer, harness.scope(outer, "inner", limits=ScopeLimits(tool_calls=5)) as inner:
                    for n in range(2):
                        await harness.tool(inner, quick)(n=n + number)
        try:
            with harness.scope(run, "late", timeout_s=0.03) as late:
                await harness.tool(late, endless)()
        except ScopeExhausted:
            await harness.tool(run, quick)()
        try:
            with harness.scope(run, "later", timeout_s=0.02) as later:
                await asyncio.sleep(0.03)
                await harness.tool(later, quick)()
        except ScopeExhausted:
            await harness.tool(run, quick)()


@scenario("BUDGET_EXHAUSTED", prices=PRICES)
async def costs_more_than_it_may(harness):
    async def ask(run):
        return Reply(TokenUsage(90, 30))

    async with opened(harness, limits=limits(cost_micros=200)) as run:
        for _ in range(3):
            await harness.model(run, "planner", ask, model="m", reserve=TokenUsage(50, None))


@scenario("SUCCESS", capture=CapturePolicy(query=mask, answer=Capture.DIGEST_ONLY, tool_input=mask))
async def keeps_less_than_it_has(harness):
    async with opened(harness, query="my pin is 1234") as run:
        await harness.tool(run, quick)(pin="1234")
        harness.answer(run, "1234")


def no_writes(request):
    return Decision.allow() if request.effect == "read" else Decision.deny("WRITES_ARE_OFF")


def no_twos(request):
    return Decision.deny("NO_TWOS") if request.arguments.get("n") == 2 else Decision.allow("FINE")


@scenario("SUCCESS", policies=(no_writes, no_twos))
async def policies_deny_some(harness):
    async with opened(harness) as run:
        for n, effect in ((1, "read"), (2, "read"), (3, "write")):
            try:
                await harness.tool(run, quick, effect=effect)(n=n)
            except HarnessError as denied:
                harness.transition(run, None, denied.code)
        calls = [ToolCall(quick, {"n": n}, effect="read") for n in (1, 2, 3)]
        assert [result.status.value for result in await harness.tools(run, calls)] == [
            "SUCCEEDED",
            "DENIED",
            "SUCCEEDED",
        ]
        none = await harness.tools(run, [ToolCall(quick, {"n": 2}, effect="read")])
        assert [result.status.value for result in none] == ["DENIED"]


@scenario("SUCCESS")
async def observes_limits(harness):
    observed = limits(repeated_calls=1, tool_calls=2, observe={"repeated_calls", "tool_calls"})
    async with opened(harness, limits=observed) as run:
        for _ in range(3):
            await harness.tool(run, quick)(n=1)
        run.capacity.reserve(10)
        harness.reserve_bytes(run, 10)


@scenario("SUCCESS")
async def streams_of_all_kinds(harness):
    async def words(run, fails=False):
        yield "one "
        if fails:
            raise ConnectionError("gone")
        yield "two"

    async def fails_at_once(run):
        raise ConnectionError("gone")
        yield ""

    async def objects(run):
        yield {"n": 1}
        yield {"n": 2}

    async with opened(harness) as run:
        async for _ in harness.stream(run, "writer", words):
            # Between two chunks other boundaries are crossed.
            await harness.tool(run.branch("beside"), quick)(seen=True)
        try:
            await anext(harness.stream(run, "writer", fails_at_once, kind=OperationKind.INTENT_ROUTER))
        except ConnectionError:
            harness.transition(run, None, "broke")
        assert [each["n"] async for each in harness.stream(run, "objects", objects)] == [1, 2]


@scenario("SUCCESS")
async def operations_that_cross_boundaries_of_their_own(harness):
    async def deep(run, n):
        harness.transition(run, None, "inner")
        with harness.scope(run, "inner", limits=ScopeLimits(tool_calls=9)) as inner:
            await harness.tool(inner, quick)(n=n)
        await harness.tools(run, [ToolCall(quick, {"n": n}), ToolCall(broken, {"n": n})])
        return n

    async with opened(harness, limits=limits(per_tool={"deep": 3, "quick": 6, "broken": 3})) as run:
        async with asyncio.TaskGroup() as group:
            for n in range(2):
                group.create_task(harness.tool(run.branch(f"b{n}"), deep)(n=n))
        await harness.tool(run, quick)(n=8)


@scenario("BUDGET_EXHAUSTED")
async def a_limit_is_passed_inside_an_operation(harness):
    async def deep(run):
        for n in range(3):
            await harness.tool(run, quick)(n=n)

    async with opened(harness, limits=limits(per_tool={"deep": 3, "quick": 2})) as run:
        await harness.tool(run, deep)()


@scenario("FAILED")
async def a_client_retries_unseen(harness):
    async def ask(run):
        run.sent.add(ends_run=True)
        run.sent.add(ends_run=True)

    async with opened(harness) as run:
        await harness.model(run, "planner", ask)


@scenario("SUCCESS")
async def a_client_retries_unseen_and_may(harness):
    async def ask(run):
        for _ in range(3):
            run.sent.add(ends_run=False)
        return "fine"

    async with opened(harness) as run:
        await harness.model(run, "planner", ask)


@scenario("CANCELLED")
async def something_does_not_stop_in_time(harness):
    async def stubborn(run):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0.08)

    async with opened(harness) as run:
        task = asyncio.create_task(harness.tool(run.branch("a"), stubborn)())
        await harness.tool(run.branch("b"), quick)()
        run.cancellation.signal(CancelReason.USER_REQUESTED)
    if harness.journal_is_real:
        await asyncio.wait({task})


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_is_the_same_however_it_ended(name):
    agent, ends, settings = SCENARIOS[name]
    recorder = Recorder(**({"drain_timeout_s": 0.03} | settings))
    recorder.harness.journal_is_real = True
    recording = recorder.record(agent)
    assert recorder.journal.state(recording.started.run_id).outcome == ends

    async def agent_again(harness):
        harness.journal_is_real = False
        await agent(harness)

    decides = {name: settings[name] for name in ("prices", "capture") if name in settings}
    done = again(recording, agent_again, **decides)
    assert done.is_same, (
        str(done)
        + f"\n{done.error!r}\n"
        + "\n".join(f"{n} {event.type} {getattr(event, 'boundary', '')}" for n, event in enumerate(recording.events, 1))
    )
    assert done.uncompared == ()
    assert done.crossed_count + done.inside_count + done.others_count == len(recording.events)
