"""A run takes exactly one outcome, and the first wins (SPEC H5)."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from harness import (
    CancelReason,
    FailureType,
    Harness,
    InvalidInput,
    ManualClock,
    Outcome,
    RunContext,
    RunEnded,
    Termination,
    TypedFailure,
)
from tests.harness.fakes import HandJournal, harness_over, left_with, limits, only, race, say, types, until


def expire(run: RunContext, clock: ManualClock) -> bool:
    clock.advance(3600)
    with contextlib.suppress(RunEnded):
        run.capacity.reserve(1)
    return False


def exhaust(harness: Harness, run: RunContext) -> bool:
    with contextlib.suppress(RunEnded):
        harness.reserve_bytes(run, 10**9)
    return False


@pytest.mark.parametrize("round_number", range(8))
async def test_the_first_outcome_wins_a_race_of_sixty_four_threads(
    harness: Harness, journal: HandJournal, clock: ManualClock, round_number: int
):  # H5
    ended: RunEnded | None = None
    try:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            enders: list[Callable[[], bool]] = [
                lambda: run.lifecycle.finish(Outcome.SUCCESS, "COMPLETED"),
                lambda: run.lifecycle.finish(Outcome.FAILED, "BROKEN"),
                lambda: run.cancellation.signal(CancelReason.USER_REQUESTED),
                lambda: run.cancellation.signal(CancelReason.CLIENT_DISCONNECTED),
                lambda: exhaust(harness, run),
                lambda: expire(run, clock),
            ]
            turned = enders[round_number % 6 :] + enders[: round_number % 6]
            changed = await asyncio.to_thread(race, list(itertools.islice(itertools.cycle(turned), 64)))
            first = decision_of(run)
            assert [type(result) for result in changed] == [bool] * 64
            assert changed.count(True) <= 1
    except RunEnded as error:
        ended = error
    assert (ended is None) is (first.outcome is Outcome.SUCCESS)
    assert ended is None or (ended.outcome, ended.reason) == (first.outcome.value, first.reason)
    assert run.lifecycle.termination is first
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.reason, end.occurred_us) == (first.outcome.value, first.reason, first.decided_us)
    assert types(journal.events("r")).count("cancellation.signalled") == (first.outcome.value in STOPPED)


def decision_of(run: RunContext) -> Termination:
    decision = run.lifecycle.termination
    assert decision is not None
    return decision


STOPPED = {"CANCELLED", "TIMED_OUT", "BUDGET_EXHAUSTED"}


async def test_success_stays_whatever_comes_after_it(harness: Harness, clock: ManualClock):  # H5
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        assert run.lifecycle.finish(Outcome.SUCCESS, "COMPLETED") is True
        first = run.lifecycle.termination
        clock.advance(1)
        later = [run.lifecycle.finish(Outcome.FAILED, "LATE"), run.cancellation.signal(CancelReason.USER_REQUESTED)]
        assert later == [False, False]
        assert run.lifecycle.termination is first


async def test_exhaustion_stays_though_the_handler_reports_a_failure(harness: Harness, journal: HandJournal):  # H5
    with left_with(ValueError, match="the handler gives up"):
        async with harness.run(session_id="s", run_id="r", limits=limits(tool_calls=1), timeout_s=60) as run:
            await harness.tool(run, "say", say)
            try:
                await harness.tool(run, "say", say)
            except RunEnded as ended:
                first = run.lifecycle.termination
                raise ValueError("the handler gives up") from ended
    end = only(journal.events("r"), "run.terminated")
    assert first is not None
    assert (end.outcome, end.reason, end.occurred_us) == ("BUDGET_EXHAUSTED", "BUDGET_EXHAUSTED", first.decided_us)


async def test_the_termination_bears_the_time_of_the_decision(
    harness: Harness, journal: HandJournal, clock: ManualClock
):  # D4
    with left_with(RunEnded):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            clock.advance(1)
            run.cancellation.signal(CancelReason.USER_REQUESTED)
            decided_us = clock.now_us()
            clock.advance(5)
    end = only(journal.events("r"), "run.terminated")
    assert (end.occurred_us, end.elapsed_us) == (decided_us, 1_000_000)


@pytest.mark.parametrize("bad", [("SUCCESS", "COMPLETED"), (Outcome.FAILED, "two words"), (Outcome.FAILED, None)])
async def test_an_outcome_that_could_not_be_recorded_is_refused(harness: Harness, bad: Any):
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput):
            run.lifecycle.finish(*bad)
        assert run.lifecycle.is_running


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Falsy(Exception):
    def __bool__(self) -> bool:
        return False


class BadCode(TypedFailure):
    code = "not a code!"


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (ValueError("no such index"), "FAILED", "UNHANDLED_EXCEPTION"),
        (Unspeakable(), "FAILED", "UNHANDLED_EXCEPTION"),
        (Falsy(), "FAILED", "UNHANDLED_EXCEPTION"),
        (type("Naïve\nError", (Exception,), {})("\ud800"), "FAILED", "UNHANDLED_EXCEPTION"),
        (InvalidInput("query", "is odd"), "FAILED", "INVALID_INPUT"),
        (TypedFailure(FailureType.NO_EVIDENCE, "none"), "FAILED", "OPERATION_FAILED"),
        (BadCode(FailureType.NO_EVIDENCE, "none"), "FAILED", "UNHANDLED_EXCEPTION"),
        (RunEnded("s", "other", outcome="TIMED_OUT", reason="DEADLINE_EXCEEDED"), "FAILED", "TIMED_OUT"),
        (ExceptionGroup("both", [ValueError("a"), TypeError("b")]), "FAILED", "UNHANDLED_EXCEPTION"),
        (asyncio.CancelledError(), "CANCELLED", "TASK_CANCELLED"),
        (KeyboardInterrupt(), "CANCELLED", "SHUTDOWN"),
        (SystemExit(3), "CANCELLED", "SHUTDOWN"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_an_exception_goes_on_unchanged_and_the_run_has_its_end(
    harness: Harness, journal: HandJournal, error: BaseException, outcome: str, reason: str
):  # H5
    caught: BaseException | None = None
    try:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            raise error
    except BaseException as raised:  # noqa: BLE001 - this is what the claim is about
        caught = raised
    assert caught is error
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.reason) == (outcome, reason)


async def test_the_text_of_a_failure_is_content_and_its_type_is_in_the_event(harness: Harness, journal: HandJournal):
    # E10, H9: its bytes are charged as any other content's.
    with pytest.raises(ValueError, match="no such index"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            raise ValueError("no such index")
    end = only(journal.events("r"), "run.terminated")
    assert (end.error_type, end.error_bytes, end.error_stored) == ("ValueError", 13, True)
    assert journal.contents[end.error_digest].data == b"no such index"
    assert journal.state("r").usage["run_bytes"] == 13


async def test_a_block_that_is_left_normally_is_a_success(harness: Harness, journal: HandJournal):  # H5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert (run.lifecycle.is_running, run.lifecycle.termination) == (True, None)
    assert types(journal.events("r")) == ["run.started", "run.terminated"]
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.reason, end.resource) == ("SUCCESS", "COMPLETED", None)


async def test_a_failure_that_the_application_declares_raises_at_the_exit(harness: Harness, journal: HandJournal):
    with pytest.raises(RunEnded, match="FAILED") as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            run.lifecycle.finish(Outcome.FAILED, "NO_EVIDENCE")
    assert (ended.value.session_id, ended.value.run_id, ended.value.code) == ("s", "r", "failed")
    assert only(journal.events("r"), "run.terminated").reason == "NO_EVIDENCE"


async def test_the_end_of_a_run_inside_a_run_is_the_others_failure_only_if_it_lets_it_out(
    harness: Harness, journal: HandJournal
):  # H5
    async with harness.run(session_id="s", run_id="outer", limits=limits(), timeout_s=60) as outer:
        with pytest.raises(RunEnded):
            async with harness.run(session_id="s", run_id="inner", limits=limits(), timeout_s=60) as inner:
                inner.cancellation.signal(CancelReason.USER_REQUESTED)
        await harness.tool(outer, "say", say)
    assert (journal.state("outer").outcome, journal.state("inner").outcome) == ("SUCCESS", "CANCELLED")


async def test_a_tool_that_lets_out_the_end_of_another_run_has_failed(harness: Harness, journal: HandJournal):
    async def delegate(run: RunContext) -> None:
        async with harness.run(session_id="s", run_id="inner", limits=limits(), timeout_s=60) as inner:
            inner.cancellation.signal(CancelReason.USER_REQUESTED)

    async with harness.run(session_id="s", run_id="outer", limits=limits(), timeout_s=60) as outer:
        with pytest.raises(RunEnded, match="inner"):
            await harness.tool(outer, "delegate", delegate)
    assert only(journal.events("outer"), "attempt.failed").failure == "RUN_ENDED"
    assert journal.state("outer").outcome == "SUCCESS"


async def test_an_attempt_that_the_end_of_its_run_overtook_is_not_invoked_and_gives_its_permit_back(
    harness: Harness, journal: HandJournal
):  # D4, D12
    invoked: list[RunContext] = []
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds = True
            crossing = asyncio.ensure_future(harness.tool(run, "say", lambda run: invoked.append(run)))
            await until(lambda: journal.waiting)
            run.cancellation.signal(CancelReason.USER_REQUESTED)
            asyncio.get_running_loop().call_later(0.01, journal.store_all)
    with pytest.raises(RunEnded, match="USER_REQUESTED"):
        await crossing
    assert (invoked, journal.permits_open) == ([], 0)
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


async def test_a_generator_that_is_closed_in_mid_run_ends_it(harness: Harness, journal: HandJournal):  # H5
    async def stream() -> Any:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            yield "a"
            yield "b"

    streaming = stream()
    assert await anext(streaming) == "a"
    await streaming.aclose()
    assert journal.state("r").outcome == "CANCELLED"


def test_a_coroutine_that_is_thrown_away_without_a_loop_ends_its_run(journal: HandJournal):  # H5
    async def serve() -> None:
        async with harness_over(journal).run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
            await asyncio.Event().wait()

    serving = serve()
    loop = asyncio.new_event_loop()
    task = loop.create_task(serving)
    loop.call_soon(loop.call_soon, loop.stop)
    loop.run_forever()
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    serving.close()
    assert journal.state("r").outcome == "CANCELLED"
