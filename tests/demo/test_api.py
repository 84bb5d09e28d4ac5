"""Chat and check over real sockets, with a real ledger: what is answered, and what is recorded."""

import json

import httpx2
import pytest

from demo.bounds import QUESTION_CHARS_MAX
from demo.offline_model.server import reply_to
from demo.serving import serving
from tests.demo.apps import app_served
from tests.demo.chats import DISKS, limits
from tests.demo.scripted_model import answering, failing
from viewer.http.json_body import BODY_BYTES_MAX


@pytest.fixture(scope="module")
def app(tmp_path_factory, model_url):
    with app_served(tmp_path_factory.mktemp("app"), model_url) as app:
        yield app


def events_of(response):
    """The messages of a stream, each checked to come as the event `message`."""
    events = list(httpx2.EventSource(response))
    assert {event.event for event in events} == {"message"}
    return [json.loads(event.data) for event in events]


def test_an_answer_brings_both_ids_flow_and_the_address_of_its_trace(app):  # SPEC R2
    answer = app.chat(DISKS)
    assert (answer.status_code, answer.json()["code"], answer.json()["message"]) == (200, "ok", "ok")
    data = answer.json()["data"]
    assert set(data) == {
        *("sessionId", "runId", "answer", "degraded", "agentFlow", "turnsRemembered", "turnKept", "traceUrl")
    }
    assert (data["agentFlow"], data["degraded"]) == ("CHAT_GRAPH", False)
    assert app.http.get(data["traceUrl"]).status_code == 200


def test_two_chats_in_one_session_make_two_runs_each_with_its_own_rows(app):  # SPEC R2, R3, R10
    first = app.chat(DISKS).json()["data"]
    second = app.chat("And what about its logs?", first["sessionId"]).json()["data"]
    assert second["answer"].startswith("Following up on disk space.")
    session_id, run_ids = first["sessionId"], {first["runId"], second["runId"]}
    assert len(run_ids) == 2
    rows = app.query("SELECT run_id, step_count, tool_call_count FROM diagnosis_run WHERE session_id = ?", session_id)
    assert {row[0] for row in rows} == run_ids
    for run_id, step_count, tool_call_count in rows:
        steps = app.query("SELECT session_id FROM agent_step WHERE run_id = ?", run_id)
        tools = app.query("SELECT session_id FROM tool_invocation WHERE run_id = ?", run_id)
        assert (len(steps), len(tools)) == (step_count, tool_call_count)
        assert set(steps) | set(tools) == {(session_id,)}
    assert app.query("SELECT message_pair_count FROM chat_session WHERE session_id = ?", session_id) == [(2,)]


def test_the_trace_of_the_run_id_in_the_answer_is_exactly_that_run(app):  # SPEC R4, R9, R13
    data = app.chat(DISKS).json()["data"]
    trace = app.trace(data)
    assert (trace["run"]["runId"], trace["run"]["status"], trace["answer"]) == (
        data["runId"],
        "SUCCESS",
        data["answer"],
    )
    assert trace["run"]["query"] == DISKS
    assert trace["run"]["orchestrationTrace"]["finalNode"] == "composer"
    steps = ["router", "planner", "executor", "executor", "semantic_guard", "composer"]
    assert [step["name"] for step in trace["agentSteps"]] == steps
    assert {tool["toolName"] for tool in trace["toolInvocations"]} == {"host_metrics", "search_logs", "search_runbooks"}


def test_a_run_is_not_found_in_another_session(app):  # SPEC R4
    first, other = app.chat("What is swap?").json()["data"], app.chat("What is swap?").json()["data"]
    answers = [
        app.http.get(f"/api/diagnosis/{other['sessionId']}/trace", params={"runId": run_id})
        for run_id in (first["runId"], "run-unknown")
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content


def test_a_simple_chat_has_no_orchestration_trace(app):  # SPEC D17, R13
    data = app.chat("What is swap?").json()["data"]
    assert data["agentFlow"] == "CHAT_SIMPLE"
    assert app.trace(data)["run"]["orchestrationTrace"] is None


def test_an_unknown_but_valid_session_is_created(app):  # SPEC D14
    assert app.chat("What is swap?", "my-own.session_1").json()["data"]["sessionId"] == "my-own.session_1"
    assert app.http.get("/api/chat/session/my-own.session_1").status_code == 200


def test_the_older_names_of_the_fields_are_taken_too(app):  # SPEC R2
    data = app.http.post("/api/chat", json={"Id": "older-1", "Question": "What is swap?"}).json()["data"]
    assert data["sessionId"] == "older-1"
    assert app.trace(data)["run"]["query"] == "What is swap?"


def test_a_field_that_comes_under_both_of_its_names_is_named(app):
    answer = raw(app, question("hi", Question="ho"))
    assert answer.json()["message"] == "Question is the older name of question, which is given, too"


def test_a_stored_trace_holds_nothing_of_prompts_or_results(app):  # SPEC R12
    data = app.chat(DISKS).json()["data"]
    ((stored,),) = app.query("SELECT orchestration_trace FROM diagnosis_run WHERE run_id = ?", data["runId"])
    for text in ("No space left", "Task:", "app.log", DISKS, "inode"):
        assert text not in stored


def test_no_history_is_in_the_ledger(app):  # SPEC R1, D10
    session_id = app.chat("What is swap? xylophone").json()["data"]["sessionId"]
    second = app.chat("What is swap? again", session_id).json()["data"]
    contents = app.query("SELECT data FROM content WHERE stream_id = ? AND data IS NOT NULL", f"r:{second['runId']}")
    assert contents
    assert not any(b"xylophone" in data for (data,) in contents)


def raw(app, content, *, content_type="application/json", path="/api/chat"):
    return app.http.post(path, content=content, headers={"Content-Type": content_type})


def question(text, **more):
    return json.dumps({"question": text, **more}).encode()


BAD_BODIES = {
    "empty": (b"", 400, "malformed_json"),
    "no json": (b"{", 400, "malformed_json"),
    "deep": (b"[" * 10_000, 400, "malformed_json"),
    "not an object": (b'["question"]', 400, "malformed_json"),
    "NaN": (b'{"question": NaN}', 400, "malformed_json"),
    "not utf-8": (b'{"question": "\xff"}', 400, "malformed_json"),
    "half a surrogate": (b'{"question": "\\ud800"}', 400, "malformed_json"),
    "no question": (b"{}", 400, "invalid_input"),
    "null question": (b'{"question": null}', 400, "invalid_input"),
    "a number for a question": (b'{"question": 1}', 400, "invalid_input"),
    "unknown field": (question("hi", sessionID="s-1"), 400, "invalid_input"),
    "both names of the question": (question("hi", Question="ho"), 400, "invalid_input"),
    "both names of the id": (question("hi", sessionId="s-1", Id="s-1"), 400, "invalid_input"),
    "empty question": (question(""), 400, "invalid_input"),
    "blank question": (question(" \n\t\u2003"), 400, "invalid_input"),
    "a question that nobody sees": (question("\u200b\0\u202e\ufeff\u0301"), 400, "invalid_input"),
    "a field that stands twice": (b'{"question": "a", "question": "b"}', 400, "malformed_json"),
    "over-long question": (question("x" * (QUESTION_CHARS_MAX + 1)), 400, "invalid_input"),
    "blank id": (question("hi", sessionId=" "), 400, "invalid_input"),
    "empty id": (question("hi", sessionId=""), 400, "invalid_input"),
    "over-long id": (question("hi", sessionId="s" * 129), 400, "invalid_input"),
    "unsafe id": (question("hi", sessionId="../etc"), 400, "invalid_input"),
    "id with a line end": (question("hi", sessionId="s-1\n"), 400, "invalid_input"),
    "id that is no string": (question("hi", sessionId=7), 400, "invalid_input"),
    "five megabytes": (question("x" * 5_000_000), 413, "body_too_large"),
    "just too large": (b" " * (BODY_BYTES_MAX + 1), 413, "body_too_large"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
@pytest.mark.parametrize("path", ["/api/chat", "/api/chat_stream", "/api/ai_ops"])
def test_a_bad_body_is_refused_and_nothing_is_created(app, path, name):  # SPEC R1, H1b
    body, status, code = BAD_BODIES[name]
    if path == "/api/ai_ops" and name in {"no question", "null question"}:
        return
    before = app.row_counts()
    answer = raw(app, body, path=path)
    assert (answer.status_code, answer.json()["code"], answer.json()["data"]) == (status, code, None)
    assert app.row_counts() == before
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
def test_another_content_type_is_refused_and_nothing_is_created(app, content_type):
    before = app.row_counts()
    answer = raw(app, question("hi"), content_type=content_type)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert app.row_counts() == before


def test_json_with_a_charset_is_json(app):
    assert raw(app, question("hello"), content_type="application/json; charset=utf-8").status_code == 200


def test_five_megabytes_without_a_declared_length_are_refused_too(app):
    pieces = (b" " * 50_000 for _ in range(100))
    answer = raw(app, pieces)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_the_longest_question_is_answered_in_any_script(app):
    assert app.chat("é" * QUESTION_CHARS_MAX).status_code == 200
    assert raw(app, json.dumps({"question": "語" * 15_000}, ensure_ascii=False).encode()).status_code == 200


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/api/chat", 405), ("POST", "/api/none", 404)])
def test_another_method_or_route_is_refused_in_the_wrapper(app, method, path, status):
    answer = app.http.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()) == {"code", "message", "data"}


def test_a_check_streams_metadata_then_content_then_done(app):  # SPEC R7
    with app.http.stream("POST", "/api/ai_ops", json={"sessionId": "ops-1"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        first, *content, last = events_of(response)
    assert set(first) == {"type", "sessionId", "runId"}
    assert (first["type"], first["sessionId"]) == ("metadata", "ops-1")
    assert {message["type"] for message in content} == {"content"}
    assert last == {"type": "done", "data": {"degraded": False}}
    trace = app.trace(first)
    assert (trace["run"]["agentFlow"], trace["run"]["status"]) == ("AI_OPS", "SUCCESS")
    assert trace["answer"] == "".join(message["data"] for message in content)
    assert trace["selfEvaluation"]["aiops_rule_evaluation"]["verdict"] == "PASS"


def test_a_check_may_be_given_a_question(app):
    with app.http.stream("POST", "/api/ai_ops", json={"question": "Why was last night slow?"}) as response:
        first = events_of(response)[0]
    assert app.trace(first)["run"]["query"] == "Why was last night slow?"


def test_a_chat_as_a_stream_tells_its_ids_first_then_the_answer_then_that_it_is_done(app):  # SPEC R2
    with app.http.stream("POST", "/api/chat_stream", json={"Id": "stream-1", "Question": DISKS}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        first, *content, last = events_of(response)
    assert first == {"type": "metadata", "sessionId": "stream-1", "runId": first["runId"], "turnsRemembered": 0}
    assert {message["type"] for message in content} == {"content"}
    assert last == {"type": "done", "data": {"agentFlow": "CHAT_GRAPH", "degraded": False, "turnKept": True}}
    trace = app.trace(first)
    assert trace["run"]["status"] == "SUCCESS"
    assert trace["answer"] == "".join(message["data"] for message in content)


def test_a_streamed_chat_and_a_plain_one_are_one_conversation(app):  # SPEC R2
    with app.http.stream("POST", "/api/chat_stream", json={"sessionId": "stream-2", "question": DISKS}) as response:
        first = events_of(response)[0]
    second = app.chat("And what about its logs?", "stream-2").json()["data"]
    assert second["answer"].startswith("Following up on disk space.")
    assert second["runId"] != first["runId"]


def test_a_cleared_conversation_is_forgotten_and_its_runs_stay(app):  # SPEC R1, D2
    first = app.chat(DISKS, "clear-1").json()["data"]
    before = app.trace(first)
    answer = app.http.post("/api/chat/clear", json={"Id": "clear-1"})
    assert (answer.status_code, answer.json()["data"]) == (200, {"sessionId": "clear-1"})
    assert app.query("SELECT type FROM event WHERE stream_id = 's:clear-1' ORDER BY seq") == [
        ("session.opened",),
        ("session.context_cleared",),
    ]
    assert app.trace(first) == before
    after = app.chat("And what about its logs?", "clear-1").json()["data"]
    assert not after["answer"].startswith("Following up")
    assert app.trace(after)["run"]["labels"] == {"turns_remembered": "0", "cases": "configured"}


def test_clearing_an_unknown_session_is_not_found_and_makes_none(app):  # SPEC D14
    before = app.row_counts()
    answer = app.http.post("/api/chat/clear", json={"sessionId": "clear-none"})
    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")
    assert app.row_counts() == before


def test_a_page_of_another_origin_can_ask_nothing(app):
    before = app.row_counts()
    for path in ("/api/chat", "/api/chat_stream", "/api/chat/clear", "/api/ai_ops"):
        answer = app.http.post(path, json={"question": "hi"}, headers={"Origin": "http://localhost:1"})
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
    assert app.row_counts() == before


def test_the_viewer_beside_it_takes_feedback_on_a_run(app):  # SPEC R6, D15
    data = app.chat("What is swap?").json()["data"]
    ids = {name: data[name] for name in ("sessionId", "runId")}
    answer = app.http.post("/api/feedback", json={**ids, "useful": True, "comment": "Yes."})
    assert answer.json()["data"]["runId"] == data["runId"]
    assert app.trace(data)["feedback"]["comment"] == "Yes."
    assert app.query("SELECT count(*) FROM case_library WHERE diagnosis_id = ?", data["runId"]) == [(1,)]


def test_without_a_model_a_chat_is_degraded_and_still_a_success(tmp_path):  # SPEC R11
    with serving("model", answering(lambda request: 500)) as model, app_served(tmp_path, model) as app:
        data = app.chat(DISKS).json()["data"]
        assert data["degraded"]
        run = app.trace(data)["run"]
    assert (run["status"], run["degraded"], run["orchestrationTrace"]["degraded"]) == ("SUCCESS", True, True)


def test_a_router_that_fails_once_is_one_step_with_two_attempts(tmp_path):  # SPEC H6, R3
    with serving("model", failing(500)) as model, app_served(tmp_path, model) as app:
        trace = app.trace(app.chat(DISKS).json()["data"])
    router = trace["agentSteps"][0]
    assert (router["name"], router["attemptCount"], router["status"]) == ("router", 2, "SUCCESS")
    assert trace["run"]["usage"]["modelCalls"] == 7


def test_the_shipped_client_sends_one_request_for_each_recorded_attempt(tmp_path):  # SPEC H7, CASES 13
    requests = []

    def refuse(request):
        requests.append(request)
        return 500

    with serving("model", answering(refuse)) as model, app_served(tmp_path, model) as app:
        run = app.trace(app.chat(DISKS).json()["data"])["run"]
    assert len(requests) == run["usage"]["modelCalls"] > 1


def test_an_exhausted_budget_is_409_with_both_ids_and_no_fallback(tmp_path, model_url):  # SPEC R11, D14
    with app_served(tmp_path, model_url, limits=limits(model_calls=3)) as app:
        answer = app.chat(DISKS)
        data = answer.json()["data"]
        run = app.trace(data)["run"]
    assert (answer.status_code, answer.json()["code"], data["outcome"]) == (409, "budget_exhausted", "BUDGET_EXHAUSTED")
    assert (run["status"], run["degraded"]) == ("BUDGET_EXHAUSTED", False)
    assert "fallback" not in json.dumps(run["orchestrationTrace"])


def test_a_passed_deadline_is_504_with_both_ids(tmp_path):  # SPEC R11, D14
    with serving("model", answering(reply_to, delay_s=0.3)) as model, app_served(tmp_path, model, timeout_s=0.7) as app:
        answer = app.chat(DISKS)
        data = answer.json()["data"]
        assert app.trace(data)["run"]["status"] == "TIMED_OUT"
    assert (answer.status_code, answer.json()["code"], data["outcome"]) == (504, "timed_out", "TIMED_OUT")


def test_a_check_that_ends_early_says_so_with_both_ids(tmp_path, model_url):  # SPEC D14
    with app_served(tmp_path, model_url, limits=limits(tool_calls=2)) as app:
        with app.http.stream("POST", "/api/ai_ops", json={}) as response:
            first, last = events_of(response)
        assert app.trace(first)["run"]["status"] == "BUDGET_EXHAUSTED"
    assert first["type"] == "metadata"
    assert (last["type"], last["code"], last["outcome"]) == ("error", "budget_exhausted", "BUDGET_EXHAUSTED")
    assert (last["sessionId"], last["runId"]) == (first["sessionId"], first["runId"])


def test_an_unforeseen_failure_is_500_with_both_ids_and_without_its_words(tmp_path, model_url, monkeypatch):  # SPEC D14
    async def broken(trip, conversation):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("demo.chat.choose_flow", broken)
    with app_served(tmp_path, model_url) as app:
        answer = app.chat(DISKS)
        data = answer.json()["data"]
        run = app.trace(data)["run"]
    assert (answer.status_code, answer.json()["code"], data["outcome"]) == (500, "failed", "FAILED")
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert (run["status"], run["outcomeReason"]) == ("FAILED", "UNHANDLED_EXCEPTION")
