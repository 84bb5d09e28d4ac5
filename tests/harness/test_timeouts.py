"""The time-out of one call is a failure of that call, and never the deadline of its run (CASES 20)."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from harness import (
    AttemptTimedOut,
    CancelReason,
    FailureType,
    Harness,
    InvalidInput,
    OperationKind,
    RunContext,
    RunEnded,
    ScopeExhausted,
    TypedFailure,
)
from tests.harness.fakes import (
    HandJournal,
    each,
    harness_in_real_time,
    left_with,
    limits,
    only,
    say,
    types,
    until,
)


async def hang(run: RunContext) -> None:
    await asyncio.Event().wait()


CALLS: dict[str, Any] = {
    "model": lambda harness, run, **more: harness.model(run, "hang", hang, **more),
    "tool": lambda harness, run, **more: harness.tool(run, "hang", hang, **more),
    "curried tool": lambda harness, run, **more: harness.tool(run, hang, **more)(),
    "guard": lambda harness, run, **more: harness.guard(run, "hang", hang, kind=OperationKind.TOOL_CALL, **more),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@each_call
async def test_a_call_that_takes_too_long_fails_and_the_run_goes_on(
    harness: Harness, journal: HandJournal, call: Any
):  # CASES 20
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TimeoutError) as late:
            await call(harness, run, timeout_s=0.01)
        await harness.tool(run, "say", say)
    assert isinstance(late.value, AttemptTimedOut)
    assert (late.value.name, late.value.timeout_s, late.value.code) == ("hang", 0.01, "attempt_timed_out")
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.will_retry, failed.error_type) == ("TIMEOUT", False, "AttemptTimedOut")
    assert each(journal.events("r"), "attempt.started")[0].timeout_us == 10_000
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_time_out_is_recorded_only_where_it_is_less_than_what_the_run_has_left(
    harness: Harness, journal: HandJournal, clock: Any
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        for timeout_s in (59.9, 60, 61, None):
            await harness.tool(run, "say", say, timeout_s=timeout_s)
        clock.advance(1)
        await harness.tool(run, "say", say, timeout_s=59.9)
    recorded = [event.timeout_us for event in each(journal.events("r"), "attempt.started")]
    assert recorded == [59_900_000, None, None, None, None]


async def test_a_time_out_past_the_deadline_does_not_keep_the_run_from_timing_out(journal: HandJournal):  # H2
    harness = harness_in_real_time(journal)
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=0.05) as run:
            await harness.tool(run, "hang", hang, timeout_s=60)
    assert only(journal.events("r"), "attempt.failed").failure == "DEADLINE_EXCEEDED"


async def test_a_scope_that_times_out_stops_what_is_in_it_and_the_run_goes_on(journal: HandJournal):  # D5
    harness = harness_in_real_time(journal)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with left_with(ScopeExhausted, match="deadline_us"), harness.scope(run, "planner", timeout_s=0.05) as planner:
            await harness.tool(planner, "hang", hang, timeout_s=60)
        await harness.tool(run, "say", say)
    assert only(journal.events("r"), "attempt.failed").failure == "DEADLINE_EXCEEDED"
    assert only(journal.events("r"), "scope.exhausted").resource == "deadline_us"
    assert journal.state("r").outcome == "SUCCESS"


async def test_each_attempt_has_the_time_out_anew(harness: Harness, journal: HandJournal):  # H6
    calls: list[RunContext] = []

    async def late_once(run: RunContext) -> str:
        calls.append(run)
        if len(calls) == 1:
            await asyncio.Event().wait()
        return "in time"

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        kind = OperationKind.INTENT_ROUTER
        assert await harness.model(run, "route", late_once, kind=kind, timeout_s=0.01) == "in time"
    assert only(journal.events("r"), "attempt.failed").will_retry
    assert [event.timeout_us for event in each(journal.events("r"), "attempt.started")] == [10_000, 10_000]


async def test_the_pause_between_two_attempts_is_no_part_of_either(journal: HandJournal):  # H6
    harness = harness_in_real_time(journal)

    async def fail_once(run: RunContext) -> str:
        if run.path[-1] == "1":
            raise TypedFailure(FailureType.TRANSPORT, "reset", retry_after_s=0.05)
        return "in time"

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        kind = OperationKind.INTENT_ROUTER
        assert await harness.model(run, "route", fail_once, kind=kind, timeout_s=0.04) == "in time"


async def test_a_thread_that_takes_too_long_is_abandoned_and_not_started_a_second_time(
    harness: Harness, journal: HandJournal
):  # D4: the first one still runs.
    go_on = threading.Event()

    def work(run: RunContext) -> None:
        go_on.wait(timeout=30)

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        waiting = harness.model(run, "wait", work, kind=OperationKind.INTENT_ROUTER, timeout_s=0.01)
        with pytest.raises(AttemptTimedOut):
            await waiting
        go_on.set()
        await until(lambda: "attempt.finished_late" in types(journal.events("r")))
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_AWAITED"
    assert types(journal.events("r")).count("attempt.started") == 1
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_call_within_a_call_is_stopped_by_whichever_time_out_comes_first(
    harness: Harness, journal: HandJournal
):
    async def patient(run: RunContext) -> str:
        with pytest.raises(AttemptTimedOut, match="inner"):
            await harness.tool(run, "inner", hang, timeout_s=0.01)
        return "went on"

    async def impatient(run: RunContext) -> None:
        await harness.tool(run, "inner", hang, timeout_s=30)

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "outer", patient, timeout_s=30) == "went on"
        with pytest.raises(AttemptTimedOut, match="outer"):
            await harness.tool(run, "outer", impatient, timeout_s=0.01)
    failures = [event.failure for event in each(journal.events("r"), "attempt.failed")]
    assert failures == ["TIMEOUT", "CANCELLED", "TIMEOUT"]
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_time_out_does_not_begin_before_the_start_is_recorded(harness: Harness, journal: HandJournal):  # E3
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        journal.holds = True
        saying = asyncio.ensure_future(harness.tool(run, "say", say, timeout_s=0.01))
        await until(lambda: journal.waiting)
        await asyncio.sleep(0.03)
        journal.store_all()
        assert await saying == {}


@pytest.mark.parametrize("bad", [0, -1, True, "5", float("nan"), float("inf"), 10**9])
@each_call
async def test_a_time_out_that_is_none_is_refused_and_takes_no_ordinal(
    harness: Harness, journal: HandJournal, call: Any, bad: Any
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="timeout_s"):
            await call(harness, run, timeout_s=bad)
        assert run.next_ordinal("tool", "hang") == 1
    assert types(journal.events("r")) == ["run.started", "run.terminated"]


@pytest.mark.parametrize("end", ["deadline", "signal"])
async def test_a_tool_that_swallows_its_time_out_is_still_stopped_by_the_end_of_its_run(
    journal: HandJournal, end: str
):  # H2, H3
    harness = harness_in_real_time(journal)
    swallowed = asyncio.Event()

    async def stubborn(run: RunContext) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        swallowed.set()
        await asyncio.Event().wait()

    with left_with(RunEnded) as ended:
        timeout_s = 0.2 if end == "deadline" else 60
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=timeout_s) as run:
            if end == "signal":
                told = asyncio.create_task(swallowed.wait())
                told.add_done_callback(lambda _: run.cancellation.signal(CancelReason.USER_REQUESTED))
            await asyncio.wait_for(harness.tool(run, "stubborn", stubborn, timeout_s=0.01), 30)
    assert ended.value.reason == {"deadline": "DEADLINE_EXCEEDED", "signal": "USER_REQUESTED"}[end]
    task: Any = asyncio.current_task()
    assert task.cancelling() == 0
