"""The ledger as a real harness uses it."""

import asyncio

import pytest

from harness import CancelReason, Harness, InvalidInput, Limits, OperationKind, RunEnded, TokenUsage
from harness.memory_journal import MemoryJournal
from tests.ledger.tables import dump

LIMITS = Limits(
    model_calls=8,
    tool_calls=20,
    per_tool_default=10,
    input_tokens=10_000,
    output_tokens=1_000,
    total_tokens=11_000,
    run_bytes=1_000_000,
)


class Reply:
    def __init__(self, text):
        self.text = text
        self.usage = TokenUsage(10, 5)


@pytest.fixture
def harness(ledger):
    return Harness(ledger.journal)


def enter(harness, run_id, session_id="session-1", **settings):
    settings = {"limits": LIMITS, "timeout_s": 30, "query": f"query of {run_id}"} | settings
    return harness.run(session_id=session_id, run_id=run_id, **settings)


async def ask(run, prompt):
    return Reply(f"reply to {prompt}")


def look(run, pattern):
    return [f"{pattern} found by {run.run_id}"]


async def work(harness, run_id, session_id="session-1"):
    async with enter(harness, run_id, session_id, flow="CHAT_GRAPH") as run:
        harness.transition(run, None, "planner")
        reply = await harness.model(run, "planner", ask, args={"prompt": run_id}, model="rules-1")
        harness.transition(run, "planner", "executor")
        rows = await asyncio.gather(
            *(harness.tool(run.branch(f"b.{n}"), "look", look, args={"pattern": f"p{n}"}) for n in range(3))
        )
        harness.finish_graph(run, final_node="executor", reason="COMPOSED")
        harness.answer(run, f"{reply.text}: {rows}")


async def test_a_boundary_is_readable_the_moment_it_is_crossed(harness, ledger):  # E3
    seen = []

    async def look_around(run):
        trace = await ledger.reader.trace(run.session_id, run.run_id)
        seen.append([(tool.tool_name, tool.status) for tool in trace.tool_invocations])

    async with enter(harness, "run-1") as run:
        await harness.tool(run, "look_around", look_around)
    assert seen == [[("look_around", "RUNNING")]]


async def test_a_run_is_recorded_from_its_question_to_its_answer(harness, ledger):
    await work(harness, "run-1")
    trace = await ledger.reader.trace("session-1", "run-1")
    assert (trace.run.summary.status, trace.run.summary.query) == ("SUCCESS", "query of run-1")
    assert trace.answer.text.startswith("reply to run-1: [['p0 found by run-1']")
    assert [tool.scope for tool in trace.tool_invocations] == ["b.0", "b.1", "b.2"]
    assert [(step.input_tokens, step.output_tokens) for step in trace.agent_steps] == [(10, 5)]
    assert [one["to"] for one in trace.run.orchestration_trace["transitions"]] == ["planner", "executor"]
    assert (await ledger.rebuild()).is_clean


async def test_thirty_runs_at_once_in_one_session_keep_to_themselves(harness, ledger):  # CASES 41
    ids = [f"run-{number}" for number in range(30)]
    await asyncio.gather(*(work(harness, run_id) for run_id in ids))
    for run_id in ids:
        trace = await ledger.reader.trace("session-1", run_id)
        texts = [tool.output.text for tool in trace.tool_invocations]
        assert len(texts) == 3
        assert all(run_id in text for text in (*texts, trace.answer.text))
        assert {event.fields["run_id"] for event in await ledger.reader.events("session-1", run_id)} == {run_id}
    assert (await ledger.reader.session("session-1")).message_pair_count == 30
    assert (await ledger.rebuild()).is_clean


async def test_a_run_over_its_limit_is_recorded_as_such(harness, ledger):
    async def spend():
        async with enter(harness, "run-1") as run:
            for _ in range(11):
                await harness.tool(run, "look", look, args={"pattern": "x"})

    with pytest.raises(RunEnded):
        await spend()
    trace = await ledger.reader.trace("session-1", "run-1")
    assert (trace.run.summary.status, trace.run.summary.tool_call_count) == ("BUDGET_EXHAUSTED", 10)
    assert (trace.run.refused["resource"], trace.run.refused["limit"]) == ("tool:look", 10)
    assert trace.run.cancel_reason == "BUDGET_EXHAUSTED"


async def test_a_retried_step_is_one_row(harness, ledger):
    attempts = []

    async def fail_once(run):
        attempts.append(run)
        if len(attempts) == 1:
            raise ConnectionError("no route")
        return Reply("fine")

    async with enter(harness, "run-1") as run:
        await harness.model(run, "router", fail_once, kind=OperationKind.INTENT_ROUTER)
    (step,) = (await ledger.reader.trace("session-1", "run-1")).agent_steps
    assert (step.status, step.attempt_count, step.error.text) == ("SUCCESS", 2, "no route")


async def test_a_run_that_is_told_to_stop_is_recorded_as_cancelled(harness, ledger):
    async def stop():
        async with enter(harness, "run-1") as run:
            run.cancellation.signal(CancelReason.CLIENT_DISCONNECTED)

    with pytest.raises(RunEnded):
        await stop()
    run = (await ledger.reader.trace("session-1", "run-1")).run
    assert (run.summary.status, run.cancel_reason) == ("CANCELLED", "CLIENT_DISCONNECTED")


async def test_an_exception_is_recorded_with_its_message_as_content(harness, ledger):
    async def fail():
        async with enter(harness, "run-1"):
            raise RuntimeError("secret of the host")

    with pytest.raises(RuntimeError):
        await fail()
    run = (await ledger.reader.trace("session-1", "run-1")).run
    assert (run.summary.status, run.error.text) == ("FAILED", "secret of the host")
    assert not [one for one in await ledger.reader.events("session-1", "run-1") if b"secret" in one.body]


async def test_a_used_run_id_is_refused_and_changes_nothing(harness, ledger, plain):  # CASES 42
    await work(harness, "run-1")
    before = dump(plain(), "event", "diagnosis_run", "chat_session", "stream")
    for session_id in ("session-1", "session-2"):
        with pytest.raises(InvalidInput):
            await work(harness, "run-1", session_id)
    assert dump(plain(), "event", "diagnosis_run", "chat_session", "stream") == before


async def test_memory_and_ledger_fold_the_same_run_to_the_same_state(harness, ledger):
    memory = MemoryJournal()
    await work(Harness(memory), "run-1")
    await work(harness, "run-1")
    row = (await ledger.reader.trace("session-1", "run-1")).run
    state = memory.state("run-1")
    assert (row.usage, row.limits, row.summary.status) == (dict(state.usage), dict(state.limits), state.outcome)
    types = [event.type for event in await ledger.reader.events("session-1", "run-1")]
    assert sorted(types) == sorted(event.type for event in memory.events("run-1"))
