"""Runs whose process died are ended, once (SPEC E7)."""

import asyncio

import orjson
import pytest

from ledger import LedgerReader, OwnedElsewhere, RunUnreadable
from ledger.recovery import RUNS_AT_ONCE
from ledger.store import recovering
from ledger.store.postgres import recovering as postgres_recovering
from tests.ledger.future import insert_event
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
async def opened(database):
    """Opens the same ledger further times."""
    ledgers = []

    async def open_another():
        ledgers.append(await database.open())
        return ledgers[-1]

    yield open_another
    for ledger in ledgers:
        await ledger.close()


async def abandon(database, *submissions):
    """What a process submitted that is no more: its ledger was closed, and so its owner is gone."""
    async with await database.open() as ledger:
        for submission in submissions:
            ledger.journal.submit(submission).result()


async def outcome(ledger, run):
    trace = await ledger.reader.trace(run.session_id, run.run_id)
    return trace.run.summary.status, trace.run.outcome_reason


async def test_a_run_whose_owner_is_gone_is_ended_when_the_ledger_is_opened(database, opened):
    run = ScriptedRun()
    await abandon(database, run.start(), run.transition("planner"))
    ledger = await opened()
    assert await outcome(ledger, run) == ("FAILED", "HARNESS_LOST")


async def test_its_open_attempts_are_closed_as_abandoned(database, opened):
    run = ScriptedRun()
    tool, step = run.attempt(), run.attempt("model", "planner")
    await abandon(database, run.start(), tool.start(), step.start())
    ledger = await opened()
    trace = await ledger.reader.trace("session-1", "run-1")
    assert [row.status for row in (*trace.tool_invocations, *trace.agent_steps)] == ["ABANDONED", "ABANDONED"]
    events = await ledger.reader.events("session-1", "run-1", after_seq=5)
    assert [event.type for event in events] == ["attempt.abandoned", "attempt.abandoned", "run.terminated"]
    assert [event.elapsed_us for event in events] == [None, None, None]


async def test_open_scopes_and_what_was_reserved_in_them_are_no_hindrance(database, opened):  # D5, H4
    run = ScriptedRun()
    reserve = {"input_tokens": 500, "cost_micros": 1_200}
    settled = run.attempt("model", "planner", scope_id="s2")
    late = run.attempt("model", "late", scope_id="s3")
    await abandon(
        database,
        run.start(limits={"model_calls": 9, "observe:tool_calls": 1}, currency="USD"),
        run.open_scope("s1", model_calls=5),
        run.open_scope("s2", "s1", model_calls=2),
        settled.start(reserve=reserve),
        settled.succeed(usage={"input_tokens": 20, "output_tokens": 5, "cost_micros": 7}),
        run.exhaust_scope("s1"),
        run.close_scope("s2"),
        run.open_scope("s3", model_calls=1),
        late.start(reserve=reserve),
    )
    ledger = await opened()
    assert await outcome(ledger, run) == ("FAILED", "HARNESS_LOST")
    trace = await ledger.reader.trace(run.session_id, run.run_id)
    assert [step.status for step in trace.agent_steps] == ["SUCCESS", "ABANDONED"]
    # Nobody will ever say what the lost attempt used: its reservation is kept, and flagged.
    assert (trace.run.reserved, trace.run.usage_unknown_count) == (reserve, 1)
    assert trace.run.usage["cost_micros"] == 1_207
    assert (await ledger.rebuild()).is_clean
    ledger.journal.submit(late.finish_late({"input_tokens": 90, "output_tokens": 1, "cost_micros": 3})).result()
    trace = await ledger.reader.trace(run.session_id, run.run_id)
    assert (trace.run.reserved, trace.run.usage["cost_micros"]) == ({}, 10)


async def test_its_trace_shows_only_what_happened(database, opened):  # CASES 44
    run = ScriptedRun()
    await abandon(database, run.start(), run.transition("planner"), run.transition("executor", "planner"))
    ledger = await opened()
    graph = (await ledger.reader.trace("session-1", "run-1")).run.orchestration_trace
    assert [transition["to"] for transition in graph["transitions"]] == ["planner", "executor"]
    assert (graph["finalNode"], graph["terminationReason"]) == (None, "HARNESS_LOST")


async def test_a_run_that_was_asked_to_stop_is_ended_as_cancelled(database, opened):
    run = ScriptedRun()
    await abandon(database, run.start(), run.request_cancellation("USER_REQUESTED"))
    ledger = await opened()
    assert await outcome(ledger, run) == ("CANCELLED", "USER_REQUESTED")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("BUDGET_EXHAUSTED", "BUDGET_EXHAUSTED"),
        ("DEADLINE_EXCEEDED", "TIMED_OUT"),
        ("CLIENT_DISCONNECTED", "CANCELLED"),
    ],
)
async def test_what_the_owner_had_signalled_is_the_outcome(database, opened, reason, expected):
    run = ScriptedRun()
    await abandon(database, run.start(), run.signal_cancellation(reason))
    ledger = await opened()
    assert await outcome(ledger, run) == (expected, reason)


async def test_however_many_runs_were_left_behind_all_are_ended(database, opened, plain):
    runs = [ScriptedRun(f"run-{number}") for number in range(RUNS_AT_ONCE * 2 + 3)]
    await abandon(database, *(run.start() for run in runs))
    await opened()
    ends = plain().execute("SELECT count(*) FROM event WHERE type = 'run.terminated'").fetchone()
    assert ends == (len(runs),)


async def test_a_run_that_ended_is_left_alone(database, opened):
    run = ScriptedRun()
    await abandon(database, *run.whole())
    ledger = await opened()
    assert (await ledger.recover()).ended == ()
    assert await outcome(ledger, run) == ("SUCCESS", "COMPLETED")


async def test_a_living_owners_run_is_never_touched(opened):
    owner, other = await opened(), await opened()
    run = ScriptedRun()
    owner.journal.submit(run.start()).result()
    assert (await other.recover()).ended == ()
    assert await outcome(other, run) == ("RUNNING", None)


async def test_while_the_owner_lives_nobody_else_may_append_its_work(opened):
    owner, other = await opened(), await opened()
    run = ScriptedRun()
    owner.journal.submit(run.start()).result()
    error = other.journal.submit(run.transition("planner")).exception()
    assert isinstance(error, OwnedElsewhere)
    other.journal.submit(run.request_cancellation()).result()
    assert owner.journal.submit(run.transition("executor")).result().first_seq == 3


async def test_of_eight_recoverers_one_ends_the_run(database, opened):
    run = ScriptedRun()
    ledgers = [await opened() for _ in range(8)]
    owner = await database.open()
    owner.journal.submit(run.start()).result()
    await owner.close()
    ended = await asyncio.gather(*(ledger.recover() for ledger in ledgers))
    named = [one.ended for one in ended if one.ended]
    # In a database one that was only watching may have been the first.
    assert named == [("run-1",)] or (database.is_postgres and named == [])
    assert (await ledgers[0].reader.trace("session-1", "run-1")).run.event_count == 2


async def test_a_reader_sees_a_dead_run_running_until_somebody_recovers_it(database):
    run = ScriptedRun()
    await abandon(database, run.start())
    async with await LedgerReader.open(database.url) as reader:
        assert (await reader.trace("session-1", "run-1")).run.summary.status == "RUNNING"


UNREADABLE = {
    "no event": b"[]",
    "no json": b"{",
    "a body without a type": b"{}",
    "an event with a strange field": orjson.dumps({"type": "flow.selected", "version": 1, "mood": "good"}),
    "an event that cannot come there": orjson.dumps(
        ScriptedRun().attempt().succeed().events[0].model_dump(exclude_none=True)
    ),
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
async def test_a_run_that_cannot_be_read_stays_open_and_is_named_and_all_others_are_ended(
    database, opened, plain, body
):
    runs = [ScriptedRun(f"run-{number}") for number in range(3)]
    await abandon(database, *(run.start() for run in runs))
    insert_event(plain(), "run-1", orjson.loads(body)["type"] if body[1:2] == b'"' else "flow.selected", 1, body)
    ledger = await opened()
    assert [await outcome(ledger, run) for run in runs] == [
        ("FAILED", "HARNESS_LOST"),
        ("RUNNING", None),
        ("FAILED", "HARNESS_LOST"),
    ]
    found = await ledger.recover()
    assert (found.ended, found.unreadable) == ((), ("run-1",))
    with pytest.raises(RunUnreadable):
        await ledger.record_feedback("session-1", "run-1", useful=True)
    report = await ledger.rebuild()
    assert (report.runs_unreadable, report.runs_changed, report.is_clean) == (("run-1",), (), False)


async def test_unreadable_runs_never_stand_before_those_that_can_be_ended(database, opened, plain, monkeypatch):
    monkeypatch.setattr(recovering, "RUNS_AT_ONCE", 2)
    monkeypatch.setattr(postgres_recovering, "RUNS_AT_ONCE", 2)
    runs = [ScriptedRun(f"run-{number}") for number in range(7)]
    await abandon(database, *(run.start() for run in runs))
    for number in range(4):
        insert_event(plain(), f"run-{number}", "flow.selected", 1, b"[]")
    ledger = await opened()
    assert [(await outcome(ledger, run))[0] for run in runs] == ["RUNNING"] * 4 + ["FAILED"] * 3


async def test_a_version_of_the_future_is_passed_over_as_a_type_of_the_future_is(database, opened, plain):
    run = ScriptedRun()
    await abandon(database, run.start())
    insert_event(plain(), "run-1", "attempt.started", 2, b'{"type":"attempt.started","version":2,"news":1}')
    ledger = await opened()
    assert await outcome(ledger, run) == ("FAILED", "HARNESS_LOST")
    assert (await ledger.rebuild()).is_clean
    events = await ledger.reader.events("session-1", "run-1")
    assert [(event.type, event.version) for event in events][1:2] == [("attempt.started", 2)]
