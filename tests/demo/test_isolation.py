"""Sessions, runs and what belongs to which, from the client's request to the rows in the file (SPEC R1-R8).

Shown in more detail elsewhere: bad bodies (`test_api.py`) and feedback (`viewer/test_writing.py`).
"""

import json
from pathlib import Path

import httpx2
import pytest

from tests.demo.apps import app_served
from tests.demo.chats import DISKS

ROOT = Path(__file__).parents[2]
SUMMARY = {
    *("runId", "sessionId", "query", "status", "agentFlow", "answerPreview"),
    *("stepCount", "toolCallCount", "createdAt", "updatedAt"),
}
TRACE = {"chatSession", "run", "agentSteps", "toolInvocations", "selfEvaluation", "answer", "feedback"}


@pytest.fixture(scope="module")
def app(tmp_path_factory, model_url):
    with app_served(tmp_path_factory.mktemp("app"), model_url) as app:
        yield app


@pytest.fixture(scope="module")
def talk(app):
    """Two chats and a check in one session, and a chat in another."""
    first = app.chat(DISKS, "talk").json()["data"]
    second = app.chat("And what about its logs?", "talk").json()["data"]
    with app.http.stream("POST", "/api/ai_ops", json={"sessionId": "talk"}) as response:
        check, *_ = [json.loads(event.data) for event in httpx2.EventSource(response)]
    other = app.chat(DISKS, "other").json()["data"]
    return first, second, check, other


def rows(app, table, column, run_id):
    return [row[0] for row in app.query(f"SELECT {column} FROM {table} WHERE run_id = ?", run_id)]


def test_a_valid_chat_makes_the_session_and_a_run_of_it(app, talk):  # R1
    runs = app.query("SELECT run_id, session_id FROM diagnosis_run WHERE session_id = 'other'")
    assert runs == [(talk[3]["runId"], "other")]
    assert app.query("SELECT message_pair_count FROM chat_session WHERE session_id = 'other'") == [(1,)]


def test_a_session_holds_metadata_and_no_word_of_what_was_said(app, talk):  # R1
    session = app.http.get("/api/chat/session/talk").json()["data"]
    assert set(session) == {"sessionId", "status", "messagePairCount", "createdAt", "lastActiveAt", "expiresAt"}
    assert (session["status"], session["messagePairCount"]) == ("ACTIVE", 3)
    (stored,) = app.query("SELECT * FROM chat_session WHERE session_id = 'talk'")
    assert [value for value in stored if isinstance(value, str | bytes)] == ["talk"]


def test_several_turns_are_one_session_and_as_many_runs(app, talk):  # R2
    first, second, check, _ = talk
    assert len({first["runId"], second["runId"], check["runId"]}) == 3
    assert second["answer"].startswith("Following up on disk space.")
    assert app.query("SELECT count(*) FROM diagnosis_run WHERE session_id = 'talk'") == [(3,)]


@pytest.mark.parametrize("table", ["agent_step", "tool_invocation"])
@pytest.mark.parametrize("which", range(4))
def test_steps_and_tools_carry_run_and_session_and_are_counted_by_run(app, talk, table, which):  # R3, R7
    ids = talk[which]
    found = rows(app, table, "session_id", ids["runId"])
    assert set(found) == {ids["sessionId"]}
    counted = {"agent_step": "step_count", "tool_invocation": "tool_call_count"}[table]
    assert rows(app, "diagnosis_run", counted, ids["runId"]) == [len(found)]


@pytest.mark.parametrize("query", ["", "?runId=", "?run_id=run-1", "?runId=a&runId=b"])
def test_a_trace_without_exactly_one_run_is_rejected_and_none_is_inferred(app, talk, query):  # R4
    answer = app.http.get(f"/api/diagnosis/talk/trace{query}")
    assert (answer.status_code, answer.json()["code"], answer.json()["data"]) == (400, "invalid_input", None)


def test_a_trace_is_exactly_the_run_that_was_asked_for(app, talk):  # R4
    for ids in talk:
        trace = app.trace(ids)
        assert set(trace) == TRACE
        assert (trace["run"]["sessionId"], trace["run"]["runId"]) == (ids["sessionId"], ids["runId"])
        parts = [*trace["agentSteps"], *trace["toolInvocations"]]
        assert {(part["sessionId"], part["runId"]) for part in parts} == {(ids["sessionId"], ids["runId"])}


def test_a_trace_of_another_sessions_run_is_as_unknown_as_any(app, talk):  # R4
    foreign = app.http.get("/api/diagnosis/talk/trace", params={"runId": talk[3]["runId"]})
    unknown = app.http.get("/api/diagnosis/talk/trace", params={"runId": "run-none"})
    assert (foreign.status_code, foreign.content) == (404, unknown.content)


def test_the_runs_of_a_session_are_listed_without_their_details(app, talk):  # R5
    listed = app.http.get("/api/chat/session/talk/runs").json()
    assert listed["code"] == "ok"
    assert [run["runId"] for run in listed["data"]] == [ids["runId"] for ids in reversed(talk[:3])]
    assert [run["agentFlow"] for run in listed["data"]] == ["AI_OPS", "CHAT_GRAPH", "CHAT_GRAPH"]
    assert {frozenset(run) for run in listed["data"]} == {frozenset(SUMMARY)}


def test_an_unknown_session_has_no_list(app, talk):  # R5
    answer = app.http.get("/api/chat/session/nobody/runs")
    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")


def test_feedback_goes_to_the_run_it_names_among_several_of_the_session(app, talk):  # R6
    first, second, *_ = talk
    ids = {"sessionId": "talk", "runId": second["runId"]}
    answer = app.http.post("/api/feedback", json={**ids, "useful": True, "comment": "It was the disk."})
    assert answer.json()["data"]["runId"] == second["runId"]
    assert app.trace(first)["feedback"] is None
    assert app.trace(second)["feedback"]["comment"] == "It was the disk."
    told = "session_id, query_digest, answer_digest"
    cases = app.query(f"SELECT {told} FROM case_library WHERE diagnosis_id = ?", second["runId"])
    assert cases == app.query(f"SELECT {told} FROM diagnosis_run WHERE run_id = ?", second["runId"])


def test_feedback_without_a_run_or_on_a_foreign_one_is_bound_to_none(app, talk):  # R6
    before = app.row_counts()
    without = app.http.post("/api/feedback", json={"sessionId": "talk", "useful": True})
    foreign = app.http.post("/api/feedback", json={"sessionId": "talk", "runId": talk[3]["runId"], "useful": True})
    assert (without.status_code, foreign.status_code) == (400, 404)
    assert app.row_counts() == before


def test_a_check_is_a_run_of_its_own_with_its_evaluation(app, talk):  # R7
    *_, check, _ = talk
    assert (check["type"], check["sessionId"]) == ("metadata", "talk")
    assert rows(app, "diagnosis_run", "agent_flow", check["runId"]) == ["AI_OPS"]
    (stored,) = rows(app, "diagnosis_run", "self_evaluation", check["runId"])
    assert json.loads(stored)["aiops_rule_evaluation"]["verdict"] == "PASS"
    for other in (talk[0], talk[1], talk[3]):
        (said,) = rows(app, "diagnosis_run", "self_evaluation", other["runId"])
        assert said is None or "aiops_rule_evaluation" not in said


def test_nothing_knows_of_another_model_of_a_diagnosis(app):  # R8
    known = {row[0] for row in app.query("SELECT name FROM sqlite_master")}
    assert {"chat_session", "diagnosis_run"} <= known
    assert "diagnosis_session" not in known
    packages = ("harness", "ledger", "viewer", "demo", "migrations")
    sources = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    assert len(sources) > len(packages)
    naming = [path for path in sources if "diagnosissession" in path.read_text().lower().replace("_", "")]
    assert naming == []
