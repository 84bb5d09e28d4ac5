"""A run in a ledger, walked through: it ends where its row is, in memory for one page."""

import pytest

from harness import events as e
from ledger.audit.walking.replay import Replay
from ledger.audit.walking.standing import standing
from ledger.errors import RunNotFound
from ledger.projections.rows import RunRow
from tests.ledger.scripted import ScriptedRun


def over_budget():
    """A run that is refused work, with attempts of every end and a scope."""
    run = ScriptedRun("run-2")
    step, again, tool, lost = run.attempt("model", "planner"), run.attempt("model", "m"), run.attempt(), run.attempt()
    figures = {"kind": "tool", "name": "query_logs", "resource": "tool_calls", "amount": 1, "used": 2, "limit": 2}
    yield run.start(limits={"model_calls": 9, "tool_calls": 2, "input_tokens": 900})
    yield run.transition("planner")
    yield run.open_scope("inner", model_calls=1)
    yield step.start(reserve={"input_tokens": 40})
    yield step.fail(usage={"input_tokens": 7})
    yield run.exhaust_scope("inner")
    yield run.close_scope("inner")
    yield again.start()
    yield again.retry_unseen()
    yield again.abandon()
    yield tool.start()
    yield tool.succeed()
    yield lost.start()
    yield run.submission(run.event(e.ReservationRejected, boundary="tool/query_logs/3/1", **figures))
    yield lost.abandon()
    yield run.end("BUDGET_EXHAUSTED", "BUDGET_EXHAUSTED", resource="tool_calls", used=2, limit=2)
    yield again.finish_late({"input_tokens": 3})


async def test_a_replay_ends_in_the_row_that_the_ledger_keeps(ledger, plain):  # E1
    for submission in (*ScriptedRun().whole(), *over_budget()):
        ledger.journal.submit(submission).result()
    await ledger.record_feedback("session-1", "run-1", useful=True)
    await ledger.record_evaluation("session-1", "run-1", evaluator="rules", verdict="PASS")
    await ledger.erase(run=("session-1", "run-1"), actor="dpo-1", reason="USER_REQUEST")
    for run_id in ("run-1", "run-2"):
        *_, last = [moment async for moment in Replay.read(ledger.reader, "session-1", run_id).moments()]
        columns = ", ".join(RunRow._fields)
        row = plain().execute(f"SELECT {columns} FROM diagnosis_run WHERE run_id = ?", (run_id,)).fetchone()
        assert RunRow(*row) == last.run.row
        trace = await ledger.reader.overview("session-1", run_id)
        shown = standing(last)
        assert (shown.seq, shown.status, shown.reason) == (
            trace.run.event_count,
            trace.run.summary.status,
            trace.run.outcome_reason,
        )
        assert {each.resource: each.used for each in shown.budgets if each.used} == trace.run.usage


async def test_a_run_of_another_session_is_not_replayed(ledger):  # R4, CASES 43
    ledger.journal.submit(ScriptedRun().start()).result()
    with pytest.raises(RunNotFound):
        await Replay.read(ledger.reader, "session-2", "run-1").at(1)
