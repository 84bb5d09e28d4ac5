"""What nested scopes count: tokens, cost and bytes, also what is unknown or only observed (SPEC D5, H4a, H9)."""

import asyncio
import threading
from typing import Any

import pytest

from harness import (
    CapacityExceeded,
    Harness,
    InvalidInput,
    Price,
    PriceTable,
    RunContext,
    RunEnded,
    ScopeExhausted,
    ScopeLimits,
    TokenUsage,
)
from tests.harness.fakes import (
    HandJournal,
    Reply,
    each,
    harness_over,
    left_with,
    limits,
    only,
    race,
    say,
    types,
    until,
)


async def ask(run: RunContext, tokens: int = 0) -> Reply:
    return Reply(TokenUsage(0, tokens))


def used(run: RunContext, resource: str) -> int:
    return run.budget.snapshot().usage.get(resource, 0)


async def test_tokens_above_a_limit_of_a_scope_are_returned_and_end_it(harness: Harness, journal: HandJournal):  # H4a
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(output_tokens=100)) as child:
            reply = await harness.model(child, "ask", ask, args={"tokens": 11_210})
            assert reply.usage == TokenUsage(0, 11_210)
            with pytest.raises(ScopeExhausted, match="output_tokens 11210 of 100"):
                await harness.tool(child, "say", say)
        await harness.model(run, "ask", ask, args={"tokens": 1})
    exhausted = only(journal.events("r"), "scope.exhausted")
    assert (exhausted.resource, exhausted.used, exhausted.limit) == ("output_tokens", 11_210, 100)
    assert journal.state("r").usage["output_tokens"] == 11_211


async def test_tokens_above_limits_of_run_and_scope_end_the_run(harness: Harness, journal: HandJournal):  # H4a
    with left_with(RunEnded, match="output_tokens 200 of 150"):
        async with harness.run(session_id="s", run_id="r", limits=limits(output_tokens=150), timeout_s=60) as run:
            with harness.scope(run, "planner", limits=ScopeLimits(output_tokens=100)) as child:
                await harness.model(child, "ask", ask, args={"tokens": 200})
    assert "scope.exhausted" not in types(journal.events("r"))


async def test_an_estimate_above_a_limit_of_a_scope_is_never_sent_and_a_smaller_one_is_given_back(
    harness: Harness, journal: HandJournal
):  # CASES 3, D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(output_tokens=100)) as child:
            await harness.model(child, "ask", ask, args={"tokens": 5}, reserve=TokenUsage(0, 100))
            assert (used(child, "output_tokens"), used(run, "output_tokens")) == (5, 5)
            with pytest.raises(ScopeExhausted, match="output_tokens 5 of 100"):
                await harness.model(child, "ask", ask, reserve=TokenUsage(0, 96))
    assert len(each(journal.events("r"), "attempt.started")) == 1


async def test_unknown_usage_is_flagged_in_the_scope_too(harness: Harness):  # CASES 9
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(output_tokens=100)) as child:
            await harness.model(child, "ask", say, reserve=TokenUsage(0, 60))
            assert child.budget.snapshot().usage_unknown_count == 1
            assert used(child, "output_tokens") == 60
        await harness.model(run, "ask", say)
        assert run.budget.snapshot().usage_unknown_count == 2
        assert child.budget.snapshot().usage_unknown_count == 1


async def test_cost_is_limited_in_a_scope(journal: HandJournal):  # H4
    table = PriceTable("v1", "USD", {"m": Price(input_micros_per_million=0, output_micros_per_million=10**6)})
    harness = harness_over(journal, prices=table)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(cost_micros=5)) as child:
            await harness.model(child, "ask", ask, args={"tokens": 6}, model="m")
            with pytest.raises(ScopeExhausted, match="cost_micros 6 of 5"):
                await harness.model(child, "ask", ask, model="m")
    with pytest.raises(InvalidInput, match=r"limits\.cost_micros needs prices"):
        harness_over(journal).scope(run, "planner", limits=ScopeLimits(cost_micros=5))


async def test_an_observed_limit_of_a_scope_lets_the_work_through(harness: Harness, journal: HandJournal):  # D13
    observing = ScopeLimits(tool_calls=1, observe={"tool_calls"})
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=observing) as child:
            await harness.tool(child, "say", say)
            await harness.tool(child, "say", say)
            snapshot = child.budget.snapshot()
    assert (snapshot.limits, snapshot.observed) == ({}, {"tool_calls": 1})
    would = only(journal.events("r"), "limit.would_reject")
    assert (would.scope_id, would.resource, would.used, would.limit) == ("s1", "tool_calls", 1, 1)
    assert only(journal.events("r"), "scope.opened").limits == {"observe:tool_calls": 1}


async def test_bytes_of_a_scope_are_counted_rejected_and_end_it(harness: Harness, journal: HandJournal):  # H9
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(run_bytes=10)) as child:
            child.capacity.reserve(4)
            assert (child.capacity.used_bytes, child.capacity.limit_bytes) == (4, 10)
            with pytest.raises(CapacityExceeded):
                child.capacity.reserve(7)
            with harness.scope(child, "inner", timeout_s=5) as inner:
                assert (inner.capacity.used_bytes, inner.capacity.limit_bytes) == (4, 10)
            with pytest.raises(ScopeExhausted, match="run_bytes 4 of 10"):
                harness.reserve_bytes(child, 7)
        assert run.capacity.limit_bytes == 1_000_000
        assert run.capacity.used_bytes == 4
    rejected = only(journal.events("r"), "reservation.rejected")
    assert (rejected.scope_id, rejected.amount) == ("s1", 7)


async def test_a_result_too_big_for_a_scope_is_kept_as_size_and_digest_and_ends_it(
    harness: Harness, journal: HandJournal
):  # H9
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(run_bytes=10)) as child:
            assert len(await harness.tool(child, "cat", lambda run: "x" * 50)) == 50
            with pytest.raises(ScopeExhausted, match="run_bytes 2 of 10"):
                await harness.tool(child, "cat", say)
    ended = only(journal.events("r"), "attempt.succeeded")
    assert (ended.output_bytes, ended.output_stored) == (50, False)


async def test_an_answer_that_a_scope_has_no_bytes_for_can_be_given_outside_of_it(
    harness: Harness, journal: HandJournal
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with (
            harness.scope(run, "planner", limits=ScopeLimits(run_bytes=1)) as child,
            pytest.raises(ScopeExhausted),
        ):
            harness.answer(child, "too long")
        harness.answer(run, "a longer answer")
    assert only(journal.events("r"), "answer.recorded").answer_bytes == len("a longer answer")


async def test_scopes_side_by_side_and_three_deep_add_up_exactly(journal: HandJournal):  # D5, CASES 2, 12
    harness = harness_over(journal)
    barrier = threading.Barrier(16)

    def work(run: RunContext, tokens: int) -> Reply:
        barrier.wait(timeout=30)
        return Reply(TokenUsage(tokens, 1))

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:

        async def agent(number: int) -> list[int]:
            three_deep: list[RunContext] = []
            with (
                harness.scope(run.branch(f"{number}"), "a", limits=ScopeLimits(model_calls=2)) as a,
                harness.scope(a, "b", limits=ScopeLimits(model_calls=2)) as b,
                harness.scope(b, "c", limits=ScopeLimits(model_calls=2)) as c,
            ):
                three_deep += (a, b, c)
                await harness.model(c, "ask", work, args={"tokens": 1000 + number})
                await harness.model(b, "ask", ask, args={"tokens": 1})
            return [used(each_run, "total_tokens") for each_run in three_deep]

        totals = await asyncio.gather(*(agent(number) for number in range(16)))
    assert totals == [[1002 + number, 1002 + number, 1001 + number] for number in range(16)]
    state = journal.state("r")
    assert state.usage["total_tokens"] == sum(1002 + number for number in range(16))
    assert (state.usage["model_calls"], state.scopes) == (32, {})


async def test_of_threads_that_race_for_the_last_call_of_a_scope_one_gets_it(journal: HandJournal):  # D5, CASES 2
    harness = harness_over(journal)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child:

            def call(number: int) -> Any:
                async def work() -> Any:
                    return await harness.tool(child.branch(f"{number}"), "say", say)

                return lambda: asyncio.run(work())

            results = await asyncio.to_thread(race, [call(number) for number in range(32)])
        await harness.tool(run, "say", say)
    assert [type(result) for result in results].count(dict) == 1
    assert [type(result) for result in results].count(ScopeExhausted) == 31
    assert types(journal.events("r")).count("scope.exhausted") == 1
    assert journal.state("r").usage["tool_calls"] == 2


async def test_an_end_that_comes_after_its_scope_was_left_is_charged_to_the_run(
    harness: Harness, journal: HandJournal
):  # D4, D5
    go_on = asyncio.Event()

    async def slow(run: RunContext) -> Reply:
        await go_on.wait()
        return Reply(TokenUsage(0, 500))

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(output_tokens=100)) as child:
            asking = asyncio.ensure_future(harness.model(child, "ask", slow))
            await until(lambda: each(journal.events("r"), "attempt.started"))
        go_on.set()
        await asking
        assert (used(run, "output_tokens"), used(child, "output_tokens")) == (500, 0)
    assert "scope.exhausted" not in types(journal.events("r"))
