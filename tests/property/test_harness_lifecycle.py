"""In whatever order things happen to a run, it ends once, and the first decision is the end (SPEC H5, D1)."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import CancelReason, HarnessError, ManualClock, Outcome, RunEnded
from tests.harness.fakes import LOST, HandJournal, each, fail, harness_over, limits, say

happenings = st.sampled_from(
    [
        "succeed",
        "fail",
        "signal",
        "disconnect",
        "deadline",
        "exhaust",
        "tool",
        "broken tool",
        "guard",
        "transition",
        "answer",
        "ledger lost",
        "ledger back",
    ]
)
exits = st.sampled_from(["return", "raise", "cancel"])


async def happen(what: str, harness: Any, run: Any, clock: ManualClock, journal: HandJournal) -> None:
    if what == "succeed":
        run.lifecycle.finish(Outcome.SUCCESS, "COMPLETED")
    elif what == "fail":
        run.lifecycle.finish(Outcome.FAILED, "NO_EVIDENCE")
    elif what == "signal":
        run.cancellation.signal(CancelReason.USER_REQUESTED)
    elif what == "disconnect":
        run.cancellation.signal(CancelReason.CLIENT_DISCONNECTED)
    elif what == "deadline":
        clock.advance(60)
    elif what == "exhaust":
        harness.reserve_bytes(run, 10**9)
    elif what == "tool":
        await harness.tool(run, "say", say)
    elif what == "broken tool":
        with pytest.raises(ValueError, match="no such index"):
            await harness.tool(run, "fail", fail)
    elif what == "guard":
        await harness.guard(run, "check", say)
    elif what == "transition":
        harness.transition(run, None, "planner")
    elif what == "answer":
        harness.answer(run, "42")
    else:
        journal.fail_with = LOST if what == "ledger lost" else None


@given(st.lists(happenings, max_size=8), exits)
def test_a_run_ends_exactly_once_whatever_happens_in_whatever_order(what: list[str], way_out: str):
    async def live() -> None:
        clock, journal = ManualClock(), HandJournal()
        harness = harness_over(journal, clock)
        first: Any = None
        caught: BaseException | None = None
        try:
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                for each_thing in what:
                    try:
                        await happen(each_thing, harness, run, clock, journal)
                    except HarnessError:
                        refused = run.lifecycle.termination
                        assert refused is not None or each_thing == "answer"
                    first = first or run.lifecycle.termination
                    assert run.lifecycle.termination is first
                journal.fail_with = None
                if way_out == "raise":
                    raise KeyError("out")
                if way_out == "cancel":
                    raise asyncio.CancelledError
        except (KeyError, asyncio.CancelledError, RunEnded) as error:
            caught = error
        end = journal.events("r")[-1]
        assert [event.type for event in journal.events("r")].count("run.terminated") == 1
        assert end.type == "run.terminated"
        assert first is None or (end.outcome, end.reason, end.occurred_us) == (
            first.outcome.value,
            first.reason,
            first.decided_us,
        )
        assert journal.state("r").open_attempts == {}
        assert journal.permits_open == 0
        expected = {"raise": KeyError, "cancel": asyncio.CancelledError}.get(way_out, RunEnded)
        assert (caught is None and end.outcome == "SUCCESS") or type(caught) is expected
        for event in each(journal.events("r"), "cancellation.signalled"):
            assert CancelReason(event.reason).outcome.value == end.outcome

    asyncio.run(live())
