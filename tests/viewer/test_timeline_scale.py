"""The scale of the timeline: true, within bounds and invertible, whatever is folded; and its windows."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewer.present.timeline.marks import breaks, deadline_of, drawn_length_us
from viewer.present.timeline.scale import EDGE, FOLD_WIDTH, IDLE_SHARE, idle_stretches, scale_of
from viewer.present.timeline.ticks import APART_MIN, ticks
from viewer.present.timeline.window import (
    WINDOW_MIN_US,
    Stretch,
    beside,
    closer,
    whole_of,
    wider,
    window_of,
)

SECOND = 1_000_000
LENGTHS = st.integers(1, 10**11)


@st.composite
def scales(draw):
    length = draw(LENGTHS)
    busy = draw(st.lists(st.tuples(st.integers(0, length), st.none() | st.integers(0, length)), max_size=12))
    idle = idle_stretches([(start, end if end is None else max(start, end)) for start, end in busy], length)
    start = draw(st.integers(0, length - 1))
    window = draw(st.just(whole_of(length)) | st.integers(start + 1, length).map(lambda end: Stretch(start, end)))
    return scale_of(window, idle)


@given(scales(), st.lists(st.integers(-5, 2 * 10**11), min_size=2, max_size=8))
def test_later_lies_never_further_left_and_everything_lies_within_bounds(scale, times):
    places = [scale.x(at_us) for at_us in sorted(times)]
    assert all(left <= right for left, right in itertools.pairwise(places))
    assert all(0 <= x <= EDGE for x in places)
    assert (scale.x(scale.window.start_us), scale.x(scale.window.end_us)) == (0, pytest.approx(EDGE))


@given(scales(), st.floats(0, 1))
def test_from_a_place_one_gets_back_to_its_moment(scale, share):
    window = scale.window
    at_us = window.start_us + round(share * window.length_us)
    assert scale.at_us(scale.x(at_us)) == pytest.approx(at_us, abs=1 + window.length_us * 1e-9)


@given(scales())
def test_what_is_drawn_in_full_is_drawn_in_proportion(scale):
    rates = []
    for piece in range(len(scale.times_us) - 1):
        start_us, end_us = scale.times_us[piece : piece + 2]
        width = scale.places[piece + 1] - scale.places[piece]
        if Stretch(start_us, end_us) in scale.folds:
            assert width == pytest.approx(FOLD_WIDTH)
            assert end_us - start_us > IDLE_SHARE * scale.window.length_us
        else:
            rates.append(width / (end_us - start_us))
    assert rates == [pytest.approx(rates[0], rel=1e-6)] * len(rates)


@given(scales())
def test_ticks_are_few_round_legible_and_outside_of_every_break(scale):
    found = ticks(scale)
    assert len(found) <= 12
    assert all(right.x - left.x >= APART_MIN for left, right in itertools.pairwise(found))
    for tick in found:
        assert not any(each.x + 0.02 < tick.x < each.x + each.width - 0.02 for each in breaks(scale))


def test_a_tick_behind_a_break_says_the_true_time():
    scale = scale_of(Stretch(0, 60 * SECOND), [Stretch(2 * SECOND, 57 * SECOND)])
    assert [tick.label for tick in ticks(scale)] == ["0 s", "1 s", "2 s", "58 s", "59 s", "60 s"]
    (only,) = breaks(scale)
    assert (only.label, only.width) == ("55.0 s idle", FOLD_WIDTH)


def test_a_break_is_made_only_of_what_is_longer_than_its_share_of_the_window():
    idle = [Stretch(10, 20), Stretch(50, 61)]
    assert scale_of(Stretch(0, 100), idle).folds == (Stretch(50, 61),)
    assert scale_of(Stretch(0, 1_000), idle).folds == ()


def test_a_window_in_which_nothing_at_all_happened_is_not_folded_away():
    assert scale_of(Stretch(20, 30), [Stretch(10, 40)]).folds == ()


def test_idle_is_what_nothing_touches():
    assert idle_stretches([(5, 10), (7, 8), (20, 20)], 30) == [Stretch(0, 5), Stretch(10, 20), Stretch(20, 30)]
    assert idle_stretches([(5, None)], 30) == [Stretch(0, 5)]
    assert idle_stretches([], 30) == [Stretch(0, 30)]
    assert idle_stretches([(40, 50)], 30) == [Stretch(0, 30)]


@given(LENGTHS, st.none() | st.integers(0, 10**12), st.none() | st.integers(0, 10**12))
def test_whatever_the_address_says_the_window_lies_in_the_run(length, t0, t1):
    whole = whole_of(length)
    window = window_of(t0, t1, whole)
    if window is not None:
        assert 0 <= window.start_us < window.end_us <= whole.end_us
        assert window.length_us >= min(WINDOW_MIN_US, whole.length_us)


@given(st.integers(1, 10**11).flatmap(lambda end: st.tuples(st.just(end), st.integers(0, end - 1))), st.data())
def test_every_step_of_a_zoom_stays_in_the_run(sizes, data):
    length, start = sizes
    whole = whole_of(length)
    window = window_of(start, data.draw(st.integers(start + 1, length)), whole) or whole
    around = data.draw(st.none() | st.integers(0, length))
    steps = [closer(window, whole, around), wider(window, whole), beside(window, whole, -1), beside(window, whole, 1)]
    for step in filter(None, steps):
        assert 0 <= step.start_us < step.end_us <= whole.end_us
    nearer = steps[0]
    if nearer is not None:
        assert nearer.length_us < window.length_us
        assert around is None or not window.holds(around) or nearer.holds(around)


def test_zooming_in_ends_at_the_closest_look_and_out_at_the_whole_run():
    whole, window, steps = whole_of(3_600 * SECOND), Stretch(5, 3_000 * SECOND), 0
    while (nearer := closer(window, whole, None)) is not None:
        window, steps = nearer, steps + 1
    assert window.length_us == WINDOW_MIN_US
    while (further := wider(window, whole)) is not None:
        window, steps = further, steps + 1
    assert window == whole
    assert steps < 100


def test_a_stretch_that_the_run_does_not_have_is_no_window():
    whole = whole_of(1_000)
    assert [window_of(*asked, whole) for asked in [(2_000, None), (500, 400), (0, 1_000), (None, None)]] == [None] * 4
    assert window_of(900, 5_000, whole) == Stretch(900, 1_000)


@pytest.mark.parametrize(
    ("deadline", "drawn", "side"), [(900, 1_000, "here"), (1_050, 1_050, "here"), (60_000, 1_000, "after")]
)
def test_a_near_deadline_is_drawn_and_a_far_one_does_not_squeeze_the_run(deadline, drawn, side):
    length = drawn_length_us(1_000, deadline)
    assert length == drawn
    assert deadline_of(scale_of(whole_of(length)), deadline).side == side


def test_a_deadline_is_pointed_to_from_a_window_on_either_side_of_it():
    assert deadline_of(scale_of(Stretch(0, 100)), 200).side == "after"
    assert deadline_of(scale_of(Stretch(300, 400)), 200).side == "before"
    assert deadline_of(scale_of(Stretch(0, 100)), None) is None
