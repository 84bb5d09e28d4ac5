"""Observers: told of starts and ends once these are on record, and unable to change anything."""

import asyncio
import threading
from typing import Any

import pytest

from harness import CancelReason, Harness, Observed, RunContext, RunEnded, ToolDenied
from harness.retry import FailureType, TypedFailure
from tests.harness.fakes import (
    HandJournal,
    fail,
    harness_over,
    left_with,
    limits,
    only,
    say,
    say_on_thread,
    types,
    until,
)

RUN: dict[str, Any] = {"session_id": "s", "run_id": "r", "limits": limits(), "timeout_s": 60}


class Seen:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.all: list[Observed] = []

    async def __call__(self, observed: Observed) -> None:
        self.all.append(observed)

    @property
    def types(self) -> list[str]:
        return types(each.event for each in self.all)


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def observed(journal: HandJournal, seen: Seen) -> Harness:
    return harness_over(journal, observers=(seen,))


async def test_an_observer_sees_the_events_as_they_are_recorded_with_what_went_in_and_came_out(journal, observed, seen):
    async with observed.run(**RUN) as run:
        await observed.tool(run, "look", say, args={"n": 1})
        with pytest.raises(ValueError, match="no such index"):
            await observed.tool(run, "look", fail, args={"n": 2})
        await observed.model(run, "planner", say_on_thread)
    recorded = [event for event in journal.events("r") if event.type.startswith("attempt.")]
    assert [each.event for each in seen.all] == recorded
    assert all(each.run is run for each in seen.all)
    assert [each.arguments for each in seen.all[:4]] == [{"n": 1}, {"n": 1}, {"n": 2}, {"n": 2}]
    assert seen.all[1].result == {"n": 1}
    assert isinstance(seen.all[3].error, ValueError)


async def test_a_result_is_durable_before_an_observer_sees_it_and_before_its_caller_gets_it(journal, observed, seen):
    async def hold(run: RunContext) -> str:
        journal.holds = True
        return "found"

    async with observed.run(**RUN) as run:
        call = asyncio.create_task(observed.tool(run, "look", hold))
        await until(lambda: journal.waiting)
        assert (seen.types, call.done()) == (["attempt.started"], False)
        assert [submission.is_awaited for submission, _ in journal.waiting] == [True]
        journal.store_all()
        assert await call == "found"
    assert seen.types == ["attempt.started", "attempt.succeeded"]


async def test_without_observers_no_end_is_waited_for(journal, harness):  # D12
    async def hold(run: RunContext) -> str:
        journal.holds = True
        return "found"

    async with harness.run(**RUN) as run:
        assert await harness.tool(run, "look", hold) == "found"
        assert [submission.is_awaited for submission, _ in journal.waiting] == [False]
        journal.store_all()


async def test_an_end_that_is_lost_is_told_to_nobody_and_its_result_is_given(journal, observed, seen):  # D1
    async def hold(run: RunContext) -> str:
        journal.holds = True
        return "found"

    with left_with(RunEnded) as left:
        async with observed.run(**RUN) as run:
            call = asyncio.create_task(observed.tool(run, "look", hold))
            await until(lambda: journal.waiting)
            journal.lose()
            journal.store_all()
            assert await call == "found"
    assert left.value.reason == "LEDGER_UNAVAILABLE"
    assert seen.types == ["attempt.started"]


async def raises(observed: Observed) -> None:
    raise ValueError("with a secret")


def raises_on_a_thread(observed: Observed) -> None:
    raise ValueError("with a secret")


async def cancels_itself(observed: Observed) -> None:
    raise asyncio.CancelledError


async def too_slow(observed: Observed) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("observer", [raises, raises_on_a_thread, cancels_itself, too_slow])
async def test_an_observer_that_fails_is_named_in_the_log_and_harms_nobody(journal, caplog, seen, observer):
    harness = harness_over(journal, observers=(observer, seen), hook_timeout_s=0.05)
    async with harness.run(**RUN) as run:
        assert await harness.tool(run, "look", say, args={"key": "secret"}) == {"key": "secret"}
    assert seen.types == ["attempt.started", "attempt.succeeded"]
    assert only(journal.events("r"), "run.terminated").outcome == "SUCCESS"
    lines = [record.getMessage() for record in caplog.records if record.name == "harness.boundary.observing"]
    assert [observer.__name__ in line for line in lines] == [True, True]
    assert [line for line in lines if "secret" in line] == []


async def test_a_run_that_is_stopped_while_an_observer_hears_of_a_start_invokes_nothing(journal, seen):  # H3
    async def stop(observed: Observed) -> None:
        observed.run.cancellation.signal(CancelReason.USER_REQUESTED)

    called: list[str] = []
    harness = harness_over(journal, observers=(stop, seen))
    with left_with(RunEnded):
        async with harness.run(**RUN) as run:
            await harness.tool(run, "look", lambda run: called.append("look"))
    assert called == []
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


async def test_a_run_that_is_stopped_while_an_observer_hears_of_an_end_gives_the_result(journal):  # H4a
    async def stop(observed: Observed) -> None:
        if observed.event.type == "attempt.succeeded":
            observed.run.cancellation.signal(CancelReason.USER_REQUESTED)
            await asyncio.Event().wait()

    harness = harness_over(journal, observers=(stop,))
    results: list[Any] = []
    with left_with(RunEnded) as left:
        async with harness.run(**RUN) as run:
            results.append(await harness.tool(run, "look", say, args={"n": 1}))
            await harness.tool(run, "look", say)
    assert results == [{"n": 1}]
    assert left.value.reason == "USER_REQUESTED"


async def test_a_task_that_is_cancelled_while_an_observer_listens_gets_its_own_error(journal):  # CASES 18
    listening = asyncio.Event()

    async def listen(observed: Observed) -> None:
        listening.set()
        await asyncio.Event().wait()

    harness = harness_over(journal, observers=(listen,))

    async def work() -> None:
        async with harness.run(**RUN) as run:
            await harness.tool(run, "look", say)

    task = asyncio.create_task(work())
    await listening.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


async def test_a_cancelled_operation_and_an_abandoned_one_are_told_too(journal, observed, seen):  # D4
    begun, free = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def wait(run: RunContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    def wait_on_thread(run: RunContext) -> None:
        loop.call_soon_threadsafe(begun.set)
        free.wait(30)

    async with observed.run(**RUN) as run:
        for fn in (wait, wait_on_thread):
            begun.clear()
            call = asyncio.create_task(observed.tool(run, "look", fn))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        free.set()
    assert seen.types == ["attempt.started", "attempt.failed", "attempt.started", "attempt.abandoned"]
    assert isinstance(seen.all[1].error, asyncio.CancelledError)


async def test_each_attempt_of_a_retried_operation_is_told(observed, seen):  # H6
    tries: list[int] = []

    async def flaky(run: RunContext) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise TypedFailure(FailureType.TRANSPORT, "reset")
        return "fine"

    async with observed.run(**RUN) as run:
        assert await observed.guard(run, "evidence", flaky) == "fine"
    assert seen.types == ["attempt.started", "attempt.failed", "attempt.started", "attempt.succeeded"]


async def test_a_coroutine_that_is_thrown_away_waits_for_no_observer(journal, observed, seen):
    begun: list[str] = []

    async def forever(run: RunContext) -> None:
        begun.append("forever")
        await asyncio.Event().wait()

    async with observed.run(**RUN) as run:
        call: Any = observed.tool(run, "look", forever)
        while True:
            waited_for = call.send(None)
            if begun:
                break
            await until(waited_for.done)
        call.close()
    assert seen.types == ["attempt.started"]
    assert only(journal.events("r"), "attempt.failed").error_type == "GeneratorExit"


async def test_no_observer_changes_what_an_operation_gets(journal):
    def meddle(observed: Observed) -> None:
        observed.arguments["path"] = "elsewhere"  # type: ignore[index]

    harness = harness_over(journal, observers=(meddle,))
    async with harness.run(**RUN) as run:
        assert await harness.tool(run, "look", say, args={"path": "here"}) == {"path": "here"}


class Outcry(BaseException):
    """No `Exception`, as those of test frameworks and other loops are none."""


async def cry(asked: object) -> None:
    raise Outcry


def cry_on_thread(asked: object) -> None:
    raise Outcry


def exit_on_thread(asked: object) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize("hook", [cry, cry_on_thread, exit_on_thread])
async def test_whatever_a_hook_raises_no_observer_stops_a_run_and_every_policy_denies(journal, hook):
    harness = harness_over(journal, observers=(hook,))
    async with harness.run(**RUN) as run:
        assert await harness.tool(run, "look", say, args={"n": 1}) == {"n": 1}
    harness = harness_over(journal, policies=(hook,))
    async with harness.run(**RUN | {"run_id": "r2"}) as run:
        with pytest.raises(ToolDenied, match="POLICY_FAILED"):
            await harness.tool(run, "look", say)
    assert only(journal.events("r2"), "policy.decided").reason == "POLICY_FAILED"
