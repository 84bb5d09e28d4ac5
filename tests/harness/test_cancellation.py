"""Cancellation is layered and cooperative: signalled, by the task, and never of a thread in flight (SPEC H3, D3)."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness import (
    CancelReason,
    FailureType,
    Harness,
    InvalidInput,
    OperationKind,
    Outcome,
    RunContext,
    RunEnded,
    TerminationNotRecorded,
    TypedFailure,
)
from harness.concurrency.threads import ToolThreads
from tests.harness.fakes import HandJournal, each, harness_over, left_with, limits, on_thread, only, say, types, until
from tests.harness.test_deadline import BOUNDARIES, cross


@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_after_a_signal_every_boundary_is_refused_and_appends_nothing(
    harness: Harness, journal: HandJournal, boundary: str
):  # H3, E6
    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            assert run.cancellation.signal(CancelReason.CLIENT_DISCONNECTED) is True
            before = len(journal.submissions)
            with pytest.raises(RunEnded, match="CLIENT_DISCONNECTED"):
                await cross(boundary, harness, run)
            assert len(journal.submissions) == before
    assert (ended.value.outcome, ended.value.code) == ("CANCELLED", "cancelled")
    assert types(journal.events("r")) == ["run.started", "cancellation.signalled", "run.terminated"]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (CancelReason.CLIENT_DISCONNECTED, "CANCELLED"),
        (CancelReason.DEADLINE_EXCEEDED, "TIMED_OUT"),
        (CancelReason.BUDGET_EXHAUSTED, "BUDGET_EXHAUSTED"),
        (CancelReason.USER_REQUESTED, "CANCELLED"),
        (CancelReason.TASK_CANCELLED, "CANCELLED"),
        (CancelReason.SHUTDOWN, "CANCELLED"),
        (CancelReason.LEDGER_UNAVAILABLE, "FAILED"),
        (CancelReason.HIDDEN_RETRY, "FAILED"),
    ],
)
async def test_each_reason_ends_the_run_with_its_outcome(
    harness: Harness, journal: HandJournal, reason: CancelReason, outcome: str
):  # H3
    with pytest.raises(RunEnded):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            run.cancellation.signal(reason)
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.reason) == (outcome, reason.value)
    assert only(journal.events("r"), "cancellation.signalled").reason == reason.value


async def test_the_first_reason_stays(harness: Harness, journal: HandJournal):  # H3, D3
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            changed = [run.cancellation.signal(reason) for reason in (CancelReason.USER_REQUESTED, *CancelReason)]
            assert changed == [True] + [False] * len(CancelReason)
            assert run.cancellation.reason is CancelReason.USER_REQUESTED
    assert only(journal.events("r"), "cancellation.signalled").reason == "USER_REQUESTED"


async def test_a_signal_after_success_says_that_it_changed_nothing(harness: Harness, journal: HandJournal):  # CASES 22
    called: list[CancelReason] = []
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        run.cancellation.on_signal(called.append)
    before = journal.events("r")
    assert run.cancellation.signal(CancelReason.USER_REQUESTED) is False
    assert (journal.state("r").outcome, journal.events("r"), called) == ("SUCCESS", before, [])


@pytest.mark.parametrize("bad", ["USER_REQUESTED", None, Outcome.CANCELLED])
async def test_a_reason_that_is_none_is_refused(harness: Harness, bad: Any):
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="reason"):
            run.cancellation.signal(bad)


async def test_callbacks_run_once_each_in_order_and_not_if_taken_back(harness: Harness):  # H3
    called: list[str] = []
    with left_with(RunEnded):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            run.cancellation.on_signal(lambda reason: called.append(f"first {reason.value}"))
            take_back = run.cancellation.on_signal(lambda _: called.append("taken back"))
            run.cancellation.on_signal(lambda _: called.append("second"))
            take_back()
            take_back()
            run.cancellation.signal(CancelReason.SHUTDOWN)
            run.cancellation.signal(CancelReason.SHUTDOWN)
    assert called == ["first SHUTDOWN", "second"]


@pytest.mark.parametrize("error", [ValueError("secret-17"), asyncio.CancelledError("secret-17")], ids=repr)
async def test_a_callback_that_raises_is_logged_without_payload_and_stops_no_other(
    harness: Harness, caplog: pytest.LogCaptureFixture, error: BaseException
):  # H3, CASES 23
    called: list[CancelReason] = []

    def break_down(_: CancelReason) -> None:
        raise error

    with caplog.at_level(logging.WARNING), left_with(RunEnded):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            run.cancellation.on_signal(break_down)
            run.cancellation.on_signal(called.append)
            run.cancellation.signal(CancelReason.USER_REQUESTED)
    assert called == [CancelReason.USER_REQUESTED]
    assert type(error).__name__ in caplog.text
    assert "secret-17" not in caplog.text


async def test_a_callback_may_register_another_and_signal_again(harness: Harness):  # CASES 23
    called: list[str] = []
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:

            def again(_: CancelReason) -> None:
                called.append(f"changed {run.cancellation.signal(CancelReason.SHUTDOWN)}")
                run.cancellation.on_signal(lambda reason: called.append(f"inner {reason.value}"))

            run.cancellation.on_signal(again)
            run.cancellation.on_signal(lambda _: called.append("last"))
            run.cancellation.signal(CancelReason.USER_REQUESTED)
    assert called == ["changed False", "inner USER_REQUESTED", "last"]


async def test_a_callback_registered_after_the_signal_runs_at_once(harness: Harness):  # H3
    called: list[CancelReason] = []
    with left_with(RunEnded):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            run.cancellation.signal(CancelReason.USER_REQUESTED)
            run.cancellation.on_signal(called.append)()
            assert called == [CancelReason.USER_REQUESTED]


async def test_there_is_a_limit_to_the_callbacks_of_a_run(harness: Harness):
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        for _ in range(10_000):
            run.cancellation.on_signal(print)
        with pytest.raises(InvalidInput, match="callback"):
            run.cancellation.on_signal(print)


def signal(harness: Harness, run: RunContext) -> None:
    run.cancellation.signal(CancelReason.USER_REQUESTED)


async def pass_a_limit(harness: Harness, run: RunContext) -> None:
    with pytest.raises(RunEnded):
        harness.reserve_bytes(run, 10**9)


async def pass_a_call_limit(harness: Harness, run: RunContext) -> None:
    with pytest.raises(RunEnded):
        await harness.tool(run, "never", say)


async def return_too_much(harness: Harness, run: RunContext) -> None:
    await harness.tool(run, "blob", lambda run: "x" * 2_000_000)


async def answer_too_much(harness: Harness, run: RunContext) -> None:
    with pytest.raises(RunEnded):
        harness.answer(run, "x" * 2_000_000)


async def lose_the_ledger(harness: Harness, run: RunContext) -> None:
    journal: Any = run.live._journal
    journal.answer_all_with(ConnectionError("gone"))
    harness.transition(run, None, "planner")


@pytest.mark.parametrize(
    "stop", [signal, pass_a_limit, pass_a_call_limit, return_too_much, answer_too_much, lose_the_ledger]
)
async def test_a_callback_may_wait_for_a_thread_that_uses_the_run(journal: HandJournal, stop: Callable[..., Any]):
    # CASES 23: whatever stops the run, its callbacks run without its lock.
    harness = harness_over(journal, close_timeout_s=0.01)
    answers = []

    def use(run: RunContext) -> tuple[bool, int]:
        return run.cancellation.signal(CancelReason.SHUTDOWN), run.next_ordinal("tool", "x")

    with left_with((RunEnded, TerminationNotRecorded)):
        allowed = limits(per_tool={"blob": 1, "never": 1})
        async with harness.run(session_id="s", limits=allowed, timeout_s=60) as run:
            await harness.tool(run, "never", say)
            run.cancellation.on_signal(lambda _: answers.append(on_thread(lambda: use(run))))
            stopping = stop(harness, run)
            if stopping is not None:
                await stopping
    assert answers == [(False, 1)]


async def test_a_client_that_goes_while_a_thread_works_gets_no_late_result(
    harness: Harness, journal: HandJournal
):  # CASES 17, D4
    started, go_on = threading.Event(), threading.Event()

    def work(run: RunContext) -> str:
        started.set()
        go_on.wait(timeout=30)
        return "too late"

    async def serve() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            signals.append(run.cancellation.signal)
            await harness.tool(run, "work", work)

    signals: list[Callable[[CancelReason], bool]] = []
    serving = asyncio.create_task(serve())
    await until(started.is_set)
    signals[0](CancelReason.CLIENT_DISCONNECTED)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    ended = types(journal.events("r"))
    usage = journal.state("r").usage
    go_on.set()
    await until(lambda: types(journal.events("r"))[-1] == "attempt.finished_late")
    assert ended[-3:] == ["cancellation.signalled", "attempt.abandoned", "run.terminated"]
    late = only(journal.events("r"), "attempt.finished_late")
    assert (late.succeeded, late.error_type) == (True, None)
    assert (journal.state("r").outcome, journal.state("r").reason) == ("CANCELLED", "CLIENT_DISCONNECTED")
    assert journal.state("r").usage == usage


async def test_a_thread_that_fails_late_is_recorded_as_such(harness: Harness, journal: HandJournal):  # D4
    started, go_on = threading.Event(), threading.Event()

    def work(run: RunContext) -> None:
        started.set()
        go_on.wait(timeout=30)
        raise ValueError("broken")

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        working = asyncio.ensure_future(harness.tool(run, "work", work))
        await until(started.is_set)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        go_on.set()
        await until(lambda: "attempt.finished_late" in types(journal.events("r")))
        await harness.tool(run, "say", say)
    late = only(journal.events("r"), "attempt.finished_late")
    assert (late.succeeded, late.error_type) == (False, "ValueError")
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_cancelled_task_gets_its_own_error_after_the_end_is_recorded(
    harness: Harness, journal: HandJournal
):  # CASES 18
    inside = asyncio.Event()

    async def hang(run: RunContext) -> None:
        inside.set()
        await asyncio.Event().wait()

    async def serve() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.tool(run, "hang", hang)

    serving = asyncio.create_task(serve())
    await inside.wait()
    serving.cancel("the server stops")
    with pytest.raises(asyncio.CancelledError, match="the server stops"):
        await serving
    assert serving.cancelled()
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.reason) == ("CANCELLED", "TASK_CANCELLED")


async def test_a_time_out_around_the_block_stays_a_time_out(harness: Harness, journal: HandJournal):  # CASES 18
    with left_with(TimeoutError):
        async with asyncio.timeout(0.01):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                await harness.tool(run, "hang", lambda run: asyncio.Event().wait())
    assert journal.state("r").reason == "TASK_CANCELLED"
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("where", ["task", "thread"])
async def test_a_cancellation_that_the_tool_raises_of_its_own_is_its_failure(
    harness: Harness, journal: HandJournal, where: str
):  # CASES 18
    async def cancel_within(run: RunContext) -> None:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner

    def raise_on_thread(run: RunContext) -> None:
        raise asyncio.CancelledError

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypedFailure, match="cancelled from within") as failed:
            await harness.tool(run, "odd", cancel_within if where == "task" else raise_on_thread)
        await harness.tool(run, "say", say)
    assert failed.value.failure is FailureType.CANCELLED
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_caller_that_waits_for_one_tool_only_so_long_does_not_end_the_run(
    harness: Harness, journal: HandJournal
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(harness.tool(run, "hang", lambda run: asyncio.Event().wait()), 0.01)
        await harness.tool(run, "say", say)
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_cancellation_between_two_attempts_ends_the_wait_and_the_operation_is_not_invoked_again(
    journal: HandJournal,
):  # H6
    async def sleep_long(_: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    async def ask(run: RunContext) -> None:
        calls.append(run)
        raise TypedFailure(FailureType.TRANSPORT, "reset")

    pausing = asyncio.Event()
    calls: list[RunContext] = []
    harness = harness_over(journal, sleep=sleep_long)
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            asking = asyncio.ensure_future(harness.model(run, "route", ask, kind=OperationKind.INTENT_ROUTER))
            await pausing.wait()
            on_thread(lambda: run.cancellation.signal(CancelReason.USER_REQUESTED))
            await asking
    assert len(calls) == 1
    assert types(journal.events("r")).count("attempt.started") == 1


async def test_a_task_cancelled_while_it_waits_for_a_permit_leaves_none_taken(harness: Harness, journal: HandJournal):
    # CASES 37: the permit comes when nobody wants it any more.
    journal.holds_permits = False
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        journal.holds_permits = True
        crossing = asyncio.ensure_future(harness.tool(run, "say", say))
        await until(lambda: journal.permits_waiting)
        crossing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await crossing
        journal.grant()
        assert journal.permits_open == 0
    assert types(journal.events("r")) == ["run.started", "run.terminated"]


async def test_a_run_that_has_ended_asks_for_no_permit(harness: Harness, journal: HandJournal):  # E6
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            run.cancellation.signal(CancelReason.USER_REQUESTED)
            journal.holds_permits = True
            with pytest.raises(RunEnded):
                await harness.tool(run, "say", say)
    assert list(journal.permits_waiting) == []


async def test_a_permit_that_is_refused_when_nobody_waits_harms_nobody(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        journal.holds_permits = True
        crossing = asyncio.ensure_future(harness.tool(run, "say", say))
        await until(lambda: journal.permits_waiting)
        crossing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await crossing
        journal.refuse_permit()
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_run_that_ends_while_a_permit_is_waited_for_takes_no_more_work(
    harness: Harness, journal: HandJournal
):  # H3, E6
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds_permits = True
            crossing = asyncio.ensure_future(harness.tool(run, "say", say))
            await until(lambda: journal.permits_waiting)
            run.cancellation.signal(CancelReason.USER_REQUESTED)
            journal.grant()
            await crossing
    assert types(journal.events("r")) == ["run.started", "cancellation.signalled", "run.terminated"]


async def test_a_task_cancelled_while_its_start_is_recorded_never_invokes_the_operation(
    harness: Harness, journal: HandJournal
):  # CASES 37
    invoked: list[RunContext] = []
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        journal.holds = True
        crossing = asyncio.ensure_future(harness.model(run, "ask", lambda run: invoked.append(run)))
        await until(lambda: journal.waiting)
        crossing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await crossing
        journal.store_all()
    assert invoked == []
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"
    assert journal.state("r").usage_unknown_count == 0


async def test_a_signal_while_a_start_is_recorded_stops_the_operation_too(harness: Harness, journal: HandJournal):  # H3
    invoked: list[RunContext] = []
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            journal.holds = True
            crossing = asyncio.ensure_future(harness.tool(run, "say", lambda run: invoked.append(run)))
            await until(lambda: journal.waiting)
            run.cancellation.signal(CancelReason.USER_REQUESTED)
            journal.store_all()
            await crossing
    assert invoked == []
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


async def test_a_queued_call_that_is_cancelled_is_never_invoked(journal: HandJournal):
    harness = harness_over(journal, threads=ToolThreads(1, idle_s=0.0))
    go_on = threading.Event()
    invoked: list[RunContext] = []
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        busy = asyncio.ensure_future(harness.tool(run.branch("a"), "wait", lambda run: go_on.wait(timeout=30)))
        queued = asyncio.ensure_future(harness.tool(run.branch("b"), "say", lambda run: invoked.append(run)))
        await until(lambda: types(journal.events("r")).count("attempt.started") == 2)
        await asyncio.sleep(0)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        go_on.set()
        await busy
    assert invoked == []
    assert each(journal.events("r"), "attempt.abandoned")[0].reason == "NOT_INVOKED"


async def test_a_call_whose_run_ended_while_it_waited_for_a_thread_is_not_invoked(journal: HandJournal):  # H3
    harness = harness_over(journal, threads=ToolThreads(1, idle_s=0.0))
    began, go_on, invoked = threading.Event(), threading.Event(), []

    def occupy(run: RunContext) -> None:
        began.set()
        go_on.wait(timeout=30)

    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            first = asyncio.ensure_future(harness.tool(run.branch("a"), "occupy", occupy))
            await until(began.is_set)
            second = asyncio.ensure_future(harness.tool(run.branch("b"), "say", lambda run: invoked.append(run)))
            await until(lambda: len(journal.state("r").open_attempts) == 2)
            run.cancellation.signal(CancelReason.USER_REQUESTED)
            await asyncio.wait({first, second})
            go_on.set()
            assert isinstance(first.exception(), RunEnded)
            assert isinstance(second.exception(), RunEnded)
    assert invoked == []
    reasons = [event.reason for event in each(journal.events("r"), "attempt.abandoned")]
    assert sorted(reasons) == ["NOT_AWAITED", "NOT_INVOKED"]


@pytest.mark.parametrize("raised", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
async def test_whatever_a_callback_raises_the_others_run(harness: Harness, raised: BaseException):  # H3, CASES 23
    told: list[CancelReason] = []

    def leave(reason: CancelReason) -> None:
        raise raised

    with left_with(RunEnded):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            run.cancellation.on_signal(leave)
            run.cancellation.on_signal(told.append)
            run.cancellation.signal(CancelReason.USER_REQUESTED)
    assert told == [CancelReason.USER_REQUESTED]
