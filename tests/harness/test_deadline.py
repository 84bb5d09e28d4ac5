"""The deadline stands before every boundary (SPEC H2)."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness import (
    CancelReason,
    Deadline,
    FailureType,
    Harness,
    ManualClock,
    OperationKind,
    Outcome,
    RunContext,
    RunEnded,
    SystemMonotonicClock,
    TypedFailure,
)
from tests.harness.fakes import (
    HandJournal,
    harness_in_real_time,
    harness_over,
    left_with,
    limits,
    only,
    say,
    types,
    until,
)

BOUNDARIES: dict[str, Callable[[Harness, RunContext], Any]] = {
    "model": lambda harness, run: harness.model(run, "ask", say),
    "tool": lambda harness, run: harness.tool(run, "say", say),
    "guard": lambda harness, run: harness.guard(run, "check", say),
    "flow": lambda harness, run: harness.select_flow(run, "CHAT_GRAPH"),
    "transition": lambda harness, run: harness.transition(run, None, "planner"),
    "graph": lambda harness, run: harness.finish_graph(run, final_node="composer", reason="COMPOSED"),
    "answer": lambda harness, run: harness.answer(run, "42"),
    "bytes": lambda harness, run: harness.reserve_bytes(run, 1),
    "capacity": lambda harness, run: run.capacity.reserve(1),
}


async def cross(boundary: str, harness: Harness, run: RunContext) -> None:
    crossing = BOUNDARIES[boundary](harness, run)
    if crossing is not None:
        await crossing


@pytest.mark.parametrize("late_s", [0.0, 0.5])
@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_at_the_deadline_no_boundary_is_crossed(
    harness: Harness, journal: HandJournal, clock: ManualClock, boundary: str, late_s: float
):  # H2
    reasons: list[CancelReason] = []
    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            run.cancellation.on_signal(reasons.append)
            usage = run.budget.snapshot().usage
            clock.advance(60 + late_s)
            for _ in range(2):
                with pytest.raises(RunEnded, match="TIMED_OUT"):
                    await cross(boundary, harness, run)
            assert run.budget.snapshot().usage == usage
    assert (ended.value.outcome, ended.value.reason, ended.value.code) == (
        "TIMED_OUT",
        "DEADLINE_EXCEEDED",
        "timed_out",
    )
    assert reasons == [CancelReason.DEADLINE_EXCEEDED]
    assert "attempt.started" not in types(journal.events("r"))
    assert only(journal.events("r"), "run.terminated").outcome == "TIMED_OUT"


@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_a_moment_before_the_deadline_every_boundary_is_crossed(
    harness: Harness, clock: ManualClock, boundary: str
):  # H2
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        clock.monotonic_ns += 60_000_000_000 - 1
        await cross(boundary, harness, run)
        assert run.lifecycle.is_running


async def test_a_block_that_is_left_too_late_is_no_success(
    harness: Harness, journal: HandJournal, clock: ManualClock
):  # H2
    with pytest.raises(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            clock.advance(60)
    assert journal.state("r").outcome == "TIMED_OUT"


async def test_nobody_can_declare_success_after_the_deadline(harness: Harness, clock: ManualClock):  # H2
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            clock.advance(61)
            assert run.lifecycle.finish(Outcome.SUCCESS, "COMPLETED") is False
            assert run.cancellation.reason is CancelReason.DEADLINE_EXCEEDED


async def test_a_retry_is_a_boundary_too(harness: Harness, journal: HandJournal, clock: ManualClock):  # H2, H6
    async def sleep(_: float) -> None:
        clock.advance(60)

    async def ask(run: RunContext) -> None:
        raise TypedFailure(FailureType.TRANSPORT, "reset by peer")

    harness = harness_over(journal, clock, sleep=sleep)
    with pytest.raises(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.model(run, "route", ask, kind=OperationKind.INTENT_ROUTER)
    assert types(journal.events("r")).count("attempt.started") == 1


async def test_an_asynchronous_operation_is_stopped_at_the_deadline(journal: HandJournal):  # H2
    harness = harness_in_real_time(journal)
    stopped = asyncio.Event()

    async def hang(run: RunContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with pytest.raises(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=0.05) as run:
            await harness.tool(run, "hang", hang)
    assert stopped.is_set()
    assert only(journal.events("r"), "attempt.failed").failure == "DEADLINE_EXCEEDED"
    assert types(journal.events("r"))[-3:] == ["attempt.failed", "cancellation.signalled", "run.terminated"]


async def test_a_thread_that_runs_at_the_deadline_is_abandoned_and_its_end_is_late(journal: HandJournal):  # H2, D4
    harness = harness_in_real_time(journal)
    go_on = threading.Event()

    with pytest.raises(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=0.05) as run:
            await harness.tool(run, "hang", lambda run: go_on.wait(timeout=30))
    assert types(journal.events("r"))[-3:] == ["attempt.abandoned", "cancellation.signalled", "run.terminated"]
    go_on.set()
    await until(lambda: types(journal.events("r"))[-1] == "attempt.finished_late")
    assert only(journal.events("r"), "attempt.finished_late").succeeded
    assert journal.state("r").outcome == "TIMED_OUT"


async def test_a_time_out_of_the_tool_itself_is_the_tools_failure(harness: Harness, journal: HandJournal):  # CASES 20
    async def slow(run: RunContext) -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    def slow_on_thread(run: RunContext) -> None:
        raise TimeoutError("the shard did not answer")

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        for tool in (slow, slow_on_thread):
            with pytest.raises(TimeoutError):
                await harness.tool(run, "slow", tool)
    assert [event.failure for event in journal.events("r") if event.type == "attempt.failed"] == ["TIMEOUT", "TIMEOUT"]
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_start_that_became_durable_too_late_is_not_invoked(
    harness: Harness, journal: HandJournal, clock: ManualClock
):  # H2, E3
    invoked = []
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds = True
            crossing = asyncio.ensure_future(harness.tool(run, "say", lambda run: invoked.append(run)))
            await until(lambda: journal.waiting)
            clock.advance(60)
            journal.store_all()
            await crossing
    assert invoked == []
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


async def test_no_wait_for_the_record_of_a_start_outlives_the_deadline(journal: HandJournal):  # H2
    harness = harness_in_real_time(journal)
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=0.05) as run:
            journal.holds = True
            try:
                await harness.tool(run, "say", say)
            finally:
                journal.store_all()
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


async def test_a_permit_that_did_not_come_before_the_deadline_is_a_time_out(
    harness: Harness, journal: HandJournal, clock: ManualClock
):  # H2, D12
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            journal.holds_permits = True
            crossing = asyncio.ensure_future(harness.tool(run, "say", say))
            await until(lambda: journal.permits_waiting)
            clock.advance(60)
            journal.refuse_permit()
            await crossing


async def test_the_wall_clock_moves_no_deadline_and_makes_no_duration_negative(
    harness: Harness, journal: HandJournal, clock: ManualClock
):  # H2, D8, CASES 21
    async def step_back(run: RunContext) -> None:
        clock.advance(2)
        clock.step_wall(-3600)

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        clock.step_wall(3600)
        await harness.tool(run, "step_back", step_back)
    events = journal.events("r")
    assert only(events, "attempt.succeeded").duration_us == 2_000_000
    assert [event.elapsed_us for event in events] == [0, 0, 0, 2_000_000, 2_000_000]
    assert events[-1].occurred_us < events[1].occurred_us
    assert journal.state("r").outcome == "SUCCESS"


def test_passing_a_deadline_down_does_not_extend_it(clock: ManualClock):  # H2
    deadline = Deadline.after(2, clock)
    clock.advance(1.5)
    assert deadline.remaining_ns(clock) == 500_000_000
    clock.advance(7)
    assert (deadline.remaining_ns(clock), deadline.has_passed(clock)) == (0, True)


def test_the_systems_clock_does_not_step_back():
    clock = SystemMonotonicClock()
    readings = [clock.now_ns() for _ in range(1000)]
    assert readings == sorted(readings)
