"""How the use of limits rose over a run, and the curves that are drawn of it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from ledger.reading.parts import RunPart
from tests.viewer.example_runs import LIMITS, all_runs, astray_run, budget_run, priced_run
from tests.viewer.fake_run import FakeRun
from viewer.present.timeline.consumption import Level, consumption, consumption_of_works
from viewer.present.timeline.curves import HEIGHT, STEPS_MAX, curve
from viewer.present.timeline.scale import EDGE, idle_stretches, scale_of
from viewer.present.timeline.window import Stretch, whole_of


def test_every_call_is_charged_when_it_was_granted():
    calls = consumption(budget_run().events)["tool:query_logs"]
    later = [(level.at_us // 1_000, level.used) for level in calls[1:]]
    assert later == [(1_930, 2), (2_220, 3), (2_630, 4), (2_960, 5)]


def test_what_is_reserved_is_told_apart_until_it_is_settled():  # H4
    before, settled = consumption(astray_run().events)["output_tokens"][-2:]
    assert (before.used - before.reserved, before.reserved) == (216, 600)
    assert (settled.used, settled.reserved) == (618, 0)


def test_usage_that_nobody_knows_is_counted_as_unknown_and_never_as_nothing():  # H4a
    tokens = consumption(priced_run().events)["input_tokens"]
    assert (tokens[0].unknown_count, tokens[-1].unknown_count) == (0, 1)
    assert tokens[-1].used - tokens[-1].reserved == 300


def test_the_last_level_is_what_the_run_is_said_to_have_used():
    for run in all_runs():
        levels, usage = consumption(run.events), run.trace().run.usage
        for key in ("model_calls", "tool_calls", "input_tokens", "output_tokens", "cost_micros"):
            assert (levels[key][-1].used if key in levels else 0) == usage.get(key, 0), (run.run_id, key)


def test_events_that_do_not_add_up_are_not_drawn():
    assert consumption(budget_run().events[1:]) == {}


def test_of_a_long_run_calls_are_charged_as_they_began():
    run = FakeRun("s", "r", "q", dict(LIMITS)).start()
    run.model(10, 20, "planner")
    run.model(30, 50, "planner", ordinal=2)
    run.tool(60, 70, "query_logs", {}, output="x")
    levels = consumption_of_works(RunPart.of(run.trace()).works)
    assert [(level.at_us, level.used) for level in levels["model_calls"]] == [(10_000, 1), (30_000, 2)]
    assert list(levels["tool:query_logs"]) == list(levels["tool_calls"]) == [Level(60_000, 1)]
    assert "total_tokens" not in levels


@st.composite
def courses(draw):
    times = sorted(draw(st.lists(st.integers(0, 10**9), min_size=1, max_size=400)))
    amounts = draw(st.lists(st.integers(0, 10**6), min_size=len(times), max_size=len(times)))
    return [
        Level(at_us, used, used // 3, index % 2) for index, (at_us, used) in enumerate(zip(times, amounts, strict=True))
    ]


@given(courses(), st.integers(1, 10**6), st.integers(1, 10**9), st.data())
def test_a_curve_never_leaves_its_box_and_ends_at_its_last_level(levels, limit, length_us, data):
    start_us = data.draw(st.integers(0, length_us - 1))
    window = data.draw(st.sampled_from([whole_of(length_us), Stretch(start_us, length_us)]))
    drawn = curve(levels, limit, scale_of(window, idle_stretches([], length_us)), length_us)
    numbers = [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", drawn.used_area + drawn.settled_area)]
    assert all(0 <= number <= EDGE + 0.02 for number in numbers)
    assert 0 <= drawn.limit_y <= HEIGHT
    assert len(drawn.steps) <= 2 * STEPS_MAX + 2
    last = [level for level in levels if level.at_us <= length_us]
    if last:
        assert drawn.steps[-1].level == last[-1]


def test_more_than_the_limit_rises_above_its_line():  # H4a
    drawn = curve([Level(10, 150)], 100, scale_of(whole_of(100)), 100)
    assert drawn.limit_y > 2
    assert drawn.used.endswith("V2H98")
