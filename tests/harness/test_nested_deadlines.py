"""Nested scopes have deadlines of their own, which stop what is in them and nothing else (SPEC D5, H2)."""

import asyncio
import threading

import pytest

from harness import (
    Harness,
    ManualClock,
    RunContext,
    RunEnded,
    ScopeExhausted,
    TokenUsage,
)
from tests.harness.fakes import (
    HandJournal,
    Reply,
    each,
    harness_in_real_time,
    left_with,
    limits,
    only,
    say,
)


async def ask(run: RunContext, tokens: int = 0) -> Reply:
    return Reply(TokenUsage(0, tokens))


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
