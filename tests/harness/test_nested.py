"""Nested scopes narrow: their limits end them only, and everything is charged to all that is around (SPEC D5)."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from harness import (
    CancelReason,
    CapacityExceeded,
    FailureType,
    Harness,
    InvalidInput,
    ManualClock,
    OperationKind,
    Price,
    PriceTable,
    RetryPolicy,
    RunContext,
    RunEnded,
    ScopeExhausted,
    ScopeLimits,
    ScopeNotOpen,
    SyncHarness,
    TokenUsage,
    TypedFailure,
)
from harness.block import scope as block
from harness.concurrency.threads import ToolThreads
from tests.harness.fakes import (
    HandJournal,
    each,
    harness_in_real_time,
    harness_over,
    left_with,
    limits,
    only,
    race,
    say,
    types,
    until,
)


@dataclass(frozen=True)
class Reply:
    usage: TokenUsage | None


async def ask(run: RunContext, tokens: int = 0) -> Reply:
    return Reply(TokenUsage(0, tokens))


def used(run: RunContext, resource: str) -> int:
    return run.budget.snapshot().usage.get(resource, 0)


async def test_what_a_scope_uses_is_charged_to_it_to_those_around_it_and_to_the_run(
    harness: Harness, journal: HandJournal
):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "say", say)
        with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=9)) as planner:
            await harness.tool(planner, "say", say)
            with harness.scope(planner, "worker", limits=ScopeLimits(tool_calls=9)) as worker:
                await harness.model(worker, "ask", ask, args={"tokens": 5})
                await harness.tool(worker, "say", say)
                worker.capacity.reserve(7)
            with harness.scope(planner, "worker", limits=ScopeLimits(tool_calls=9)) as second:
                await harness.tool(second, "say", say)
        counts = {name: used(each_run, "tool_calls") for name, each_run in (("run", run), ("planner", planner))}
        counts |= {"worker": used(worker, "tool_calls"), "second": used(second, "tool_calls")}
    assert counts == {"run": 4, "planner": 3, "worker": 1, "second": 1}
    assert [used(each_run, "output_tokens") for each_run in (run, planner, worker, second)] == [5, 5, 5, 0]
    opened = each(journal.events("r"), "scope.opened")
    assert [(event.scope_id, event.parent_scope_id, event.boundary) for event in opened] == [
        ("s1", None, "scope/planner/1/1"),
        ("s2", "s1", "scope/planner/1/1/scope/worker/1/1"),
        ("s3", "s1", "scope/planner/1/1/scope/worker/2/1"),
    ]
    closed = [event.scope_id for event in each(journal.events("r"), "scope.closed")]
    assert closed == ["s2", "s3", "s1"]
    granted = each(journal.events("r"), "reservation.granted")
    assert [event.scope_id for event in granted] == [None, "s1", "s2", "s2", "s2", "s3"]
    assert [event.scope_id for event in each(journal.events("r"), "attempt.started")] == [None, "s1", "s2", "s2", "s3"]


async def test_a_scope_shares_the_handles_of_its_run_and_narrows_its_views(harness: Harness):  # D5, H1a
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(model_calls=3), timeout_s=5) as child:
            assert (child.cancellation, child.lifecycle, child.live) == (run.cancellation, run.lifecycle, run.live)
            assert (child.session_id, child.run_id) == (run.session_id, run.run_id)
            assert child.budget.snapshot().limits == {"model_calls": 3}
            assert child.deadline.at_ns == 5_000_000_000
            assert child.path == ("scope", "planner", "1", "1")
            inside = await harness.tool(child, "look", lambda run: run)
            assert (inside.budget, inside.deadline) == (child.budget, child.deadline)


@pytest.mark.parametrize(
    ("allowed", "resource", "crossing"),
    [
        (ScopeLimits(model_calls=2), "model_calls", lambda harness, run: harness.model(run, "ask", ask)),
        (ScopeLimits(tool_calls=2), "tool_calls", lambda harness, run: harness.tool(run, "say", say)),
        (ScopeLimits(per_tool={"say": 2}), "tool:say", lambda harness, run: harness.tool(run, "say", say)),
        (ScopeLimits(per_tool_default=2), "tool:say", lambda harness, run: harness.tool(run, "say", say)),
        (ScopeLimits(repeated_calls=2), "repeat:say", lambda harness, run: harness.tool(run, "say", say)),
    ],
)
async def test_the_call_beyond_a_limit_of_a_scope_ends_that_scope_only(
    harness: Harness, journal: HandJournal, allowed: ScopeLimits, resource: str, crossing: Any
):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "sibling", limits=allowed) as sibling:
            with left_with(ScopeExhausted) as left, harness.scope(run, "planner", limits=allowed) as child:
                for _ in range(2):
                    await crossing(harness, child)
                before = journal.state("r").usage
                await crossing(harness, child)
            await crossing(harness, sibling)
        assert journal.state("r").usage != before
        assert run.cancellation.reason is None
        await crossing(harness, run)
    error = left.value
    assert (error.code, error.scope, error.resource) == ("scope_exhausted", "scope/planner/1/1", resource)
    assert (error.session_id, error.run_id, error.used, error.limit) == ("s", "r", 2, 2)
    (refusal,) = [each for each in journal.submissions if "reservation.rejected" in types(each.events)]
    assert types(refusal.events) == ["reservation.rejected", "scope.exhausted"]
    assert refusal.is_awaited
    assert [event.scope_id for event in refusal.events] == ["s2", "s2"]  # type: ignore[attr-defined]
    assert journal.state("r").outcome == "SUCCESS"


async def test_in_an_exhausted_scope_and_inside_it_nothing_starts_and_nothing_is_recorded(
    harness: Harness, journal: HandJournal
):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with (
            harness.scope(run, "outer", limits=ScopeLimits(tool_calls=1)) as outer,
            harness.scope(outer, "inner", limits=ScopeLimits(tool_calls=9)) as inner,
        ):
            await harness.tool(inner, "say", say)
            with pytest.raises(ScopeExhausted):
                await harness.tool(inner, "say", say)
            recorded = len(journal.events("r"))
            for child in (outer, inner):
                for doing in everything_in(harness, child):
                    with pytest.raises(ScopeExhausted, match=r"scope/outer/1/1 of run s/r .* tool_calls 1 of 1"):
                        await doing()
            assert len(journal.events("r")) == recorded
        assert only(journal.events("r"), "scope.exhausted").scope_id == "s1"
        harness.answer(run, "all the same")


def everything_in(harness: Harness, run: RunContext) -> list[Any]:
    def at_once(action: Any) -> Any:
        async def doing() -> None:
            action()

        return doing

    return [
        lambda: harness.tool(run, "say", say),
        lambda: harness.model(run, "ask", ask),
        lambda: harness.guard(run.branch("b"), "check", say),
        at_once(lambda: harness.transition(run, None, "planner")),
        at_once(lambda: harness.select_flow(run, "CHAT_GRAPH")),
        at_once(lambda: harness.finish_graph(run, final_node="end", reason="DONE")),
        at_once(lambda: harness.reserve_bytes(run, 1)),
        at_once(lambda: run.capacity.reserve(1)),
        at_once(lambda: harness.answer(run, "42")),
        at_once(lambda: harness.scope(run, "more", timeout_s=1).__enter__()),
    ]


async def test_in_a_scope_that_was_left_nothing_starts_and_nothing_is_recorded(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child:
            await harness.tool(child, "say", say)
        recorded = len(journal.events("r"))
        for doing in everything_in(harness, child):
            with pytest.raises(ScopeNotOpen) as refused:
                await doing()
            assert (refused.value.code, refused.value.scope) == ("scope_not_open", "scope/planner/1/1")
        assert len(journal.events("r")) == recorded
        assert used(child, "tool_calls") == 1


async def test_after_the_runs_end_a_scope_raises_what_its_run_raises(harness: Harness, journal: HandJournal):
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child:
                run.cancellation.signal(CancelReason.USER_REQUESTED)
                for doing in everything_in(harness, child):
                    with pytest.raises(RunEnded, match="USER_REQUESTED"):
                        await doing()
    assert types(journal.events("r"))[-2:] == ["cancellation.signalled", "run.terminated"]
    assert "scope.closed" not in types(journal.events("r"))


@pytest.mark.parametrize("error", [KeyError("out"), asyncio.CancelledError(), GeneratorExit(), KeyboardInterrupt()])
async def test_a_scope_is_closed_on_every_way_out(harness: Harness, journal: HandJournal, error: BaseException):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with left_with(type(error)), harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)):
            raise error
        await harness.tool(run, "say", say)
    assert types(journal.events("r"))[1:3] == ["scope.opened", "scope.closed"]


async def test_a_scope_that_is_left_closes_what_is_open_inside_it_the_innermost_first(
    harness: Harness, journal: HandJournal
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        outer = harness.scope(run, "outer", timeout_s=9)
        middle = harness.scope(outer.__enter__(), "middle", timeout_s=8)
        inner = harness.scope(middle.__enter__(), "inner", limits=ScopeLimits(tool_calls=2))
        child = inner.__enter__()
        await harness.tool(child, "say", say)
        outer.__exit__(None, None, None)
        recorded = types(journal.events("r"))
        for block in (inner, middle, outer):
            block.__exit__(None, None, None)
        assert types(journal.events("r")) == recorded
        assert used(child, "tool_calls") == 1
    assert [event.scope_id for event in each(journal.events("r"), "scope.closed")] == ["s3", "s2", "s1"]


async def test_where_run_and_scope_would_both_refuse_the_run_does(harness: Harness, journal: HandJournal):  # D5
    with left_with(RunEnded, match="tool_calls 1 of 1"):
        async with harness.run(session_id="s", run_id="r", limits=limits(tool_calls=1), timeout_s=60) as run:
            with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child:
                await harness.tool(child, "say", say)
                await harness.tool(child, "say", say)
    assert only(journal.events("r"), "reservation.rejected").scope_id is None
    assert "scope.exhausted" not in types(journal.events("r"))


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


async def test_a_child_never_extends_a_deadline(harness: Harness, journal: HandJournal, clock: ManualClock):  # D5, H2
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=10) as run:
        with harness.scope(run, "long", timeout_s=100) as long:
            assert long.deadline == run.deadline
            with harness.scope(long, "short", timeout_s=4) as short:
                assert short.deadline.at_ns == 4_000_000_000
                clock.advance(1)
                with harness.scope(short, "longer", timeout_s=4) as longer:
                    assert longer.deadline == short.deadline
    assert [event.timeout_us for event in each(journal.events("r"), "scope.opened")] == [None, 4_000_000, None]


async def test_at_a_scopes_deadline_nothing_more_starts_in_it_and_the_run_goes_on(
    harness: Harness, journal: HandJournal, clock: ManualClock
):  # D5, H2
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        clock.advance(1)
        with harness.scope(run, "planner", timeout_s=5) as child:
            clock.advance(5)
            with pytest.raises(ScopeExhausted, match="deadline_us 5000000 of 5000000"):
                await harness.tool(child, "say", say)
        with harness.scope(run, "planner", timeout_s=5) as child:
            clock.advance(6)
            with pytest.raises(ScopeExhausted, match="deadline_us 6000000 of 5000000"):
                harness.transition(child, None, "planner")
        await harness.tool(run, "say", say)
    events = journal.events("r")
    rejected = only(events, "reservation.rejected")
    assert (rejected.resource, rejected.scope_id) == ("deadline_us", "s1")
    assert [event.scope_id for event in each(events, "scope.exhausted")] == ["s1", "s2"]
    assert len(each(events, "attempt.started")) == 1


async def test_a_failure_within_an_exhausted_scope_is_never_retried(harness: Harness, journal: HandJournal):  # D5, H6
    async def over(run: RunContext) -> None:
        with harness.scope(run, "small", limits=ScopeLimits(tool_calls=1)) as small:
            await harness.tool(small, "say", say)
            await harness.tool(small, "say", say)

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(ScopeExhausted):
            await harness.model(run, "route", over, kind=OperationKind.INTENT_ROUTER)
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.will_retry) == ("SCOPE_ENDED", False)
    with pytest.raises(InvalidInput, match="SCOPE_ENDED"):
        RetryPolicy(OperationKind.INTENT_ROUTER, 2, frozenset({FailureType.SCOPE_ENDED}))


async def test_a_scope_exhausted_by_a_failed_attempt_has_no_next_one(harness: Harness, journal: HandJournal):  # D5, H6
    async def costly(run: RunContext) -> None:
        raise TypedFailure(FailureType.MALFORMED_REPLY, "no JSON", usage=TokenUsage(0, 101))

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with (
            harness.scope(run, "small", limits=ScopeLimits(output_tokens=100)) as small,
            pytest.raises(ScopeExhausted, match="output_tokens 101 of 100"),
        ):
            await harness.model(small, "route", costly, kind=OperationKind.INTENT_ROUTER)
    assert len(each(journal.events("r"), "attempt.started")) == 1


async def test_a_scope_that_ends_the_run_is_told_by_the_run(harness: Harness, journal: HandJournal):
    with left_with(ScopeExhausted):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            with harness.scope(run, "small", limits=ScopeLimits(tool_calls=1)) as small:
                await harness.tool(small, "say", say)
                await harness.tool(small, "say", say)
    state = journal.state("r")
    assert (state.outcome, state.reason) == ("FAILED", "SCOPE_EXHAUSTED")


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


async def test_a_start_that_becomes_durable_after_its_scope_ended_is_not_invoked(
    harness: Harness, journal: HandJournal
):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=9)) as child:
            journal.holds = True
            calling = asyncio.ensure_future(harness.tool(child, "say", say))
            await until(lambda: journal.waiting)
        journal.store_all()
        with pytest.raises(ScopeNotOpen):
            await calling
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"limits": {"tool_calls": 1}}, "limits"),
        ({"limits": 7}, "limits"),
        ({"limits": None}, "limits"),
        ({"limits": ScopeLimits()}, "limits"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"timeout_s": True}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
        ({"timeout_s": "5"}, "timeout_s"),
    ],
)
async def test_a_scope_names_what_is_wrong_with_it_and_nothing_is_recorded(
    harness: Harness, journal: HandJournal, changed: dict[str, Any], field: str
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        fields: dict[str, Any] = {"name": "planner", "limits": ScopeLimits(tool_calls=1)} | changed
        name = fields.pop("name")
        with pytest.raises(InvalidInput) as refused:
            harness.scope(run, name, **fields)
        assert refused.value.field == field
        with harness.scope(run, "planner", timeout_s=1):
            assert only(journal.events("r"), "scope.opened").boundary == "scope/planner/1/1"


async def test_a_scope_is_entered_once(harness: Harness):
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        block = harness.scope(run, "planner", timeout_s=5)
        with block, pytest.raises(InvalidInput, match="entered before"):
            block.__enter__()
        with pytest.raises(InvalidInput, match="entered before"):
            block.__enter__()


async def test_only_so_many_scopes_are_open_at_a_time(harness: Harness, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(block, "MAX_OPEN_SCOPES", 2)
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with (
            harness.scope(run, "a", timeout_s=5) as a,
            harness.scope(a, "b", timeout_s=5) as b,
            pytest.raises(InvalidInput, match="one more than 2"),
        ):
            harness.scope(b, "c", timeout_s=5).__enter__()
        with harness.scope(run, "d", timeout_s=5):
            pass


async def test_no_branch_has_the_identity_of_a_scope(harness: Harness):  # D7
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="that of an attempt, nested scope or batch"):
            run.branch("scope").branch("planner").branch("1").branch("1")


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_is_in_flight_at_a_scopes_deadline_is_stopped_and_the_run_goes_on(
    journal: HandJournal, is_async: bool
):  # D5, H2
    harness = harness_in_real_time(journal)
    go_on = threading.Event()

    async def hang(run: RunContext) -> None:
        await asyncio.Event().wait()

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "outer", timeout_s=30) as outer, harness.scope(outer, "inner", timeout_s=0.05) as inner:
            with pytest.raises(ScopeExhausted, match="scope/inner/1/1 of run s/r is exhausted: deadline_us"):
                await harness.tool(inner, "hang", hang if is_async else lambda run: go_on.wait(30))
            await harness.tool(outer, "say", say)
        assert run.lifecycle.is_running
        go_on.set()
    events = journal.events("r")
    assert only(events, "scope.exhausted").scope_id == "s2"
    ended = only(events, "attempt.failed" if is_async else "attempt.abandoned")
    assert ended.boundary == "scope/outer/1/1/scope/inner/1/1/tool/hang/1/1"
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_start_that_is_not_durable_by_a_scopes_deadline_is_not_invoked(journal: HandJournal):  # D5, E3
    harness = harness_in_real_time(journal)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", timeout_s=0.05) as child:
            journal.holds = True
            with pytest.raises(ScopeExhausted, match="deadline_us"):
                await harness.tool(child, "say", say)
            journal.store_all()
        await harness.tool(run, "say", say)
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


async def test_at_the_runs_deadline_a_scope_that_was_left_is_told_so_by_the_run(
    harness: Harness, journal: HandJournal, clock: ManualClock
):  # H2
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            with harness.scope(run, "planner", timeout_s=5) as child:
                await harness.tool(child, "say", say)
            clock.advance(60)
            with pytest.raises(RunEnded, match="TIMED_OUT"):
                await harness.tool(child, "say", say)
    assert only(journal.events("r"), "reservation.rejected").resource == "deadline_us"


def test_plain_threads_have_nested_scopes_by_the_same_name(journal: HandJournal):  # D5
    with (
        SyncHarness(journal, threads=ToolThreads(idle_s=0.0)) as harness,
        harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
        harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child,
    ):
        harness.tool(child, "say", say)
        with pytest.raises(ScopeExhausted, match="tool_calls 1 of 1"):
            harness.tool(child, "say", say)
        harness.tool(run, "say", say)
    assert types(journal.events("r"))[-2:] == ["scope.closed", "run.terminated"]
