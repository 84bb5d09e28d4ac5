"""Cost is exact, from one table of prices, and what is not known of it is never 0 (SPEC H4)."""

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import (
    Harness,
    InvalidInput,
    Price,
    PriceTable,
    RunContext,
    RunEnded,
    TokenUsage,
    UnpricedModel,
)
from harness.budget.prices import MAX_PRICE_MICROS
from harness.budget.usage import MAX_REPORTED_TOKENS
from harness.events.base import MAX_SAFE_INTEGER
from tests.harness.fakes import HandJournal, Reply, each, harness_over, left_with, limits, only, say, types

PRICES = PriceTable(
    "2026-11",
    "USD",
    {
        "small": Price(input_micros_per_million=150_000, output_micros_per_million=600_000),
        "free": Price(input_micros_per_million=0, output_micros_per_million=0),
    },
)
LENIENT = PriceTable("2026-11", "USD", PRICES.prices, unpriced="allow")


async def ask(run: RunContext, tokens_in: int | None = None, tokens_out: int | None = None) -> Reply:
    return Reply(TokenUsage(tokens_in, tokens_out))


@pytest.fixture
def harness(journal: HandJournal) -> Harness:
    return harness_over(journal, prices=PRICES)


counts = st.integers(0, MAX_REPORTED_TOKENS)
prices = st.integers(0, 10**9)


@given(counts, counts, prices, prices)
def test_cost_is_the_exact_product_rounded_up_once(tokens_in: int, tokens_out: int, price_in: int, price_out: int):
    price = Price(input_micros_per_million=price_in, output_micros_per_million=price_out)
    exact = Fraction(tokens_in * price_in, 1_000_000) + Fraction(tokens_out * price_out, 1_000_000)
    assert price.cost_micros(TokenUsage(tokens_in, tokens_out)) == ceil(exact)


@pytest.mark.parametrize("usage", [TokenUsage(), TokenUsage(5), TokenUsage(None, 5)])
@pytest.mark.parametrize("model", ["small", "free"])
def test_unknown_usage_has_unknown_cost_whatever_the_price(usage: TokenUsage, model: str):
    assert PRICES.cost_micros(model, usage) is None


def test_a_free_model_costs_nothing_which_is_known():  # CASES 8
    assert PRICES.cost_micros("free", TokenUsage(7, 7)) == 0
    assert LENIENT.cost_micros("other", TokenUsage(7, 7)) is None


@pytest.mark.parametrize("field", ["input_micros_per_million", "output_micros_per_million"])
@pytest.mark.parametrize("bad", [-1, True, None, 1.5, float("inf"), "7", MAX_PRICE_MICROS + 1], ids=repr)
def test_a_price_is_a_whole_number_from_zero(field: str, bad: Any):  # CASES 8
    figures: dict[str, Any] = {"input_micros_per_million": 1, "output_micros_per_million": 1, field: bad}
    with pytest.raises(InvalidInput, match=f"price.{field} must be a whole number from 0 to {MAX_PRICE_MICROS}, not"):
        Price(**figures)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"version": ""}, "prices.version"),
        ({"version": 7}, "prices.version"),
        ({"currency": "US dollar"}, "prices.currency"),
        ({"currency": None}, "prices.currency"),
        ({"prices": None}, "prices.prices"),
        ({"prices": [("small", 1)]}, "prices.prices"),
        ({"prices": {"small": 1}}, "prices.prices[small]"),
        ({"prices": {7: PRICES.prices["small"]}}, "prices.prices"),
        ({"prices": {f"m{n}": PRICES.prices["small"] for n in range(1001)}}, "prices.prices"),
        ({"unpriced": "ignore"}, "prices.unpriced"),
        ({"unpriced": None}, "prices.unpriced"),
    ],
)
def test_a_price_table_names_what_is_wrong_with_it(changed: dict[str, Any], field: str):
    fields: dict[str, Any] = {"version": "v1", "currency": "USD", "prices": {}, **changed}
    with pytest.raises(InvalidInput) as refused:
        PriceTable(**fields)
    assert refused.value.field == field


def test_prices_do_not_change_with_the_mapping_they_came_from():
    given_prices = {"small": PRICES.prices["small"]}
    table = PriceTable("v1", "USD", given_prices)
    given_prices.clear()
    assert "small" in table.prices


def test_an_engine_takes_a_price_table_only(journal: HandJournal):
    with pytest.raises(InvalidInput, match="prices must be a PriceTable, not dict"):
        harness_over(journal, prices={"small": 1})


def test_a_limit_on_cost_without_prices_is_refused(journal: HandJournal):
    with pytest.raises(InvalidInput, match=r"limits\.cost_micros needs prices"):
        harness_over(journal).run(session_id="s", limits=limits(cost_micros=1), timeout_s=60)
    assert journal.submissions == []


async def test_a_run_says_by_which_prices_its_cost_was_reckoned(harness: Harness, journal: HandJournal):  # E11
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", ask, args={"tokens_in": 1, "tokens_out": 1}, model="small")
        assert run.budget.snapshot().usage["cost_micros"] == 1
    started = only(journal.events("r"), "run.started")
    assert (started.currency, started.price_table) == ("USD", "2026-11")
    assert only(journal.events("r"), "usage.settled").usage["cost_micros"] == 1


async def test_without_prices_no_cost_is_reckoned_and_none_is_missing(journal: HandJournal):
    harness = harness_over(journal)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", ask, args={"tokens_in": 1, "tokens_out": 1}, model="small")
    assert only(journal.events("r"), "run.started").currency is None
    assert "cost_micros" not in journal.state("r").usage
    assert journal.state("r").cost_unknown_count == 0


async def test_cost_above_a_limit_is_recorded_as_it_was_and_refuses_the_next_step(
    harness: Harness, journal: HandJournal
):  # H4a
    with left_with(RunEnded, match="cost_micros 750 of 500"):
        async with harness.run(session_id="s", run_id="r", limits=limits(cost_micros=500), timeout_s=60) as run:
            reply = await harness.model(run, "ask", ask, args={"tokens_in": 1000, "tokens_out": 1000}, model="small")
            assert reply.usage == TokenUsage(1000, 1000)
            with pytest.raises(RunEnded, match="cost_micros 750 of 500"):
                await harness.tool(run, "say", say)
    assert journal.state("r").usage["cost_micros"] == 750


@pytest.mark.parametrize("model", ["large", None])
async def test_a_model_without_a_price_is_refused_before_anything_is_reserved(
    harness: Harness, journal: HandJournal, model: str | None
):  # H4
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(UnpricedModel) as refused:
            harness.model(run, "ask", ask, model=model)
        await harness.model(run, "ask", ask, args={"tokens_in": 1, "tokens_out": 1}, model="free")
    assert (refused.value.code, refused.value.model, refused.value.version) == ("unpriced_model", model, "2026-11")
    assert only(journal.events("r"), "attempt.started").boundary == "model/ask/1/1"


async def test_a_model_without_a_price_that_is_allowed_has_unknown_cost_and_is_flagged(journal: HandJournal):  # H4
    harness = harness_over(journal, prices=LENIENT)
    async with harness.run(session_id="s", run_id="r", limits=limits(cost_micros=1), timeout_s=60) as run:
        await harness.model(run, "ask", ask, args={"tokens_in": 1000, "tokens_out": 1}, model="large")
        snapshot = run.budget.snapshot()
    assert (snapshot.cost_unknown_count, snapshot.usage_unknown_count) == (1, 0)
    assert "cost_micros" not in snapshot.usage
    assert each(journal.events("r"), "usage.settled")[0].usage["total_tokens"] == 1001


async def test_an_observed_limit_on_cost_is_only_told(harness: Harness, journal: HandJournal):  # D13
    observing = limits(cost_micros=1, observe={"cost_micros"})
    async with harness.run(session_id="s", run_id="r", limits=observing, timeout_s=60) as run:
        await harness.model(run, "ask", ask, args={"tokens_in": 1000, "tokens_out": 0}, model="small")
        await harness.model(run, "ask", ask, args={"tokens_in": 1000, "tokens_out": 0}, model="small")
    would = only(journal.events("r"), "limit.would_reject")
    assert (would.resource, would.used, would.limit) == ("cost_micros", 150, 1)
    assert types(journal.events("r")).count("attempt.started") == 2


async def test_a_cost_above_what_an_event_can_hold_still_ends_the_run(journal):  # H4a, H5, D9
    dearest = Price(input_micros_per_million=MAX_PRICE_MICROS, output_micros_per_million=MAX_PRICE_MICROS)
    harness = harness_over(journal, prices=PriceTable("1", "USD", {"m": dearest}))
    tokens = limits(
        cost_micros=MAX_SAFE_INTEGER, **dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 10**15)
    )
    with left_with(RunEnded, match="cost_micros 18014398509481982 of 9007199254740991"):
        async with harness.run(session_id="s", run_id="r", limits=tokens, timeout_s=60) as run:
            for _ in range(3):
                most = {"tokens_in": MAX_REPORTED_TOKENS, "tokens_out": MAX_REPORTED_TOKENS}
                await harness.model(run, "planner", ask, args=most, model="m")
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.resource, end.used) == ("BUDGET_EXHAUSTED", "cost_micros", MAX_SAFE_INTEGER)
