"""The geometry of the timeline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewer.present.timeline.bars import Bar, merge, place_note
from viewer.present.timeline.drawing import GROUPS_MAX, ROWS_MAX, timeline
from viewer.present.timeline.scale import scale_of
from viewer.present.timeline.spans import Span
from viewer.present.timeline.ticks import ticks
from viewer.present.timeline.window import whole_of

SECOND = 1_000_000


def span(start, end, *, scope=("node.1",), kind="tool", state="ok", name="t", note="", seq=1):
    return Span(seq, scope, kind, state, name, start, end, note)


def bars(drawing):
    return [bar for group in drawing.groups for row in group.rows for bar in row.bars]


@given(
    st.lists(st.tuples(st.integers(0, 10**10), st.none() | st.integers(0, 10**10)), max_size=30),
    st.integers(0, 10**10),
)
def test_every_bar_lies_inside_the_drawing_and_can_be_seen(times, length_us):
    spans = [span(start, end if end is None else start + end) for start, end in times]
    for bar in bars(timeline(spans, length_us)):
        assert bar.x >= 0
        assert bar.x + bar.width <= 100.001
        assert bar.width >= 0.35


def test_bars_keep_the_order_and_the_proportion_of_their_times():
    first, second = bars(timeline([span(0, SECOND), span(SECOND, 3 * SECOND)], 4 * SECOND))
    assert first.x == 0
    assert second.x == pytest.approx(first.width, abs=0.02)
    assert second.width == pytest.approx(2 * first.width, abs=0.02)


def test_an_attempt_that_is_still_running_reaches_the_edge():
    (bar,) = bars(timeline([span(SECOND, None, state="running")], 2 * SECOND))
    assert bar.x + bar.width == 100


def test_a_late_end_long_after_the_run_does_not_squeeze_the_run():
    ran, late = bars(timeline([span(0, SECOND), span(0, 3_600 * SECOND, state="late")], SECOND))
    assert ran.width == late.width == 98


def test_rows_are_grouped_by_the_first_segment_of_their_scope():
    spans = [
        span(0, 1, scope=("planner.1",)),
        span(2, 9, scope=("executor.2", "b.1")),
        span(3, 4, scope=("executor.3",)),
        span(5, 6, scope=("executor.2",)),
    ]
    drawing = timeline(spans, 10)
    assert [(group.label, len(group.rows)) for group in drawing.groups] == [
        ("planner.1", 1),
        ("executor.2", 2),
        ("executor.3", 1),
    ]
    assert [row.depth for row in drawing.groups[1].rows] == [2, 1]


def test_work_outside_any_scope_is_not_given_a_node():
    drawing = timeline([span(0, 1, scope=()), span(2, 3), span(4, 5, scope=())], 10)
    assert [group.label for group in drawing.groups] == ["", "node.1", ""]


def test_the_band_of_a_node_spans_its_rows():
    drawing = timeline([span(SECOND, 2 * SECOND), span(3 * SECOND, 4 * SECOND)], 4 * SECOND)
    band = drawing.groups[0].band
    assert (band.x, band.x + band.width) == (24.5, 98)


def test_a_note_flips_near_the_edge():
    assert place_note("five words of a note", Bar(10, 5, "tool", "ok")).side == "after"
    assert place_note("five words of a note", Bar(90, 5, "tool", "ok")).side == "before"
    assert place_note("five words of a note", Bar(5, 90, "tool", "ok")).side == "inside"


@given(st.text(min_size=1, max_size=120), st.floats(0, 99), st.floats(0.35, 100))
def test_a_note_is_never_laid_over_another_bar_or_past_the_edge(text, x, width):
    bar = Bar(x, min(width, 100 - x), "tool", "ok")
    note = place_note(text, bar)
    needed = len(note.text) * 0.95
    start = {"after": note.x, "before": note.x - needed, "inside": note.x}[note.side]
    assert note.full == text
    assert start >= -1
    assert note.side != "inside" or needed <= bar.width
    assert start + needed <= 101 or len(note.text) <= 2


@pytest.mark.parametrize(
    ("length_us", "labels"),
    [
        (4_172_000, ["0 s", "1 s", "2 s", "3 s", "4 s"]),
        (2_500_000, ["0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s"]),
        (7_000, ["0 s", "2 ms", "4 ms", "6 ms"]),
        (95_000_000, ["0 s", "20 s", "40 s", "60 s", "80 s"]),
        (600_000_000, ["0 s", "2 min", "4 min", "6 min", "8 min", "10 min"]),
        (30 * 3_600_000_000, ["0 s", "8 h", "16 h", "24 h"]),
        (0, ["0 s"]),
    ],
)
def test_ticks_are_few_and_round(length_us, labels):
    assert [tick.label for tick in ticks(scale_of(whole_of(length_us)))] == labels


def test_a_run_with_more_rows_than_a_page_carries_is_drawn_as_lanes_and_says_so():
    spans = [
        span(index * 1_000, index * 1_000 + 900, scope=(f"node.{index % 100}",), state="failed" if index == 7 else "ok")
        for index in range(32_843)
    ]
    drawing = timeline(spans, 32_843_000)
    assert drawing.lanes
    assert drawing.total_count == 32_843
    assert drawing.shown_count < 32_843
    assert len(drawing.groups) == GROUPS_MAX
    assert len(bars(drawing)) < 32_843
    assert any(bar.state == "failed" for bar in bars(drawing))


def test_a_run_with_few_rows_has_one_row_for_each():
    spans = [span(index, index + 1) for index in range(ROWS_MAX)]
    drawing = timeline(spans, ROWS_MAX)
    assert (drawing.lanes, drawing.shown_count, len(bars(drawing))) == (False, ROWS_MAX, ROWS_MAX)


def test_merged_bars_cover_what_they_were_made_of_and_keep_a_failure():
    merged = merge([Bar(0, 1, "tool", "ok"), Bar(1.05, 1, "tool", "failed"), Bar(9, 1, "tool", "ok")])
    assert merged == (Bar(0, 2.05, "tool", "failed"), Bar(9, 1, "tool", "ok"))
