"""What others ask of a run through the journal, the run does (SPEC E7, D3)."""

import asyncio
import gc

import pytest

from harness import CancelReason, Harness, Outcome, RunEnded
from harness.events import CancellationRequested
from harness.ids import run_stream
from harness.journal import Submission
from tests.harness.fakes import limits


def ask(journal, reason="USER_REQUESTED", number=1):
    event = CancellationRequested(
        event_id=f"other:{number}",
        stream_id=run_stream("r"),
        session_id="s",
        run_id="r",
        occurred_us=1,
        reason=reason,
    )
    journal.submit(Submission("s", "r", (event,))).result()


@pytest.fixture
def run_of(journal):
    harness = Harness(journal)
    return harness, lambda: harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60)


async def test_a_slow_model_call_is_interrupted_and_the_run_ends_cancelled(journal, run_of):  # E7, H3
    harness, open_run = run_of
    begun = asyncio.Event()

    async def slow(run):
        begun.set()
        await asyncio.sleep(60)

    async def work():
        async with open_run() as run:
            await harness.model(run, "planner", slow)

    working = asyncio.ensure_future(work())
    await begun.wait()
    await asyncio.to_thread(ask, journal)
    with pytest.raises(RunEnded) as raised:
        await working
    assert (raised.value.outcome, raised.value.reason) == ("CANCELLED", "USER_REQUESTED")
    state = journal.state("r")
    assert (state.outcome, state.cancel_requested, state.cancel_signalled) == (
        "CANCELLED",
        "USER_REQUESTED",
        "USER_REQUESTED",
    )


@pytest.mark.parametrize(
    ("asked", "signalled"), [("SHUTDOWN", CancelReason.SHUTDOWN), ("WHATEVER", CancelReason.USER_REQUESTED)]
)
async def test_the_reason_that_was_asked_for_is_signalled_where_it_is_one(journal, run_of, asked, signalled):  # H3
    _, open_run = run_of

    async def work():
        async with open_run() as run:
            ask(journal, asked)
            ask(journal, "CLIENT_DISCONNECTED", number=2)
            assert run.cancellation.reason is signalled

    with pytest.raises(RunEnded):
        await work()
    assert journal.state("r").outcome == "CANCELLED"


async def test_a_run_that_has_decided_to_succeed_is_a_success(journal, run_of):  # D3
    _, open_run = run_of
    async with open_run() as run:
        assert run.lifecycle.finish(Outcome.SUCCESS, "COMPLETED")
        ask(journal)
        assert not run.cancellation.is_signalled
    state = journal.state("r")
    assert (state.outcome, state.cancel_requested) == ("SUCCESS", "USER_REQUESTED")


async def test_a_run_that_nobody_can_leave_any_more_is_not_kept_by_its_journal(journal, run_of):
    _, open_run = run_of
    scope = open_run()
    await scope.__aenter__()
    del scope
    gc.collect()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert journal.state("r").outcome == "CANCELLED"
    assert journal._watches == {}
