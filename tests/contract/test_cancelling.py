"""Cancelling a run from another process: it is heard, and acted on, wherever the run is (SPEC E7, D3)."""

import asyncio
import time

import pytest

from harness import Harness, Limits, RunEnded
from harness.errors import AlreadyTerminated
from ledger import RunNotFound
from tests.faults import programs
from tests.faults.processes import start
from tests.ledger.scripted import ScriptedRun

SOON_S = 1.0
LIMITS = Limits(
    model_calls=5, tool_calls=5, per_tool_default=5, input_tokens=9, output_tokens=9, total_tokens=9, run_bytes=999
)


@pytest.fixture
async def other(database):
    """The same ledger as another program has it open, which owns none of the runs."""
    async with await database.open() as opened:
        yield opened


async def types(ledger, run_id="run-1", session_id="session-1"):
    return [event.type for event in await ledger.reader.events(session_id, run_id)]


@pytest.fixture
def submitted(ledger):
    async def submit(*submissions):
        for submission in submissions:
            await asyncio.wrap_future(ledger.journal.submit(submission))

    return submit


async def test_a_request_is_recorded_once_with_who_and_why(ledger, other, submitted):  # E7
    await submitted(ScriptedRun().start())
    assert await other.cancel("session-1", "run-1", reason="SHUTDOWN", actor="op-7")
    assert not await other.cancel("session-1", "run-1")
    assert not await ledger.cancel("session-1", "run-1", actor="op-8")
    *_, event = await ledger.reader.events("session-1", "run-1")
    assert (event.seq, event.type, event.fields["reason"], event.fields["actor"]) == (
        2,
        "cancellation.requested",
        "SHUTDOWN",
        "op-7",
    )


async def test_an_ended_run_is_not_asked_any_more(ledger, other, submitted):  # E6, E7
    run = ScriptedRun()
    await submitted(run.start(), run.end())
    with pytest.raises(AlreadyTerminated) as raised:
        await other.cancel("session-1", "run-1")
    assert (raised.value.outcome, raised.value.reason) == ("SUCCESS", "COMPLETED")
    assert await types(ledger) == ["run.started", "run.terminated"]


@pytest.mark.parametrize("keys", [("session-2", "run-1"), ("session-1", "run-2")])
async def test_a_foreign_run_is_as_unknown_as_any(other, submitted, keys):  # R4
    await submitted(ScriptedRun().start())
    with pytest.raises(RunNotFound):
        await other.cancel(*keys)


@pytest.mark.parametrize("bad", [{"reason": "DEADLINE_EXCEEDED"}, {"reason": "because"}, {"actor": "\n"}])
async def test_only_what_others_may_ask_for_is_taken(ledger, submitted, bad):
    await submitted(ScriptedRun().start())
    with pytest.raises(ValueError, match=next(iter(bad))):
        await ledger.cancel("session-1", "run-1", **bad)


async def test_a_request_before_a_recorded_success_leaves_it_a_success(ledger, other, submitted):  # D3
    run = ScriptedRun()
    await submitted(run.start())
    await other.cancel("session-1", "run-1")
    await submitted(run.end())
    trace = await ledger.reader.trace("session-1", "run-1")
    assert (trace.run.summary.status, trace.run.cancel_reason) == ("SUCCESS", "USER_REQUESTED")


async def test_whoever_watches_a_run_is_told_once_also_of_what_was_asked_before(ledger, other, submitted):  # E7
    loop = asyncio.get_running_loop()
    await submitted(ScriptedRun("run-1").start(), ScriptedRun("run-2", writer_id="w2").start())
    heard = asyncio.Queue()
    for run_id in ("run-1", "run-2", "run-1"):
        ledger.journal.watch(run_id, lambda reason, run_id=run_id: loop.call_soon_threadsafe(heard.put_nowait, run_id))
    await other.cancel("session-1", "run-1")
    assert [await asyncio.wait_for(heard.get(), 5) for _ in range(2)] == ["run-1", "run-1"]
    ledger.journal.watch("run-1", lambda reason: loop.call_soon_threadsafe(heard.put_nowait, reason))
    assert await asyncio.wait_for(heard.get(), 5) == "USER_REQUESTED"
    end = ledger.journal.watch("run-2", lambda reason: loop.call_soon_threadsafe(heard.put_nowait, "ended"))
    end()
    end()
    await other.cancel("session-1", "run-2")
    assert await asyncio.wait_for(heard.get(), 5) == "run-2"
    await asyncio.sleep(0.6)
    assert heard.empty()


async def ask(other, run_id, delay_s=0.0):
    await asyncio.sleep(delay_s)
    began_s = time.monotonic()
    await other.cancel("s", run_id)
    return began_s


async def test_a_run_in_a_slow_model_call_is_interrupted_and_ends_cancelled(ledger, other):  # E7, H3
    harness = Harness(ledger.journal)

    async def slow(run):
        await asyncio.sleep(60)

    asked = asyncio.ensure_future(ask(other, "r", 0.3))
    with pytest.raises(RunEnded) as raised:
        async with harness.run(session_id="s", run_id="r", limits=LIMITS, timeout_s=120) as run:
            await harness.model(run, "planner", slow)
    assert time.monotonic() - await asked < SOON_S + 0.5
    assert (raised.value.outcome, raised.value.reason) == ("CANCELLED", "USER_REQUESTED")
    trace = await other.reader.trace("s", "r")
    assert (trace.run.summary.status, trace.run.outcome_reason) == ("CANCELLED", "USER_REQUESTED")
    (step,) = trace.agent_steps
    assert (step.status, step.failure) == ("FAILED", "CANCELLED")
    told = await types(ledger, "r", "s")
    assert told[3:] == [
        "cancellation.requested",
        "cancellation.signalled",
        "attempt.failed",
        "usage.settled",
        "run.terminated",
    ]


async def test_a_run_that_does_nothing_hears_and_starts_nothing_more(ledger, other):  # E7
    harness = Harness(ledger.journal)
    signalled = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def rest(run):
        run.cancellation.on_signal(lambda reason: loop.call_soon_threadsafe(signalled.set))
        await asyncio.sleep(0.7)
        began_s = await ask(other, "r")
        await asyncio.wait_for(signalled.wait(), 5)
        assert time.monotonic() - began_s < SOON_S + 0.5
        await harness.tool(run, "query_logs", lambda run: "never", args={})

    with pytest.raises(RunEnded, match="CANCELLED"):
        async with harness.run(session_id="s", run_id="r", limits=LIMITS, timeout_s=120) as run:
            await rest(run)
    assert (await types(ledger, "r", "s"))[1:] == ["cancellation.requested", "cancellation.signalled", "run.terminated"]


async def test_many_runs_of_many_processes_each_hear_their_own(database, ledger):  # E7
    owners = [start(programs.work_until_told, database.url, f"run-{number}") for number in range(3)]
    for owner in owners:
        assert owner.pipe.poll(30)
        assert owner.pipe.recv() == "working"
    began_s = time.monotonic()
    await ledger.cancel("session-1", "run-1")
    assert await asyncio.to_thread(owners[1].pipe.poll, 5)
    assert owners[1].pipe.recv() == "CANCELLED"
    assert time.monotonic() - began_s < SOON_S + 1.0
    trace = await ledger.reader.trace("session-1", "run-1")
    assert (trace.run.summary.status, trace.run.outcome_reason) == ("CANCELLED", "USER_REQUESTED")
    for number in (0, 2):
        assert (await ledger.reader.trace("session-1", f"run-{number}")).run.summary.status == "RUNNING"
        await ledger.cancel("session-1", f"run-{number}")
        assert await asyncio.to_thread(owners[number].pipe.poll, 5)
    for owner in owners:
        owner.process.join(20)


async def test_a_run_whose_process_died_before_it_heard_is_ended_as_cancelled(database, ledger):  # E7
    owner = start(programs.work_until_told, database.url, "run-1")
    assert owner.pipe.poll(30)
    assert owner.pipe.recv() == "working"
    owner.process.kill()
    owner.process.join()
    await ledger.cancel("session-1", "run-1")
    await ledger.recover()
    async with asyncio.timeout(10):
        while (trace := await ledger.reader.trace("session-1", "run-1")).run.summary.status == "RUNNING":
            await asyncio.sleep(0.1)
    assert (trace.run.summary.status, trace.run.outcome_reason) == ("CANCELLED", "USER_REQUESTED")
