"""A deadline travels as what is left of it, and nobody who is handed it has longer (SPEC H2, D5)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import (
    REMAINING_HEADER,
    Deadline,
    Harness,
    InvalidInput,
    ManualClock,
    RunContext,
    RunEnded,
)
from harness.deadline import MAX_TIMEOUT_S
from tests.harness.fakes import HandJournal, harness_over, left_with, limits, only, say, types

durations = st.floats(0.001, MAX_TIMEOUT_S)


@given(durations, st.integers(0, 10**18), st.integers(0, 10**18))
def test_what_is_left_there_is_left_here_less_than_a_millisecond_short(left_s: float, here_ns: int, there_ns: int):
    here, there = ManualClock(monotonic_ns=here_ns), ManualClock(monotonic_ns=there_ns)
    deadline = Deadline.after(left_s, here)
    received = Deadline.from_header(deadline.to_header(here), there, max_s=MAX_TIMEOUT_S)
    lost_ns = deadline.remaining_ns(here) - received.remaining_ns(there)
    assert 0 <= lost_ns < 1_000_000


def test_it_is_a_duration_and_never_a_point_in_time(clock: ManualClock):
    clock.advance(1000)
    deadline = Deadline.after(2.0019, clock)
    assert deadline.to_header(clock) == "2001"
    clock.advance(2.001)
    assert deadline.to_header(clock) == "0"
    clock.advance(60)
    assert deadline.to_header(clock) == "0"


@given(durations, durations)
def test_what_is_received_is_cut_to_what_is_allowed_here(left_s: float, max_s: float):
    clock = ManualClock()
    received = Deadline.from_header(Deadline.after(left_s, clock).to_header(clock), clock, max_s=max_s)
    assert received.remaining_ns(clock) <= round(max_s * 1e9)


@pytest.mark.parametrize(
    "bad",
    ["", " ", "-1", "+1", "1.5", "1e3", "0x10", "1_000", " 7", "7\n", "٣", "１", "inf", "9" * 16, None, 7, 7.0, b"7"],
    ids=repr,
)
def test_a_header_that_is_no_number_of_milliseconds_is_refused_by_name(clock: ManualClock, bad: Any):
    with pytest.raises(InvalidInput) as refused:
        Deadline.from_header(bad, clock, max_s=60)
    assert refused.value.field == REMAINING_HEADER
    assert "1 to 15 digits" in refused.value.problem


@pytest.mark.parametrize("bad", [0, -1, True, None, "60", float("inf"), float("nan"), MAX_TIMEOUT_S + 1], ids=repr)
def test_the_longest_that_is_allowed_has_bounds_itself(clock: ManualClock, bad: Any):
    with pytest.raises(InvalidInput, match="max_s"):
        Deadline.from_header("7", clock, max_s=bad)


@pytest.mark.parametrize("bad", [None, True, 1.5, "7"], ids=repr)
def test_a_deadline_is_a_whole_number_of_nanoseconds(bad: Any):
    with pytest.raises(InvalidInput, match="at_ns must be a whole number of nanoseconds"):
        Deadline(bad)


@pytest.mark.parametrize(("timeout_s", "left_s", "expected_s"), [(3, 5, 3), (5, 3, 3), (7, None, 7)])
async def test_of_a_timeout_and_a_deadline_the_earlier_counts(
    harness: Harness, journal: HandJournal, clock: ManualClock, timeout_s: Any, left_s: Any, expected_s: int
):  # H2
    deadline = None if left_s is None else Deadline.after(left_s, clock)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=timeout_s, deadline=deadline) as run:
        assert run.deadline.remaining_ns(clock) == expected_s * 1_000_000_000
        assert only(journal.events("r"), "run.started").timeout_us == expected_s * 1_000_000


async def test_a_run_that_another_run_waits_for_has_no_longer_than_that(
    harness: Harness, journal: HandJournal, clock: ManualClock
):  # H2: in another process, whose clock stands elsewhere
    elsewhere = ManualClock(monotonic_ns=77_000_000_000)
    other_journal = HandJournal()
    other = harness_over(other_journal, elsewhere)

    async def remote(run: RunContext) -> None:
        deadline = Deadline.from_header(run.deadline.to_header(clock), elsewhere, max_s=600)
        async with other.run(
            session_id="s", run_id="r-2", parent_run_id=run.run_id, limits=limits(), timeout_s=600, deadline=deadline
        ) as inner:
            elsewhere.advance(9.999)
            await other.tool(inner, "say", say)
            elsewhere.advance(0.001)
            await other.tool(inner, "say", say)

    async with harness.run(session_id="s", run_id="r-1", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "remote", timeout_s=10) as child, pytest.raises(RunEnded, match="TIMED_OUT"):
            await harness.tool(child, "remote", remote)
    assert other_journal.state("r-2").outcome == "TIMED_OUT"
    assert journal.state("r-1").outcome == "SUCCESS"


async def test_a_run_whose_deadline_has_passed_begins_and_ends_timed_out(harness: Harness, journal: HandJournal):  # H2
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60, deadline=Deadline(0)) as run:
            await harness.tool(run, "say", say)
    assert only(journal.events("r"), "run.started").timeout_us == 0
    assert "attempt.started" not in types(journal.events("r"))


@pytest.mark.parametrize("bad", [60, "60", 0, True, 5.0], ids=repr)
def test_a_deadline_of_a_run_is_a_deadline(harness: Harness, journal: HandJournal, bad: Any):
    with pytest.raises(InvalidInput, match=f"deadline must be a Deadline, not {type(bad).__name__}"):
        harness.run(session_id="s", limits=limits(), timeout_s=60, deadline=bad)
    assert journal.submissions == []
