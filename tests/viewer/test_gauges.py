"""Limits as gauges."""

from dataclasses import replace

from tests.viewer.example_runs import (
    astray_run,
    budget_run,
    degraded_run,
    overpriced_run,
    priced_run,
    running_run,
    success_run,
)
from viewer.present.trace.gauges import gauges


def of(run, **changes):
    detail = replace(run.trace().run, **changes)
    return {gauge.key: gauge for gauge in gauges(detail, detail.elapsed_us or 900_000)}


def test_every_limit_is_there_time_first_and_no_other():
    assert list(of(budget_run())) == [
        "time",
        "model_calls",
        "tool_calls",
        "tool:query_logs",
        "tool:query_metrics",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "run_bytes",
    ]


def test_exactly_the_limit_that_ended_the_run_is_binding():
    assert [key for key, gauge in of(budget_run()).items() if gauge.tone == "binding"] == ["tool:query_logs"]
    assert of(budget_run())["tool:query_logs"].label == "query_logs"


def test_a_limit_that_is_reached_without_ending_the_run_is_not_binding():
    run = success_run()
    run.usage["model_calls"] = 8
    assert of(run)["model_calls"].tone == "high"


def test_a_run_out_of_time_is_bound_by_its_time():
    run = success_run().trace().run
    late = replace(run, summary=replace(run.summary, status="TIMED_OUT"), elapsed_us=60_000_000)
    time = gauges(late, 60_000_000)[0]
    assert (time.tone, time.used, time.limit, time.share) == ("binding", "60", "60 s", 1)


def test_unknown_usage_is_never_shown_as_nothing():
    tokens = of(degraded_run())["input_tokens"]
    assert (tokens.used, tokens.note) == ("unknown", "1 not reported")


def test_usage_known_in_part_is_a_lower_bound():
    assert of(budget_run(), usage_unknown_count=2)["output_tokens"].used == "≥ 517"


def test_usage_above_a_limit_is_shown_as_it_was_and_fills_the_gauge():
    gauge = of(budget_run(), usage={"output_tokens": 11_210}, limits={"output_tokens": 100})["output_tokens"]
    assert (gauge.used, gauge.limit, gauge.share) == ("11,210", "100", 1)


def test_a_tool_without_a_limit_of_its_own_has_the_default():
    assert of(success_run())["tool:open_ticket"].limit == "4"
    assert "tool_default" not in of(success_run())


def test_a_limit_of_a_kind_that_is_not_known_here_is_shown_too():
    assert of(budget_run(), limits={"cost_micro_usd": 5_000})["cost_micro_usd"].label == "Cost micro usd"


def test_a_limit_that_is_only_observed_says_so_and_is_never_what_ended_the_run():  # D13
    passed = of(astray_run())["tool:query_logs"]
    assert (passed.used, passed.limit, passed.note, passed.tone) == ("3", "2", "only observed", "passed")
    assert [key for key, gauge in of(astray_run()).items() if gauge.observed] == ["tool:query_logs", "repeated_calls"]
    refused = {"resource": "tool:query_logs", "used": 2, "limit": 2}
    run = astray_run().trace().run
    ended = replace(run, summary=replace(run.summary, status="BUDGET_EXHAUSTED"), refused=refused)
    assert not [gauge for gauge in gauges(ended, 1) if gauge.tone == "binding"]


def test_an_observed_default_is_for_the_tools_without_a_limit_of_their_own():  # D13
    found = of(success_run(), limits={"tool:query_metrics": 3}, observed_limits={"tool_default": 1})
    assert [(key, found[key].limit, found[key].observed) for key in found if key.startswith("tool:")] == [
        ("tool:open_ticket", "1", True),
        ("tool:query_metrics", "3", False),
    ]


def test_cost_is_money_in_the_currency_of_its_prices():
    cost = of(astray_run())["cost_micros"]
    assert (cost.label, cost.used, cost.limit, cost.share) == ("Cost", "0.01481", "0.05 USD", 0.2962)


def test_what_is_reserved_and_not_settled_is_told_and_drawn_apart():  # H4
    found = of(priced_run())
    tokens, cost = found["output_tokens"], found["cost_micros"]
    assert (tokens.used, tokens.note) == ("≥ 1,520", "1,500 of it reserved · 1 not reported")
    assert (tokens.share, tokens.settled_share) == (0.38, 0.005)
    assert (cost.used, cost.limit, cost.note) == ("≥ 0.01866", "0.05 EUR", "0.018 of it reserved · 1 not priced")
    assert found["model_calls"].share == found["model_calls"].settled_share


def test_the_limit_on_cost_can_be_what_ended_the_run():
    assert [key for key, gauge in of(overpriced_run()).items() if gauge.tone == "binding"] == ["cost_micros"]


def test_the_limit_on_repeated_calls_has_no_amount_of_its_own_and_can_be_what_ended_the_run():
    run = budget_run().trace().run
    ended = replace(run, limits={"repeated_calls": 3}, refused={"resource": "repeat:query_logs", "used": 3, "limit": 3})
    gauge = gauges(ended, 1)[1]
    assert (gauge.used, gauge.limit, gauge.tone) == ("at most 3", "", "binding")


def test_the_time_of_a_running_run_is_so_far():
    assert of(running_run())["time"].note == "so far"
