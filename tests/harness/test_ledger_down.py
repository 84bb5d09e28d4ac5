"""When the ledger does not answer: work is refused, stopping is not, and no end is claimed unrecorded (SPEC D1)."""

import asyncio
import logging
from typing import Any

import pytest

from harness import (
    AlreadyTerminated,
    CancelReason,
    Harness,
    IllegalEvent,
    LedgerUnavailable,
    Outcome,
    RunContext,
    RunEnded,
    TerminationNotRecorded,
)
from tests.harness.fakes import LOST, HandJournal, fail, harness_over, left_with, limits, only, say, types, until


async def crossing_that_waits(harness: Harness, run: RunContext, journal: HandJournal, fn: Any = say) -> Any:
    """A tool call whose start the journal holds."""
    journal.holds = True
    crossing = asyncio.ensure_future(harness.tool(run, "say", fn))
    await until(lambda: journal.waiting)
    return crossing


async def test_a_run_whose_beginning_cannot_be_recorded_does_not_begin(harness: Harness, journal: HandJournal):  # E3
    entered = False
    journal.fail_with = LOST
    with pytest.raises(LedgerUnavailable):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            entered = True
    assert not entered
    assert journal.events("r") == []


async def test_a_start_that_cannot_be_recorded_is_not_invoked_and_fails_the_run(
    harness: Harness, journal: HandJournal
):  # D1, CASES 5
    invoked: list[RunContext] = []
    reasons: list[CancelReason] = []
    with left_with(LedgerUnavailable) as refused:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            run.cancellation.on_signal(reasons.append)
            crossing = await crossing_that_waits(harness, run, journal, lambda run: invoked.append(run))
            journal.holds = False
            journal.lose()
            await crossing
    assert (invoked, reasons) == ([], [CancelReason.LEDGER_UNAVAILABLE])
    assert refused.value.code == "ledger_unavailable"
    assert types(journal.events("r")) == ["run.started", "cancellation.signalled", "run.terminated"]
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.reason) == ("FAILED", "LEDGER_UNAVAILABLE")
    assert journal.state("r").usage.get("tool_calls", 0) == 0


async def test_who_is_stopped_by_the_loss_of_another_hears_the_problem_once(
    harness: Harness, journal: HandJournal
):  # D1
    with left_with(LedgerUnavailable) as refused:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            crossing = await crossing_that_waits(harness, run, journal)
            beside = asyncio.ensure_future(harness.tool(run, "say", say))
            await until(lambda: len(journal.waiting) == 2)
            journal.holds = False
            journal.lose()
            heard = await asyncio.gather(crossing, beside, return_exceptions=True)
            journal.lose()
            await crossing
    assert [str(error) for error in heard] == [str(LOST), str(LOST)]
    assert refused.value.problem == LOST.problem


async def test_after_a_loss_every_boundary_is_refused(harness: Harness, journal: HandJournal):  # D1
    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            journal.fail_with = LOST
            harness.transition(run, None, "planner")
            journal.fail_with = None
            for _ in range(2):
                with pytest.raises(RunEnded, match="LEDGER_UNAVAILABLE"):
                    await harness.tool(run, "say", say)
    assert (ended.value.outcome, ended.value.code) == ("FAILED", "ledger_unavailable")


@pytest.mark.parametrize("how", ["succeeds", "fails"])
async def test_an_end_that_was_lost_makes_the_next_boundary_raise_and_its_attempt_unknown(
    harness: Harness, journal: HandJournal, how: str
):  # D1
    async def work(run: RunContext) -> str:
        journal.fail_with = LOST
        if how == "fails":
            raise ValueError("broken")
        return "done"

    with left_with(RunEnded, match="LEDGER_UNAVAILABLE"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            try:
                assert await harness.tool(run, "work", work) == "done"
            except ValueError:
                assert how == "fails"
            journal.fail_with = None
            await harness.tool(run, "say", say)
    assert types(journal.events("r"))[3:] == ["attempt.abandoned", "cancellation.signalled", "run.terminated"]
    assert journal.state("r").outcome == "FAILED"


async def test_an_end_that_was_lost_makes_the_exit_raise(harness: Harness, journal: HandJournal):  # D1
    async def work(run: RunContext) -> None:
        journal.fail_with = LOST

    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.tool(run, "work", work)
            journal.fail_with = None
    assert ended.value.code == "ledger_unavailable"
    assert "attempt.succeeded" not in types(journal.events("r"))
    assert journal.state("r").outcome == "FAILED"


async def test_a_success_before_which_an_end_was_lost_is_none(harness: Harness, journal: HandJournal):  # D1, D12
    # The end and the termination share a commit, so SUCCESS was decided before the end was known to be lost.
    reasons: list[CancelReason] = []

    async def work(run: RunContext) -> None:
        journal.holds = True

    async def live() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            run.cancellation.on_signal(reasons.append)
            await harness.tool(run, "work", work)

    living = asyncio.ensure_future(live())
    await until(lambda: len(journal.waiting) == 2)
    assert [types(submission.events) for submission, _ in journal.waiting] == [
        ["attempt.succeeded"],
        ["run.terminated"],
    ]
    journal.lose()
    journal.store_all()
    with pytest.raises(RunEnded, match="LEDGER_UNAVAILABLE"):
        await living
    assert types(journal.events("r"))[3:] == ["attempt.abandoned", "cancellation.signalled", "run.terminated"]
    assert (journal.state("r").outcome, reasons) == ("FAILED", [CancelReason.LEDGER_UNAVAILABLE])


async def test_a_success_that_the_application_declared_falls_with_what_was_lost_before_it(
    harness: Harness, journal: HandJournal
):  # D1
    with left_with(RunEnded, match="LEDGER_UNAVAILABLE"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds = True
            harness.transition(run, None, "planner")
            run.lifecycle.finish(Outcome.SUCCESS, "COMPLETED")
            journal.holds = False
            journal.lose()
    assert journal.state("r").outcome == "FAILED"


async def test_a_termination_that_was_lost_is_recorded_at_a_later_try(harness: Harness, journal: HandJournal):  # D1
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "say", say)
        harness.answer(run, "42")
        journal.holds = True
        asyncio.get_running_loop().call_later(0.01, lose_two_and_go_on, journal)
    assert types(journal.events("r"))[-3:] == ["reservation.granted", "answer.recorded", "run.terminated"]
    assert journal.state("r").outcome == "SUCCESS"
    digests = {event.answer_digest for event in journal.events("r") if event.type == "answer.recorded"}
    assert digests <= journal.contents.keys()


def lose_two_and_go_on(journal: HandJournal) -> None:
    journal.lose()
    loop = asyncio.get_running_loop()
    if journal.submissions[-1].resumes:
        journal.store_all()
    else:
        loop.call_later(0.1, journal.store_all)


@pytest.mark.parametrize("error", [None, ValueError("broken")], ids=repr)
async def test_a_block_whose_end_cannot_be_recorded_says_so(journal: HandJournal, error: Exception | None):  # D1
    harness = harness_over(journal, close_timeout_s=0.06)
    with left_with(TerminationNotRecorded) as unrecorded:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            journal.fail_with = LOST
            if error is not None:
                raise error
    journal.fail_with = None
    outcome = "SUCCESS" if error is None else "FAILED"
    assert (unrecorded.value.run_id, unrecorded.value.outcome) == ("r", outcome)
    assert unrecorded.value.code == "termination_not_recorded"
    assert unrecorded.value.__cause__ is error
    assert "the disk is full" in unrecorded.value.problem
    assert types(journal.events("r")) == ["run.started"]
    assert len(journal.submissions) > 2


async def test_a_journal_that_never_answers_holds_the_exit_only_so_long(journal: HandJournal):  # D1
    harness = harness_over(journal, close_timeout_s=0.03)
    with left_with(TerminationNotRecorded, match="no answer in time"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds = True
            harness.transition(run, None, "planner")
    journal.store_all()
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_cancellation_wins_over_an_end_that_cannot_be_recorded(journal: HandJournal):  # D1, CASES 18
    harness = harness_over(journal, close_timeout_s=0.06)

    async def serve() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            journal.fail_with = LOST
            await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await until(lambda: journal.fail_with)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("block", ["returns", "raises"])
async def test_a_cancellation_during_the_exit_waits_until_the_end_is_recorded(
    harness: Harness, journal: HandJournal, lost: int, block: str
):  # D1, CASES 18: twice, and also while the end is tried again
    async def serve() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            journal.holds = True
            if block == "raises":
                raise ValueError("broken")

    serving = asyncio.create_task(serve())
    await until(lambda: journal.waiting)
    for number in range(lost):
        serving.cancel()
        await asyncio.sleep(0)
        journal.lose()
        await tried(journal, number + 2)
    serving.cancel()
    await asyncio.sleep(0.01)
    assert not serving.done()
    journal.store_all()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert journal.state("r").outcome == ("SUCCESS" if block == "returns" else "FAILED")


async def tried(journal: HandJournal, ends: int) -> None:
    """Until the end of a run was submitted so often."""
    await until(lambda: len(journal.submissions) == 1 + ends)


async def test_a_task_cancelled_while_the_beginning_is_recorded_ends_the_run(harness: Harness, journal: HandJournal):
    async def serve() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            raise AssertionError("the block must not be entered")

    journal.holds = True
    serving = asyncio.create_task(serve())
    await until(lambda: journal.waiting)
    serving.cancel()
    await asyncio.sleep(0)
    journal.store_all()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert types(journal.events("r")) == ["run.started", "cancellation.signalled", "run.terminated"]


async def test_a_task_cancelled_while_the_beginning_is_lost_has_no_run_to_end(harness: Harness, journal: HandJournal):
    journal.holds = True
    serving = asyncio.ensure_future(harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60).__aenter__())
    await until(lambda: journal.waiting)
    serving.cancel()
    await asyncio.sleep(0)
    while journal.waiting:
        journal.lose()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await serving
    assert journal.events("r") == []


async def test_the_loser_adopts_the_end_that_someone_else_recorded(harness: Harness, journal: HandJournal):  # D1
    with pytest.raises(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.answer_all_with(AlreadyTerminated("r", outcome="CANCELLED", reason="USER_REQUESTED"))
    assert (ended.value.outcome, ended.value.reason) == ("CANCELLED", "USER_REQUESTED")
    assert run.lifecycle.termination is not None
    assert run.lifecycle.termination.outcome is Outcome.CANCELLED


async def test_a_failed_block_adopts_a_recorded_success(harness: Harness, journal: HandJournal):  # D1
    with left_with(ValueError, match="broken"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.answer_all_with(AlreadyTerminated("r", outcome="SUCCESS", reason="COMPLETED"))
            raise ValueError("broken")
    assert run.lifecycle.termination is not None
    assert run.lifecycle.termination.outcome is Outcome.SUCCESS


async def test_a_fenced_owner_learns_it_at_its_next_boundary_and_lets_go(
    harness: Harness, journal: HandJournal
):  # D1, E7
    called: list[CancelReason] = []
    with left_with(RunEnded, match="HARNESS_LOST"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            run.cancellation.on_signal(called.append)
            crossing = await crossing_that_waits(harness, run, journal)
            journal.end_elsewhere("r", "FAILED", "HARNESS_LOST")
            await crossing
    assert called == [CancelReason.LEDGER_UNAVAILABLE]


async def test_no_room_in_the_queue_fails_the_run(harness: Harness, journal: HandJournal):  # D12
    with left_with(LedgerUnavailable, match="no room"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds_permits = True
            crossing = asyncio.ensure_future(harness.tool(run, "say", say))
            await until(lambda: journal.permits_waiting)
            journal.refuse_permit()
            await crossing
    assert journal.state("r").reason == "LEDGER_UNAVAILABLE"


@pytest.mark.parametrize("error", [OSError("I/O"), IllegalEvent("attempt.started", "is odd"), SystemExit(1)], ids=repr)
async def test_any_other_failure_of_the_journal_refuses_the_work_too(
    harness: Harness, journal: HandJournal, error: BaseException
):  # E3
    invoked: list[RunContext] = []
    with left_with((RunEnded, LedgerUnavailable)):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            crossing = await crossing_that_waits(harness, run, journal, lambda run: invoked.append(run))
            _, future = journal.waiting.popleft()
            journal.holds = False
            future.set_exception(error)
            await crossing
    assert invoked == []
    assert journal.state("r").outcome == "FAILED"


UNWRITABLE = ValueError("an event has more than 16384 bytes")


async def test_a_start_that_cannot_be_written_is_not_invoked(harness: Harness, journal: HandJournal):  # E3
    invoked: list[RunContext] = []
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        journal.refuses_with = UNWRITABLE
        with pytest.raises(ValueError, match="16384"):
            await harness.tool(run, "say", lambda run, n: invoked.append(run), args={"n": 1})
        with pytest.raises(ValueError, match="16384"):
            harness.transition(run, None, "planner")
        journal.refuses_with = None
        await harness.tool(run, "say", say, args={"n": 1})
    assert invoked == []
    assert journal.state("r").usage["tool_calls"] == 1
    assert journal.contents[only(journal.events("r"), "attempt.started").input_digest].data == b'{"n":1}'


async def test_an_end_that_cannot_be_written_is_an_error_and_its_attempt_unknown(
    harness: Harness, journal: HandJournal
):  # D1
    async def work(run: RunContext) -> None:
        journal.refuses_with = UNWRITABLE

    with left_with(ValueError, match="16384"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            try:
                await harness.tool(run, "work", work)
            finally:
                journal.refuses_with = None
    assert types(journal.events("r"))[3:] == ["attempt.abandoned", "run.terminated"]


async def test_a_stop_that_cannot_be_written_still_stops_and_tells(harness: Harness, journal: HandJournal):  # D1, H3
    called: list[CancelReason] = []
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            run.cancellation.on_signal(called.append)
            journal.refuses_with = UNWRITABLE
            with pytest.raises(ValueError, match="16384"):
                run.cancellation.signal(CancelReason.USER_REQUESTED)
            journal.refuses_with = None
            assert run.cancellation.is_signalled
    assert called == [CancelReason.USER_REQUESTED]
    assert types(journal.events("r")) == ["run.started", "cancellation.signalled", "run.terminated"]


async def test_a_future_that_the_journal_cancels_is_a_loss(harness: Harness, journal: HandJournal):  # E3
    with left_with(RunEnded, match="LEDGER_UNAVAILABLE"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            crossing = await crossing_that_waits(harness, run, journal)
            _, future = journal.waiting.popleft()
            journal.holds = False
            assert future.cancel()
            await crossing


async def test_other_runs_go_on(harness: Harness, journal: HandJournal):  # D12
    async with harness.run(session_id="s", run_id="well", limits=limits(), timeout_s=60) as well:
        with left_with(RunEnded):
            async with harness.run(session_id="s", run_id="ill", limits=limits(), timeout_s=60) as ill:
                journal.fail_with = LOST
                harness.transition(ill, None, "planner")
                journal.fail_with = None
        await harness.tool(well, "say", say)
    assert (journal.state("well").outcome, journal.state("ill").outcome) == ("SUCCESS", "FAILED")


async def test_a_loss_is_logged_once_and_without_payload(
    harness: Harness, journal: HandJournal, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING), left_with(RunEnded):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            journal.fail_with = LedgerUnavailable("secret-17")
            harness.transition(run, None, "planner")
            journal.fail_with = None
    assert [record.getMessage() for record in caplog.records] == [
        f"run {run.run_id}: a submission was not stored: LedgerUnavailable"
    ]


async def test_a_failing_tool_on_a_broken_ledger_fails_with_its_own_error(harness: Harness, journal: HandJournal):
    async def break_both(run: RunContext) -> None:
        journal.fail_with = LOST
        await fail(run)

    with left_with(ValueError, match="no such index"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            try:
                await harness.tool(run, "break", break_both)
            finally:
                journal.fail_with = None
    assert journal.state("r").reason == "LEDGER_UNAVAILABLE"


async def test_an_end_that_the_journal_refuses_with_an_error_of_its_own_says_so_and_hides_nothing(journal: HandJournal):
    harness, wrong = harness_over(journal, close_timeout_s=0.03), KeyError("no such index")
    with left_with(TerminationNotRecorded, match="cannot be written") as unrecorded:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            journal.refuses_with = ValueError("it cannot be written")
            raise wrong
    assert unrecorded.value.__cause__ is wrong  # D1


async def test_an_end_that_the_journal_refuses_hides_no_cancellation(journal: HandJournal):  # D1, CASES 18
    harness = harness_over(journal, close_timeout_s=0.03)
    with left_with(asyncio.CancelledError):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            journal.refuses_with = ValueError("it cannot be written")
            raise asyncio.CancelledError
