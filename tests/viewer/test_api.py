"""The read API over a real socket (SPEC R4, R5, R13, D14, D16)."""

import re

import httpx2
import pytest

from tests.viewer.example_runs import success_run
from tests.viewer.fake_reader import FakeReader, unreadable
from tests.viewer.fake_run import FakeRun
from tests.viewer.served import client_of

TRACE = "/api/diagnosis/s-42/trace"
RUN_ID = "run-019ad3c1"

TRACE_MEMBERS = {"chatSession", "run", "agentSteps", "toolInvocations", "selfEvaluation", "answer", "feedback"}
SUMMARY_FIELDS = {
    "runId",
    "sessionId",
    "query",
    "status",
    "agentFlow",
    "answerPreview",
    "stepCount",
    "toolCallCount",
    "createdAt",
    "updatedAt",
}


def trace_of(client: httpx2.Client, session_id: str, run_id: str) -> dict:
    return client.get(f"/api/diagnosis/{session_id}/trace", params={"runId": run_id}).json()["data"]


def test_a_trace_is_exactly_its_seven_members_in_the_wrapper(client):
    answer = client.get(TRACE, params={"runId": RUN_ID})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"code", "message", "data"}
    assert answer.json()["code"] == "ok"
    assert set(answer.json()["data"]) == TRACE_MEMBERS


def test_a_trace_holds_rows_of_its_own_run_only(client):
    data = trace_of(client, "s-42", RUN_ID)
    rows = [data["run"], *data["agentSteps"], *data["toolInvocations"]]
    assert {(row["sessionId"], row["runId"]) for row in rows} == {("s-42", RUN_ID)}
    assert (data["run"]["stepCount"], data["run"]["toolCallCount"]) == (3, 6)
    assert (len(data["agentSteps"]), len(data["toolInvocations"])) == (3, 6)


def keys_in(value):
    if isinstance(value, dict):
        own_names = {"perTool", "labels", "selfEvaluation"}
        for key, child in value.items():
            yield key
            if key not in own_names:
                yield from keys_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from keys_in(child)


def test_every_name_is_camel_case(client):
    for run_id in (RUN_ID, "run-019ad3d7"):
        names = set(keys_in(trace_of(client, "s-42", run_id)))
        assert not [name for name in names if not re.fullmatch(r"[a-z][a-zA-Z0-9]*", name)]


def test_every_time_is_rfc_3339_in_utc_with_microseconds(client):
    data = trace_of(client, "s-42", RUN_ID)
    times = [data["run"][name] for name in ("createdAt", "updatedAt", "startedAt", "endedAt")]
    times += [data["chatSession"][name] for name in ("createdAt", "lastActiveAt")]
    times += [row["startedAt"] for row in data["agentSteps"] + data["toolInvocations"]]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", time) for time in times)


def test_the_orchestration_trace_is_parsed_and_only_on_the_run(client):  # R13
    data = trace_of(client, "s-42", RUN_ID)
    assert data["run"]["orchestrationTrace"]["finalNode"] == "executor"
    assert [step["to"] for step in data["run"]["orchestrationTrace"]["transitions"]] == [
        "planner",
        "executor",
        "evidence_guard",
        "executor",
    ]
    everything = client.get(TRACE, params={"runId": RUN_ID}).text
    assert everything.count("rchestration") == 1


def test_a_run_without_a_graph_has_no_orchestration_trace_made_up_for_it():
    run = FakeRun("s", "r", "q", {"model_calls": 1}).start()
    with client_of(FakeReader([run])) as client:
        assert trace_of(client, "s", "r")["run"]["orchestrationTrace"] is None


def test_free_text_comes_with_its_state_and_an_answer_as_text(client):
    data = trace_of(client, "s-42", "run-019ad3d7")
    assert data["answer"].startswith("No. /var on db-4")
    assert data["run"]["answerContent"]["state"] == "stored"
    assert data["agentSteps"][0]["input"] == {**data["agentSteps"][0]["input"], "state": "digest_only", "text": None}
    assert data["toolInvocations"][0]["input"]["text"] == '{"what":"disk","host":"db-4"}'
    assert data["feedback"]["useful"] is True


def test_limits_name_each_tool_exactly(client):
    limits = trace_of(client, "s-42", RUN_ID)["run"]["limits"]
    assert limits["perTool"] == {"query_logs": 5}
    assert limits["perToolDefault"] == 4
    assert limits["modelCalls"] == 8


def test_cost_reservations_and_observed_limits_are_members_of_the_run_alone():  # R4, D13
    run = FakeRun("s", "r", "q", {"model_calls": 1, "observe:tool:query_logs": 2, "observe:cost_micros": 900})
    run.start(currency="USD", price_table="2026-11")
    run.reserved = {"cost_micros": 70, "total_tokens": 29}
    with client_of(FakeReader([run])) as client:
        data = trace_of(client, "s", "r")
    assert set(data) == TRACE_MEMBERS
    assert data["run"]["limits"] == {"modelCalls": 1, "perTool": {}}
    assert data["run"]["observedLimits"] == {"costMicros": 900, "perTool": {"query_logs": 2}}
    assert data["run"]["reserved"] == {"costMicros": 70, "totalTokens": 29, "perTool": {}}
    assert (data["run"]["currency"], data["run"]["priceTable"], data["run"]["incidents"]) == ("USD", "2026-11", {})


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?runId=",
        "?runId=%20%09",
        "?runId=../etc",
        f"?runId={'x' * 129}",
        "?runId=%00",
        "?runId=%ff",
        "?runId=a&runId=a",
        "?runid=run-019ad3c1",
        "?runId=run%0Aid",
    ],
)
def test_a_missing_blank_unsafe_or_ambiguous_run_id_is_refused_and_none_is_inferred(client, query):  # R4
    answer = client.get(f"{TRACE}{query}")
    assert answer.status_code == 400
    assert answer.json() == {**answer.json(), "code": "invalid_input", "data": None}
    assert "runId" in answer.json()["message"]


def test_a_foreign_run_and_an_unknown_run_and_an_unknown_session_get_the_same_answer(client):  # CASES 43
    answers = [
        client.get("/api/diagnosis/s-43/trace", params={"runId": RUN_ID}),
        client.get(TRACE, params={"runId": "run-unknown"}),
        client.get("/api/diagnosis/s-none/trace", params={"runId": RUN_ID}),
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].json()["code"] == "run_not_found"


def test_an_unsafe_session_id_in_the_path_is_refused(client):
    answer = client.get("/api/diagnosis/a%20b/trace", params={"runId": RUN_ID})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


def test_the_runs_of_a_session_have_exactly_the_ten_fields_newest_first(client):  # R5
    runs = client.get("/api/chat/session/s-42/runs").json()["data"]
    assert [run["runId"] for run in runs] == ["run-019ad3d7", RUN_ID]
    assert all(set(run) == SUMMARY_FIELDS for run in runs)


def test_a_session_without_runs_has_an_empty_list_and_an_unknown_one_is_not_found(client):
    empty = client.get("/api/chat/session/s-empty/runs")
    assert (empty.status_code, empty.json()["data"]) == (200, [])
    for path in ("/api/chat/session/s-none/runs", "/api/chat/session/s-none"):
        unknown = client.get(path)
        assert (unknown.status_code, unknown.json()["code"]) == (404, "session_not_found")


def test_following_the_next_links_gives_every_run_once():
    runs = [FakeRun("s", f"r{index}", "q", {}, started_us=index).start() for index in range(7)]
    with client_of(FakeReader(runs)) as client:
        seen, path = [], "/api/chat/session/s/runs?limit=3"
        while path:
            answer = client.get(path)
            assert len(answer.json()["data"]) <= 3
            seen += [run["runId"] for run in answer.json()["data"]]
            path = answer.links.get("next", {}).get("url")
    assert seen == [f"r{index}" for index in reversed(range(7))]


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=-1", "limit=x", "limit=1e3", "limit=²", "limit="])
def test_a_bad_page_is_refused(client, query):
    answer = client.get(f"/api/chat/session/s-42/runs?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "must be a whole number from 1 to 200" in answer.json()["message"]


@pytest.mark.parametrize("cursor", ["zzz", ""])
def test_a_cursor_that_no_page_gave_is_refused(client, cursor):
    answer = client.get(f"/api/chat/session/s-42/runs?cursor={cursor}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


def test_session_metadata_holds_no_messages(client):
    data = client.get("/api/chat/session/s-42").json()["data"]
    assert set(data) == {"sessionId", "status", "messagePairCount", "createdAt", "lastActiveAt", "expiresAt"}


def test_an_unchanged_trace_is_not_sent_again():  # D16
    run = success_run()
    with client_of(FakeReader([run])) as client:
        first = client.get(TRACE, params={"runId": run.run_id})
        etag = first.headers["etag"]
        same = client.get(TRACE, params={"runId": run.run_id}, headers={"If-None-Match": f'"other", W/{etag}'})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
        lines = [("If-None-Match", '"other"'), ("If-None-Match", etag)]
        assert client.get(TRACE, params={"runId": run.run_id}, headers=lines).status_code == 304
        run.transition(2_600, "composer", "again")
        changed = client.get(TRACE, params={"runId": run.run_id}, headers={"If-None-Match": etag})
        assert changed.status_code == 200
        assert changed.headers["etag"] != etag


def test_the_tag_changes_when_only_the_session_does():
    run = success_run()
    reader = FakeReader([run])
    with client_of(reader) as client:
        first = client.get(TRACE, params={"runId": run.run_id}).headers["etag"]
        reader.expired = True
        assert client.get(TRACE, params={"runId": run.run_id}).headers["etag"] != first


def test_head_answers_like_get_without_a_body(client):
    for path in (f"{TRACE}?runId={RUN_ID}", f"/trace?sessionId=s-42&runId={RUN_ID}", "/healthz", "/"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == get.headers["content-length"]


def test_an_unknown_route_of_the_api_is_not_found_in_the_wrapper(client):
    answer = client.get("/api/nothing")
    assert answer.status_code == 404
    assert answer.json() == {"code": "not_found", "message": "not found", "data": None}


def test_a_wrong_method_is_refused_and_names_those_that_are_not(client):
    answer = client.delete(f"{TRACE}?runId={RUN_ID}")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


def test_the_server_is_healthy_while_it_can_read_the_ledger(client):
    assert client.get("/healthz").json() == {"code": "ok", "message": "ok", "data": {"status": "up"}}


def test_a_ledger_that_cannot_be_read_is_503_and_its_place_is_not_told():
    reader = FakeReader()
    reader.fails = unreadable()
    with client_of(reader) as client:
        for path in ("/healthz", f"{TRACE}?runId=r", "/api/chat/session/s/runs", "/", "/trace?sessionId=s&runId=r"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert "secret" not in answer.text


def test_an_unexpected_exception_is_told_without_its_words_and_logged_without_them(caplog):
    reader = FakeReader()
    reader.fails = RuntimeError("the secret question")
    with client_of(reader) as client:
        answer = client.get(f"{TRACE}?runId=r")
    assert (answer.status_code, answer.json()["code"], answer.json()["data"]) == (500, "internal_error", None)
    assert "secret" not in answer.text + caplog.text
    assert "Traceback" not in answer.text
    assert "RuntimeError at GET /api/diagnosis/{sessionId}/trace" in caplog.text
