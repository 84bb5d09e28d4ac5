"""A run's trace as it was at one of its events is the trace that was read just after that event was appended."""

from dataclasses import replace

from ledger import LedgerReader
from ledger.audit.walking.past import overview_at, steps_at, tools_at
from ledger.audit.walking.replay import Replay
from tests.ledger.scripted import ScriptedRun


def eventful(run: ScriptedRun):
    """A run in which much is open at once, retried, refused, abandoned and judged."""
    planner, again = run.attempt("model", "planner", ordinal=1), run.attempt("model", "planner", ordinal=1, attempt=2)
    logs, disk = run.attempt(effect="read"), run.attempt("tool", "query_disk", effect="write")
    yield run.start(flow="CHAT_GRAPH", agent="triage", labels={"team": "ops"}, currency="USD", price_table="2026-11")
    yield run.transition("planner")
    yield planner.start("Which logs?", reserve={"input_tokens": 20})
    yield logs.start({"pattern": "OOM"})
    yield planner.fail(will_retry=True, usage={"input_tokens": 3})
    yield again.start("Which logs, then?")
    yield disk.start()
    yield run.open_scope("inner", tool_calls=4)
    yield logs.fail()
    yield again.succeed("query_logs", usage={"input_tokens": 12, "cost_micros": 40})
    yield run.transition("executor", "planner")
    yield run.exhaust_scope("inner")
    yield run.close_scope("inner")
    yield run.answer()
    yield run.finish_graph("executor", degraded=True)
    yield run.signal_cancellation("USER_REQUESTED")
    yield disk.abandon()
    yield run.end("CANCELLED", "USER_REQUESTED")
    yield disk.finish_late()


async def trace_at(reader, moment, session):
    steps = await steps_at(reader, moment, 0, 500)
    tools = await tools_at(reader, moment, 0, 500)
    trace = await overview_at(reader, moment, session)
    return replace(trace, agent_steps=tuple(steps), tool_invocations=tuple(tools))


async def test_the_run_as_it_was_is_the_run_as_it_was_read_then(ledger, path):
    run = ScriptedRun()
    async with await LedgerReader.open(path) as reader:
        keys = (run.session_id, run.run_id)
        then = {}
        for submission in eventful(run):
            ledger.journal.submit(submission).result()
            trace = await reader.trace(*keys)
            then[trace.run.event_count] = trace
        await ledger.record_feedback(*keys, useful=False, comment="Not what I asked.")
        await ledger.record_evaluation(*keys, evaluator="rules", verdict="FAIL")
        now = await reader.trace(*keys)
        then[now.run.event_count] = now
        replay = Replay.read(reader, *keys)
        for seq, trace in then.items():
            assert await trace_at(reader, await replay.at(seq), trace.chat_session) == trace
    assert len(then) == 20


async def test_a_page_of_steps_and_invocations_ends_where_the_run_was(ledger, path):
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    for _ in range(3):
        tool, step = run.attempt(), run.attempt("model", "planner")
        for submission in (tool.start(), step.start(), tool.succeed(), step.succeed(usage={"input_tokens": 1})):
            ledger.journal.submit(submission).result()
    async with await LedgerReader.open(path) as reader:
        moment = await Replay.read(reader, run.session_id, run.run_id).at(12)
        assert moment.event.type == "attempt.started"
        assert [tool.status for tool in await tools_at(reader, moment, 1, 9)] == ["RUNNING"]
        assert [step.step_no for step in await steps_at(reader, moment, 0, 1)] == [1]
        assert await tools_at(reader, moment, 2, 9) == []
