"""Rows of one session never hold what another's run did, whoever writes them (SPEC E4)."""

import pytest

from harness import events as e
from ledger import MisplacedEvent, RunIdTaken
from tests.contract.databases import Refused
from tests.ledger.future import add_event
from tests.ledger.scripted import ScriptedRun

HELD = "isolation|foreign key|(?i:unique)"
"""What holds it: a trigger, and keys."""
SESSION_OF = {
    "diagnosis_run": "run_id",
    "agent_step": "run_id",
    "tool_invocation": "run_id",
    "case_library": "diagnosis_id",
}


@pytest.fixture
async def recorded(ledger):
    for submission in ScriptedRun("run-1", "session-1").whole():
        ledger.journal.submit(submission).result()
    for submission in ScriptedRun("run-2", "session-2").whole():
        ledger.journal.submit(submission).result()
    await ledger.record_feedback("session-1", "run-1", useful=True)
    return ledger


@pytest.fixture
def outsider(recorded, plain):
    return plain()


@pytest.mark.parametrize("table", SESSION_OF)
def test_a_row_cannot_be_moved_to_another_session(outsider, table):
    with pytest.raises(Refused, match=HELD):
        outsider.execute(f"UPDATE {table} SET session_id = 'session-2' WHERE session_id = 'session-1'")


@pytest.mark.parametrize("table", SESSION_OF)
def test_a_row_cannot_be_moved_to_another_run(outsider, table):
    key = SESSION_OF[table]
    with pytest.raises(Refused, match=HELD):
        outsider.execute(f"UPDATE {table} SET {key} = 'run-2' WHERE {key} = 'run-1'")


@pytest.mark.parametrize("table", SESSION_OF)
@pytest.mark.parametrize("run_id", ["run-2", "run-unknown"])
def test_a_row_of_another_sessions_run_cannot_be_inserted(outsider, table, run_id):
    key = SESSION_OF[table]
    given = {key: f"'{run_id}'", "case_id": "'case-9'"}
    columns = outsider.columns(table)
    row = ", ".join(given.get(column, column) for column in columns)
    verbs = ["INSERT"] if outsider.dialect == "postgresql" else ["INSERT", "INSERT OR REPLACE"]
    for verb in verbs:
        with pytest.raises(Refused, match=HELD):
            outsider.execute(
                f"{verb} INTO {table} ({', '.join(columns)}) SELECT {row} FROM {table} WHERE {key} = 'run-1' LIMIT 1"
            )


def test_an_event_of_another_session_cannot_be_inserted(outsider):
    with pytest.raises(Refused, match=HELD):
        add_event(outsider, "r:run-1", session_id="session-2")


def test_an_event_of_another_run_cannot_be_inserted(outsider):
    with pytest.raises(Refused, match=HELD):
        add_event(outsider, "r:run-1", run_id="run-2")


def test_a_run_id_under_a_second_session_is_refused(recorded):  # CASES 42
    for run_id in ("run-1", "run-2"):
        error = recorded.journal.submit(ScriptedRun(run_id, "session-3", writer_id="w2").start()).exception()
        assert isinstance(error, RunIdTaken)
        assert "session" not in str(error)


def test_a_run_id_is_refused_a_second_time_in_its_own_session_too(recorded):
    error = recorded.journal.submit(ScriptedRun("run-1", "session-1", writer_id="w2").start()).exception()
    assert isinstance(error, RunIdTaken)


def test_of_two_sessions_that_begin_one_run_at_once_one_is_refused(ledger):  # CASES 42
    first = ledger.journal.submit(ScriptedRun("run-9", "session-1").start())
    second = ledger.journal.submit(ScriptedRun("run-9", "session-2", writer_id="w2").start())
    assert first.exception() is None
    assert isinstance(second.exception(), RunIdTaken)


def test_a_submission_with_an_event_of_another_run_is_not_even_taken(ledger):
    run, other = ScriptedRun("run-1"), ScriptedRun("run-2")
    with pytest.raises(MisplacedEvent):
        ledger.journal.submit(run.submission(*run.start().events, *other.start().events))
    with pytest.raises(MisplacedEvent):
        ledger.journal.submit(ScriptedRun("run-1", "session-2").submission(*run.start().events))


def test_a_submission_holds_run_events_only(ledger):
    run = ScriptedRun()
    opened = e.SessionOpened(event_id="w1:1", stream_id="s:session-1", session_id="session-1", occurred_us=1)
    with pytest.raises(MisplacedEvent):
        ledger.journal.submit(run.submission(opened))
    with pytest.raises(MisplacedEvent):
        ledger.journal.submit(run.submission())
