"""Tokens and their cost can be reserved before a model is asked, and settle by what was used (SPEC H4, H4a)."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from harness import (
    FailureType,
    Harness,
    InvalidInput,
    OperationKind,
    Price,
    PriceTable,
    RunContext,
    RunEnded,
    TokenUsage,
    TypedFailure,
)
from tests.harness.fakes import HandJournal, Reply, each, harness_over, left_with, limits, only, say, types, until

PRICES = PriceTable("v1", "USD", {"m": Price(input_micros_per_million=1_000_000, output_micros_per_million=2_000_000)})


@pytest.fixture
def harness(journal: HandJournal) -> Harness:
    return harness_over(journal, prices=PRICES)


def replying(usage: TokenUsage | None) -> Any:
    async def ask(run: RunContext) -> Reply:
        return Reply(usage)

    return ask


def tokens(usage: Mapping[str, int]) -> dict[str, int]:
    return {name: used for name, used in usage.items() if name.endswith("_tokens") or name == "cost_micros"}


async def test_an_estimate_above_a_limit_is_refused_before_it_is_sent(
    harness: Harness, journal: HandJournal
):  # CASES 3
    sent = []
    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(output_tokens=100), timeout_s=60) as run:
            await harness.model(run, "ask", lambda run: sent.append(1), model="m", reserve=TokenUsage(10, 101))
    assert sent == []
    assert (ended.value.resource, ended.value.used, ended.value.limit) == ("output_tokens", 0, 100)
    rejected = only(journal.events("r"), "reservation.rejected")
    assert (rejected.resource, rejected.amount) == ("output_tokens", 101)
    assert tokens(journal.state("r").usage) == {}


async def test_the_cost_of_an_estimate_is_reserved_too(harness: Harness, journal: HandJournal):  # H4
    with left_with(RunEnded, match="cost_micros 0 of 29"):
        async with harness.run(session_id="s", run_id="r", limits=limits(cost_micros=29), timeout_s=60) as run:
            await harness.model(run, "ask", say, model="m", reserve=TokenUsage(10, 10))
    assert only(journal.events("r"), "reservation.rejected").amount == 30


async def test_what_was_reserved_and_not_used_is_given_back(harness: Harness, journal: HandJournal):  # H4a
    async with harness.run(session_id="s", run_id="r", limits=limits(output_tokens=100), timeout_s=60) as run:

        async def ask(inside: RunContext) -> Reply:
            assert tokens(inside.budget.snapshot().usage) == {
                "input_tokens": 40,
                "output_tokens": 60,
                "total_tokens": 100,
                "cost_micros": 160,
            }
            return Reply(TokenUsage(7, 20))

        await harness.model(run, "ask", ask, model="m", reserve=TokenUsage(40, 60))
        after = {"input_tokens": 7, "output_tokens": 20, "total_tokens": 27, "cost_micros": 47}
        assert tokens(run.budget.snapshot().usage) == after
        await harness.model(run, "ask", replying(TokenUsage(0, 80)), model="m", reserve=TokenUsage(0, 80))
    granted = each(journal.events("r"), "reservation.granted")[0]
    assert tokens(granted.usage) == {"input_tokens": 40, "output_tokens": 60, "total_tokens": 100, "cost_micros": 160}
    assert tokens(journal.state("r").usage)["output_tokens"] == 100
    assert journal.state("r").reserved == {}


async def test_more_than_was_reserved_is_charged_as_it_was(harness: Harness, journal: HandJournal):  # H4a
    with left_with(RunEnded, match="output_tokens 101 of 100"):
        async with harness.run(session_id="s", run_id="r", limits=limits(output_tokens=100), timeout_s=60) as run:
            await harness.model(run, "ask", replying(TokenUsage(1, 101)), model="m", reserve=TokenUsage(1, 50))
    assert journal.state("r").usage["output_tokens"] == 101


async def test_usage_that_stays_unknown_keeps_its_reservation_and_is_flagged(
    harness: Harness, journal: HandJournal
):  # H4a, CASES 9
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", replying(None), model="m", reserve=TokenUsage(4, 6))
        snapshot = run.budget.snapshot()
    assert tokens(snapshot.usage) == {"input_tokens": 4, "output_tokens": 6, "total_tokens": 10, "cost_micros": 16}
    assert (snapshot.usage_unknown_count, snapshot.cost_unknown_count) == (1, 1)


async def test_a_part_that_stays_unknown_keeps_its_part_of_the_reservation(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", replying(TokenUsage(1, None)), model="m", reserve=TokenUsage(4, 6))
    usage = tokens(journal.state("r").usage)
    assert usage == {"input_tokens": 1, "output_tokens": 6, "total_tokens": 7, "cost_micros": 16}


async def test_one_half_can_be_reserved_alone_and_then_no_cost_is(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", replying(TokenUsage(3, 2)), model="m", reserve=TokenUsage(output_tokens=6))
    granted = only(journal.events("r"), "reservation.granted")
    assert tokens(granted.usage) == {"output_tokens": 6, "total_tokens": 6}
    usage = tokens(journal.state("r").usage)
    assert usage == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "cost_micros": 7}


async def test_each_attempt_reserves_anew_and_a_failed_one_is_charged_what_it_reports(
    harness: Harness, journal: HandJournal
):  # CASES 11
    async def malformed(run: RunContext) -> None:
        raise TypedFailure(FailureType.MALFORMED_REPLY, "no JSON", usage=TokenUsage(30, 4))

    route = OperationKind.INTENT_ROUTER
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypedFailure):
            await harness.model(run, "route", malformed, kind=route, model="m", reserve=TokenUsage(50, 50))
    assert [event.usage["input_tokens"] for event in each(journal.events("r"), "reservation.granted")] == [50, 50]
    usage = tokens(journal.state("r").usage)
    assert usage == {"input_tokens": 60, "output_tokens": 8, "total_tokens": 68, "cost_micros": 76}


async def test_an_attempt_that_was_never_invoked_gives_all_of_it_back(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        journal.holds = True
        asking = asyncio.ensure_future(harness.model(run, "ask", say, model="m", reserve=TokenUsage(4, 6)))
        await until(lambda: journal.waiting)
        assert tokens(run.budget.snapshot().usage)["total_tokens"] == 10
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        journal.store_all()
        assert set(tokens(run.budget.snapshot().usage).values()) == {0}
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"
    assert (journal.state("r").reserved, journal.state("r").usage_unknown_count) == ({}, 0)


async def test_a_late_end_settles_a_reservation_that_was_kept_until_then(harness: Harness, journal: HandJournal):  # D4
    started, go_on = threading.Event(), threading.Event()

    def ask(run: RunContext) -> Reply:
        started.set()
        go_on.wait(timeout=30)
        return Reply(TokenUsage(1, 2))

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        asking = asyncio.ensure_future(harness.model(run, "ask", ask, model="m", reserve=TokenUsage(4, 6)))
        await asyncio.to_thread(started.wait, 30)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        snapshot = run.budget.snapshot()
        assert (snapshot.usage["total_tokens"], snapshot.usage_unknown_count) == (10, 1)
        assert snapshot.cost_unknown_count == 1
    go_on.set()
    await until(lambda: each(journal.events("r"), "usage.settled"))
    state = journal.state("r")
    assert tokens(state.usage) == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "cost_micros": 5}
    assert (state.reserved, state.usage_unknown_count, state.cost_unknown_count) == ({}, 0, 0)
    assert types(journal.events("r"))[-2:] == ["attempt.finished_late", "usage.settled"]


async def test_what_others_have_only_reserved_is_no_overrun(harness: Harness, journal: HandJournal):  # H4a
    go_on = asyncio.Event()

    async def slow(run: RunContext) -> Reply:
        await go_on.wait()
        return Reply(TokenUsage(0, 10))

    allowed = limits(output_tokens=100)
    async with harness.run(session_id="s", run_id="r", limits=allowed, timeout_s=60) as run:
        reserve = TokenUsage(0, 60)
        slowly = asyncio.ensure_future(harness.model(run.branch("a"), "ask", slow, model="m", reserve=reserve))
        await until(lambda: each(journal.events("r"), "attempt.started"))
        await harness.model(run, "ask", replying(TokenUsage(0, 70)), model="m", reserve=TokenUsage(0, 40))
        assert run.budget.snapshot().usage["output_tokens"] == 130
        await harness.tool(run, "say", say)
        go_on.set()
        await slowly
    assert journal.state("r").usage["output_tokens"] == 80
    assert journal.state("r").outcome == "SUCCESS"


@pytest.mark.parametrize("bad", [0, 100, True, "100", {"output_tokens": 5}, TokenUsage()], ids=repr)
async def test_an_estimate_is_a_token_usage_that_says_something(harness: Harness, journal: HandJournal, bad: Any):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="reserve must"):
            harness.model(run, "ask", say, model="m", reserve=bad)
        await harness.model(run, "ask", say, model="m", reserve=TokenUsage(0, 0))
    assert only(journal.events("r"), "attempt.started").boundary == "model/ask/1/1"


async def test_of_two_estimates_that_do_not_fit_together_one_is_refused(harness: Harness, journal: HandJournal):
    started = asyncio.Event()

    async def ask(run: RunContext) -> None:
        started.set()
        await asyncio.Event().wait()

    with left_with(RunEnded, match="total_tokens 60 of 100"):
        async with harness.run(session_id="s", run_id="r", limits=limits(total_tokens=100), timeout_s=60) as run:
            first = asyncio.ensure_future(harness.model(run.branch("a"), "ask", ask, model="m", reserve=TokenUsage(60)))
            await started.wait()
            try:
                await harness.model(run.branch("b"), "ask", say, model="m", reserve=TokenUsage(41))
            finally:
                first.cancel()
                await asyncio.gather(first, return_exceptions=True)
    assert types(journal.events("r")).count("attempt.started") == 1
