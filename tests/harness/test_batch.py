"""A batch of tool calls: all or none of them start, and each has its own result (SPEC D6)."""

import asyncio
import threading
from typing import Any

import pytest

from harness import (
    CancelReason,
    Decision,
    Harness,
    InvalidInput,
    RunContext,
    RunEnded,
    ScopeExhausted,
    ScopeLimits,
    ToolCall,
    ToolDenied,
    ToolRequest,
    ToolRules,
    ToolStatus,
)
from harness.boundary.tool_calls import MAX_BATCH_CALLS
from harness.errors import LedgerUnavailable
from harness.retry import FailureType
from tests.harness.fakes import (
    HandJournal,
    each,
    fail,
    harness_in_real_time,
    harness_over,
    left_with,
    limits,
    only,
    say,
    say_on_thread,
    types,
    until,
)

RUN: dict[str, Any] = {"session_id": "s", "run_id": "r", "limits": limits(), "timeout_s": 60}
DONE, FAILED, DENIED, NOT_EXECUTED = ToolStatus.SUCCEEDED, ToolStatus.FAILED, ToolStatus.DENIED, ToolStatus.NOT_EXECUTED


def call(n: int, **labels: Any) -> ToolCall:
    return ToolCall(say, {"n": n}, **labels)


async def test_a_batch_is_reserved_and_started_in_one_append_and_each_call_has_its_place(harness, journal):  # D6, D7
    async with harness.run(**RUN) as run:
        results = await harness.tools(
            run,
            [
                call(1, name="look", call_id="call_0", effect="read"),
                ToolCall(say_on_thread, {"n": 2}, call_id="call_1"),
                call(3, name="look", tool_key="k"),
            ],
        )
    assert [(result.name, result.call_id, result.status, result.value) for result in results] == [
        ("look", "call_0", DONE, {"n": 1}),
        ("say_on_thread", "call_1", DONE, {"n": 2}),
        ("look", None, DONE, {"n": 3}),
    ]
    (start,) = [submission for submission in journal.submissions if "attempt.started" in types(submission.events)]
    granted, *starts = start.events
    assert types(start.events) == ["reservation.granted", *["attempt.started"] * 3]
    assert (granted.boundary, granted.kind, granted.name) == ("batch/tools/1/1", "batch", "tools")
    assert granted.usage["tool_calls"] == 3
    assert (granted.usage["tool:look"], granted.usage["tool:say_on_thread"]) == (2, 1)
    assert [event.boundary for event in starts] == [
        "batch/tools/1/1/0/tool/look/1/1",
        "batch/tools/1/1/1/tool/say_on_thread/1/1",
        "batch/tools/1/1/2/tool/look/1/1",
    ]
    assert [event.ambiguous for event in starts] == [None, None, None]


async def test_the_calls_of_a_batch_are_in_flight_together(harness):
    met = asyncio.Barrier(3)

    async def meet(run: RunContext) -> str:
        await met.wait()
        return run.path[4]

    async with harness.run(**RUN) as run:
        results = await harness.tools(run, [ToolCall(meet)] * 3)
    assert [result.value for result in results] == ["0", "1", "2"]


async def test_a_batch_beyond_a_limit_starts_nothing_and_names_every_call_it_refused(harness, journal):  # CASES 1
    invoked: list[int] = []

    async def look(run: RunContext, n: int) -> None:
        invoked.append(n)

    calls = [ToolCall(look, {"n": n}, call_id=f"call_{n}") for n in range(8)]
    with left_with(RunEnded) as left:
        async with harness.run(**(RUN | {"limits": limits(tool_calls=6)})) as run:
            before = run.budget.snapshot().usage
            results = await harness.tools(run, calls)
            assert run.budget.snapshot().usage == before
            with pytest.raises(RunEnded):
                await harness.tools(run, calls[:1])
    assert [(result.call_id, result.status) for result in results] == [(f"call_{n}", NOT_EXECUTED) for n in range(8)]
    refusal = results[0].error
    assert isinstance(refusal, RunEnded)
    assert (refusal.resource, refusal.used, refusal.limit) == ("tool_calls", 0, 6)
    assert (left.value.code, invoked) == ("budget_exhausted", [])
    rejected = only(journal.events("r"), "reservation.rejected")
    assert (rejected.boundary, rejected.amount) == ("batch/tools/1/1", 8)
    expected = ["run.started", "reservation.rejected", "cancellation.signalled", "run.terminated"]
    assert types(journal.events("r")) == expected


async def test_as_separate_calls_racing_exactly_as_many_start_as_the_limit_lets(harness, journal):  # CASES 1
    with left_with(RunEnded):
        async with harness.run(**(RUN | {"limits": limits(tool_calls=6)})) as run:
            calls = [harness.tool(run.branch(f"b{n}"), "look", say, args={"n": n}) for n in range(8)]
            results = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(result, RunEnded) for result in results].count(True) >= 2
    assert len(each(journal.events("r"), "attempt.started")) == 6


async def test_a_limit_of_one_tool_and_one_on_repetition_count_the_whole_batch(harness, journal):
    for changed, resource in (({"per_tool": {"look": 2}}, "tool:look"), ({"repeated_calls": 2}, "repeat:look")):
        run_id = f"r-{resource.partition(':')[0]}"
        with left_with(RunEnded) as left:
            async with harness.run(**(RUN | {"run_id": run_id, "limits": limits(**changed)})) as run:
                results = await harness.tools(run, [call(1, name="look")] * 3)
        assert {result.status for result in results} == {NOT_EXECUTED}
        assert (left.value.resource, left.value.used, left.value.limit) == (resource, 0, 2)


async def test_an_observed_limit_lets_the_batch_through_and_says_so_once(harness, journal):  # D13
    allowed = limits(tool_calls=2, observe=frozenset({"tool_calls"}))
    async with harness.run(**(RUN | {"limits": allowed})) as run:
        results = await harness.tools(run, [call(n) for n in range(3)])
    assert {result.status for result in results} == {DONE}
    would = only(journal.events("r"), "limit.would_reject")
    assert (would.boundary, would.resource, would.amount, would.limit) == ("batch/tools/1/1", "tool_calls", 3, 2)


async def test_a_batch_beyond_a_nested_scope_is_refused_and_the_run_goes_on(harness, journal):  # D5
    async with harness.run(**RUN) as run:
        with (
            left_with(ScopeExhausted),
            harness.scope(run, "planner", limits=ScopeLimits(tool_calls=2)) as inner,
        ):
            results = await harness.tools(inner, [call(n) for n in range(3)])
            assert {result.status for result in results} == {NOT_EXECUTED}
            await harness.tool(inner, "look", say)
        assert [result.status for result in await harness.tools(run, [call(1)])] == [DONE]
    assert only(journal.events("r"), "run.terminated").outcome == "SUCCESS"


async def test_a_call_that_fails_does_not_disturb_its_neighbours(harness, journal):  # CASES 19
    async def reset(run: RunContext) -> None:
        raise ConnectionError("reset")

    async def cancels_itself(run: RunContext) -> None:
        raise asyncio.CancelledError

    async def cancels_its_task(run: RunContext) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    async with harness.run(**RUN) as run:
        results = await harness.tools(
            run,
            [
                call(1),
                ToolCall(reset),
                ToolCall(fail),
                ToolCall(cancels_itself),
                ToolCall(cancels_its_task),
                ToolCall(say, {"n": 1, "n2": 2}),
                ToolCall(reset, {"unknown": 1}),
            ],
        )
    expected = [DONE, FAILED, FAILED, FAILED, FAILED, DONE, FAILED]
    assert [result.status for result in results] == expected
    assert [result.failure for result in results] == [
        None,
        FailureType.TRANSPORT,
        FailureType.UNKNOWN,
        FailureType.CANCELLED,
        FailureType.CANCELLED,
        None,
        FailureType.UNKNOWN,
    ]
    assert isinstance(results[1].error, ConnectionError)
    assert isinstance(results[6].error, TypeError)
    assert only(journal.events("r"), "run.terminated").outcome == "SUCCESS"


async def test_a_denied_call_is_left_out_and_the_others_are_let_through(journal):
    harness = harness_over(journal, policies=(ToolRules(name="rules", deny={"drop"}),))
    async with harness.run(**RUN) as run:
        results = await harness.tools(
            run, [call(1, name="look"), call(2, name="drop", call_id="c"), call(3, name="look")]
        )
        usage = run.budget.snapshot().usage
    assert [result.status for result in results] == [DONE, DENIED, DONE]
    assert isinstance(results[1].error, ToolDenied)
    assert (results[1].call_id, results[1].failure, results[1].error.reason) == ("c", FailureType.DENIED, "TOOL_DENIED")
    assert (usage["tool_calls"], usage.get("tool:drop")) == (2, None)
    (start,) = [submission for submission in journal.submissions if "attempt.started" in types(submission.events)]
    assert types(start.events) == [*["policy.decided"] * 3, "reservation.granted", *["attempt.started"] * 2]
    boundaries = [event.boundary for event in start.events if event.type == "policy.decided"]
    assert boundaries[1] == "batch/tools/1/1/1/tool/drop/1/1"


async def test_a_batch_of_denied_calls_only_charges_nothing(journal):
    harness = harness_over(journal, policies=(ToolRules(allow=()),))
    async with harness.run(**RUN) as run:
        results = await harness.tools(run, [call(1), call(2)])
    assert [result.status for result in results] == [DENIED, DENIED]
    assert types(journal.events("r")) == ["run.started", "policy.decided", "policy.decided", "run.terminated"]


async def test_the_policies_of_a_batch_are_asked_side_by_side(journal):
    met = asyncio.Barrier(3)

    async def meet(request: ToolRequest) -> Decision:
        await met.wait()
        return Decision.allow()

    harness = harness_over(journal, policies=(meet,))
    async with harness.run(**RUN) as run:
        results = await harness.tools(run, [call(n) for n in range(3)])
    assert {result.status for result in results} == {DONE}


WRONG: dict[str, tuple[Any, str]] = {
    "a tool without a limit": (ToolCall(say, name="drop"), "calls[1].tool"),
    "an effect that is none": (ToolCall(say, name="look", effect="delete"), "calls[1].effect"),
    "arguments that are no mapping": (ToolCall(say, args=[1], name="look"), "calls[1].args"),  # type: ignore[arg-type]
    "what cannot be called": (ToolCall("say", name="look"), "calls[1].fn"),  # type: ignore[arg-type]
    "a name that is none": (ToolCall(say, name="\n"), "calls[1].tool"),
    "an id that is none": (ToolCall(say, name="look", call_id=""), "calls[1].call_id"),
    "a time-out that is none": (ToolCall(say, name="look", timeout_s=0), "calls[1].timeout_s"),
    "no call at all": (say, "calls[1]"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_one_bad_call_refuses_the_whole_batch_before_anything_starts(harness, journal, wrong):
    bad, field = WRONG[wrong]
    known = limits(per_tool={"look": 5}, per_tool_default=None)
    async with harness.run(**(RUN | {"limits": known})) as run:
        with pytest.raises(InvalidInput) as refused:
            harness.tools(run, [call(1, name="look"), bad])
        assert (await harness.tools(run, [call(2, name="look")]))[0].status is DONE
    assert refused.value.field == field
    assert only(journal.events("r"), "attempt.started").boundary == "batch/tools/1/1/0/tool/look/1/1"


@pytest.mark.parametrize("calls", [None, "ab", {"a": call(1)}, iter([call(1)]), [call(1)] * (MAX_BATCH_CALLS + 1)])
async def test_what_is_no_list_of_calls_or_too_long_is_refused(harness, calls):
    async with harness.run(**RUN) as run:
        with pytest.raises(InvalidInput) as refused:
            harness.tools(run, calls)
    assert refused.value.field == "calls"


async def test_an_empty_batch_crosses_no_boundary(harness, journal):
    async with harness.run(**RUN) as run:
        assert await harness.tools(run, []) == []
    assert types(journal.events("r")) == ["run.started", "run.terminated"]


async def test_the_longest_batch_fits_into_one_append(journal, harness):
    calls = [call(n, name=f"tool_{n}") for n in range(MAX_BATCH_CALLS)]
    async with harness.run(**RUN) as run:
        results = await harness.tools(run, calls)
    assert [result.value["n"] for result in results] == list(range(MAX_BATCH_CALLS))


async def test_a_call_id_that_is_repeated_is_only_a_label(harness, journal):  # CASES 24
    async with harness.run(**RUN) as run:
        results = await harness.tools(run, [call(n, call_id="call_0") for n in range(3)])
    assert [(result.call_id, result.value["n"]) for result in results] == [("call_0", n) for n in range(3)]
    started = each(journal.events("r"), "attempt.started")
    assert ([event.call_id for event in started], len({event.boundary for event in started})) == (["call_0"] * 3, 3)


async def test_batches_count_up_in_their_scope_and_no_branch_can_take_the_place_of_one(harness, journal):  # D7
    async def inner(run: RunContext) -> Any:
        return await harness.tools(run, [call(1)])

    async with harness.run(**RUN) as run:
        await harness.tools(run, [call(1)])
        await harness.tools(run, [ToolCall(inner)])
        with pytest.raises(InvalidInput):
            run.branch("batch").branch("tools").branch("1").branch("1")
    assert [event.boundary for event in each(journal.events("r"), "attempt.started")] == [
        "batch/tools/1/1/0/tool/say/1/1",
        "batch/tools/2/1/0/tool/inner/1/1",
        "batch/tools/2/1/0/tool/inner/1/1/batch/tools/1/1/0/tool/say/1/1",
    ]


async def test_what_starts_beside_an_open_batch_in_its_scope_is_ambiguous_and_its_calls_are_not(harness, journal):  # D7
    free = asyncio.Event()

    async def wait(run: RunContext) -> None:
        await free.wait()

    async with harness.run(**RUN) as run:
        beside = run.branch("b")
        earlier = [harness.tools(run, [ToolCall(wait), ToolCall(wait)]), harness.tools(beside, [ToolCall(wait)])]
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(work) for work in earlier]
        await until(lambda: len(run.live.state.open_attempts) == 3)
        tasks.append(asyncio.ensure_future(harness.tools(run, [ToolCall(wait)])))
        for place in (beside, run.branch("c")):
            tasks.append(asyncio.ensure_future(harness.tool(place, "look", wait)))
        await until(lambda: len(run.live.state.open_attempts) == 6)
        free.set()
        await asyncio.gather(*tasks)
    assert {event.boundary: bool(event.ambiguous) for event in each(journal.events("r"), "attempt.started")} == {
        "batch/tools/1/1/0/tool/wait/1/1": False,
        "batch/tools/1/1/1/tool/wait/1/1": False,
        "b/batch/tools/1/1/0/tool/wait/1/1": False,
        "batch/tools/2/1/0/tool/wait/1/1": True,
        "b/tool/look/1/1": True,
        "c/tool/look/1/1": False,
    }


async def test_a_cancelled_batch_cancels_and_awaits_all_its_calls_before_it_goes_on(harness, journal):  # CASES 18
    begun, ended = [asyncio.Event(), asyncio.Event()], list[int]()

    async def wait(run: RunContext, n: int) -> None:
        begun[n].set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(n)

    async with harness.run(**RUN) as run:
        batch = asyncio.create_task(harness.tools(run, [ToolCall(wait, {"n": n}) for n in (0, 1)]))
        for event in begun:
            await event.wait()
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        assert ended == [0, 1]
        assert run.lifecycle.is_running
    assert [event.failure for event in each(journal.events("r"), "attempt.failed")] == ["CANCELLED", "CANCELLED"]


async def test_a_batch_that_is_cancelled_before_its_calls_began_invokes_none(harness, journal):
    invoked: list[int] = []

    async def look(run: RunContext, n: int) -> None:
        invoked.append(n)

    async with harness.run(**RUN) as run:
        journal.holds = True
        batch = asyncio.create_task(harness.tools(run, [ToolCall(look, {"n": n}) for n in (0, 1)]))
        await until(lambda: journal.waiting)
        batch.cancel()
        journal.store_all()
        with pytest.raises(asyncio.CancelledError):
            await batch
    assert invoked == []
    assert [event.reason for event in each(journal.events("r"), "attempt.abandoned")] == ["NOT_INVOKED"] * 2


async def test_a_call_that_does_not_stop_is_given_up_after_a_bounded_time(journal):  # D4
    free = asyncio.Event()
    begun = asyncio.Event()

    async def stubborn(run: RunContext) -> None:
        begun.set()
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    harness = harness_over(journal, drain_timeout_s=0.05)
    async with harness.run(**RUN) as run:
        batch = asyncio.create_task(harness.tools(run, [ToolCall(stubborn)]))
        await begun.wait()
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        free.set()
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_AWAITED"


async def test_threads_of_a_cancelled_batch_are_abandoned_and_end_late(harness, journal):  # D4
    free, begun = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(run: RunContext) -> str:
        loop.call_soon_threadsafe(begun.set)
        free.wait(30)
        return "late"

    async with harness.run(**RUN) as run:
        batch = asyncio.create_task(harness.tools(run, [ToolCall(work)]))
        await begun.wait()
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        free.set()
        await until(lambda: each(journal.events("r"), "attempt.finished_late"))
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_AWAITED"


async def test_a_run_that_is_told_to_stop_in_mid_batch_leaves_every_call_with_a_result(harness, journal):  # H3
    all_begun = asyncio.Barrier(3)

    async def stop(run: RunContext) -> str:
        await all_begun.wait()
        run.cancellation.signal(CancelReason.USER_REQUESTED)
        return "stopped"

    async def wait(run: RunContext) -> None:
        await all_begun.wait()
        await asyncio.Event().wait()

    with left_with(RunEnded) as left:
        async with harness.run(**RUN) as run:
            results = await harness.tools(run, [ToolCall(wait), ToolCall(stop), ToolCall(wait)])
    assert [result.status for result in results] == [FAILED, DONE, FAILED]
    assert [result.failure for result in results] == [FailureType.RUN_ENDED, None, FailureType.RUN_ENDED]
    assert left.value.reason == "USER_REQUESTED"
    assert [event.failure for event in each(journal.events("r"), "attempt.failed")] == ["CANCELLED", "CANCELLED"]


async def test_a_call_that_had_not_begun_when_the_run_was_stopped_is_not_invoked(harness, journal):  # H3
    invoked: list[str] = []

    async def stop(run: RunContext) -> None:
        run.cancellation.signal(CancelReason.USER_REQUESTED)

    async def look(run: RunContext) -> None:
        invoked.append("look")

    with left_with(RunEnded):
        async with harness.run(**RUN) as run:
            results = await harness.tools(run, [ToolCall(stop), ToolCall(look)])
    assert ([result.status for result in results], invoked) == ([DONE, FAILED], [])
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


async def test_the_deadline_stops_the_calls_in_flight(journal):  # H2
    harness = harness_in_real_time(journal)

    async def wait(run: RunContext) -> None:
        await asyncio.Event().wait()

    with left_with(RunEnded) as left:
        async with harness.run(**(RUN | {"timeout_s": 0.2})) as run:
            results = await harness.tools(run, [ToolCall(wait), call(1)])
    assert [result.status for result in results] == [FAILED, DONE]
    assert left.value.outcome == "TIMED_OUT"


async def test_a_time_out_of_one_call_is_that_calls_failure(harness):
    async def wait(run: RunContext) -> None:
        await asyncio.Event().wait()

    async with harness.run(**RUN) as run:
        results = await harness.tools(run, [ToolCall(wait, timeout_s=0.02), call(1)])
    assert [(result.status, result.failure) for result in results] == [(FAILED, FailureType.TIMEOUT), (DONE, None)]


async def test_at_the_deadline_no_batch_is_let_through(journal, clock):  # H2
    harness = harness_over(journal, clock)
    with left_with(RunEnded) as left:
        async with harness.run(**RUN) as run:
            clock.advance(seconds=61)
            await harness.tools(run, [call(1)])
    assert left.value.outcome == "TIMED_OUT"
    assert each(journal.events("r"), "attempt.started") == []


async def test_a_batch_whose_start_is_lost_invokes_nothing(harness: Harness, journal: HandJournal):  # E3, D1
    with left_with(LedgerUnavailable):
        async with harness.run(**RUN) as run:
            journal.holds = True
            batch = asyncio.ensure_future(harness.tools(run, [ToolCall(fail), ToolCall(fail)]))
            await until(lambda: journal.waiting)
            journal.lose()
            journal.store_all()
            await batch
    assert each(journal.events("r"), "attempt.started") == []
    assert only(journal.events("r"), "run.terminated").reason == "LEDGER_UNAVAILABLE"


async def test_a_coroutine_of_a_batch_that_is_thrown_away_leaves_no_call_running(harness, journal):
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(run: RunContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with harness.run(**RUN) as run:
        batch: Any = harness.tools(run, [ToolCall(wait)])
        while not begun.is_set():
            waited_for = batch.send(None)
            await until(lambda waited_for=waited_for: begun.is_set() or waited_for.done())
        batch.close()
        await ended.wait()
    assert [event.type for event in journal.events("r")][-1] == "run.terminated"
