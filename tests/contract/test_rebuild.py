"""Projections made anew from events are the rows that were there (SPEC E1)."""

import asyncio

import orjson
import pytest

from ledger import rebuild
from tests.ledger.future import insert_event, insert_into_stream
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import dump


@pytest.fixture
async def recorded(ledger):
    """Two runs in one session, one with feedback and an evaluation, and one run of another session."""
    for run_id, session_id in (("run-1", "session-1"), ("run-2", "session-1"), ("run-3", "session-2")):
        for submission in ScriptedRun(run_id, session_id).whole():
            ledger.journal.submit(submission).result()
    await ledger.record_feedback("session-1", "run-1", useful=True, comment="it was the disk")
    await ledger.record_evaluation("session-1", "run-2", evaluator="rules", verdict="OK", usage={"checked": 3})
    return ledger


async def test_rebuilding_nothing_ends_at_once(ledger):  # CASES 39
    report = await ledger.rebuild()
    assert (report.run_count, report.session_count, report.row_count, report.is_clean) == (0, 0, 0, True)


async def test_rebuilding_what_is_right_changes_nothing(recorded, plain):  # CASES 39
    connection = plain()
    before = dump(connection)
    version = connection.version()
    report = await recorded.rebuild()
    assert report.is_clean
    assert (report.run_count, report.session_count) == (3, 2)
    assert report.row_count == sum(map(len, before.values()))
    assert connection.version() == version


SPOILED = {
    "a status": "UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'",
    "json that means the same": "UPDATE diagnosis_run SET usage = CAST(' ' || usage AS JSON) WHERE run_id = 'run-1'",
    "a lost step": "DELETE FROM agent_step WHERE run_id = 'run-1'",
    "a lost run": "DELETE FROM diagnosis_run WHERE run_id = 'run-1'",
    "a lost case": "DELETE FROM case_library WHERE diagnosis_id = 'run-1'",
    "an invented tool": "INSERT INTO tool_invocation (run_id, invocation_no, session_id, attempt_id, boundary, scope,"
    " tool_name, status, started_us, started_elapsed_us) SELECT run_id, 9, session_id, 'a9', boundary, scope,"
    " tool_name, status, started_us, started_elapsed_us FROM tool_invocation WHERE run_id = 'run-1'",
    "a step's cost": "UPDATE agent_step SET cost_micros = 1 WHERE run_id = 'run-1'",
    "a run's incidents": "UPDATE diagnosis_run SET incidents = '{}' WHERE run_id = 'run-1'",
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
async def test_a_row_that_is_wrong_is_found_named_and_made_right(recorded, plain, spoil):
    connection = plain()
    before = dump(connection)
    assert (
        connection.execute(spoil.replace("JSON", "json" if connection.dialect == "postgresql" else "text")).rowcount
        == 1
    )
    report = await recorded.rebuild()
    assert (report.runs_changed, report.sessions_changed) == (("run-1",), ())
    assert dump(connection) == before
    assert (await recorded.rebuild()).is_clean


@pytest.mark.parametrize(
    "spoil",
    ["UPDATE chat_session SET message_pair_count = 7 WHERE session_id = 'session-1'", "DELETE FROM chat_session"],
)
async def test_a_session_that_is_wrong_is_made_right(recorded, plain, spoil):
    connection = plain()
    before = dump(connection)
    connection.execute(spoil)
    report = await recorded.rebuild()
    assert report.runs_changed == ()
    assert "session-1" in report.sessions_changed
    assert dump(connection) == before


@pytest.mark.parametrize("page_size", [1, 100])
async def test_rows_that_belong_to_no_run_are_removed(recorded, plain, monkeypatch, page_size):
    monkeypatch.setattr(rebuild, "PAGE_STREAMS", page_size)
    connection = plain()
    before = dump(connection)
    connection.lay_open("agent_step")
    connection.execute(
        "INSERT INTO agent_step (run_id, step_no, session_id, boundary, scope, name, status, attempt_count,"
        " started_us, started_elapsed_us) SELECT stray, step_no, session_id, boundary, scope, name, status,"
        " attempt_count, started_us, started_elapsed_us FROM agent_step,"
        " (SELECT 'run-x' AS stray UNION SELECT 'run-y') AS strays WHERE run_id = 'run-1'"
    )
    assert (await recorded.rebuild()).stray_count == 2
    assert dump(connection) == before


async def test_rebuilding_while_runs_append_loses_nothing(recorded, plain):  # CASES 39
    async def append_many():
        for number in range(30):
            for submission in ScriptedRun(f"run-late-{number}", "session-1").whole():
                await asyncio.wrap_future(recorded.journal.submit(submission))

    async def rebuild_many():
        return [await recorded.rebuild() for _ in range(8)]

    _, reports = await asyncio.gather(append_many(), rebuild_many())
    assert all(report.is_clean for report in reports)
    report = await recorded.rebuild()
    assert (report.run_count, report.is_clean) == (33, True)
    assert (await recorded.reader.session("session-1")).message_pair_count == 32


async def test_an_event_type_of_the_future_is_kept_and_passed_over(ledger, plain):
    run = ScriptedRun()
    submissions = list(run.whole())
    for submission in submissions[:3]:
        ledger.journal.submit(submission).result()
    insert_event(plain(), "run-1", "mind.changed", 1, orjson.dumps({"type": "mind.changed", "version": 1}))
    for submission in submissions[3:]:
        ledger.journal.submit(submission).result()
    assert (await ledger.rebuild()).is_clean
    trace = await ledger.reader.trace("session-1", "run-1")
    assert (trace.run.summary.status, trace.run.event_count) == ("SUCCESS", run.events_made + 1)
    types = [event.type for event in await ledger.reader.events("session-1", "run-1")]
    assert types.count("mind.changed") == 1


@pytest.mark.parametrize("body", [b"junk", b"{}", b"[]"])
async def test_a_session_that_cannot_be_read_is_named_and_all_others_are_rebuilt(ledger, plain, body):
    for number in range(3):
        for submission in ScriptedRun(f"run-{number}", f"session-{number}").whole():
            ledger.journal.submit(submission).result()
    insert_into_stream(plain(), "s:session-1", "session.opened", 1, body)
    plain().execute("UPDATE chat_session SET message_pair_count = 9 WHERE session_id <> 'session-1'")
    report = await ledger.rebuild()
    assert (report.sessions_unreadable, report.sessions_changed) == (("session-1",), ("session-0", "session-2"))
    assert not report.is_clean
