"""The lists of all runs and sessions over a real socket, and a query as a filter (SPEC D14, E11)."""

import pytest
from starlette.requests import Request

from harness.errors import InvalidInput
from ledger.run_filter import RunFilter
from viewer.api.filters import run_filter

RUNS, SESSIONS = "/api/diagnosis/runs", "/api/chat/sessions"


def filter_of(query):
    return run_filter(Request({"type": "http", "query_string": query.encode(), "headers": []}))


def test_a_query_is_a_filter_of_the_same_conditions():
    query = (
        "sessionId=s-1&sessionPrefix=s&status=FAILED&status=RUNNING&agentFlow=AI_OPS&agent=triage&agentVersion=1.4"
        "&actor=alice&environment=test&label=team%3Dops&label=a%3Db%3Dc&tool=grep&reason=ERROR&degraded=true"
        "&feedback=none&without=agentVersion&without=actor&from=2026-12-01&to=2026-12-01T01:00:00Z"
    )
    assert filter_of(query) == RunFilter(
        session_id="s-1",
        session_prefix="s",
        status=("FAILED", "RUNNING"),
        agent_flow="AI_OPS",
        agent="triage",
        agent_version="1.4",
        actor="alice",
        environment="test",
        labels={"team": "ops", "a": "b=c"},
        tool="grep",
        reason="ERROR",
        degraded=True,
        feedback="none",
        without=("agent_version", "actor"),
        from_us=1_796_083_200_000_000,
        to_us=1_796_086_800_000_000,
    )


def test_fields_of_a_form_that_were_left_empty_ask_for_nothing():
    assert filter_of("sessionId=&status=&agent=&label=&degraded=&from=&to=&feedback=").is_empty


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=DONE", "status"),
        ("sessionId=a%20b", "sessionId"),
        ("agentFlow=a-b", "agentFlow"),
        ("label=team", "label"),
        ("label=%3Dops", "label"),
        ("degraded=1", "degraded"),
        ("feedback=maybe", "feedback"),
        ("without=tool", "without"),
        ("from=yesterday", "from"),
        ("from=2026-12-02&to=2026-12-01", "to"),
        ("agent=a&agent=b", "agent"),
    ],
)
def test_a_parameter_that_cannot_be_is_named(query, field, client):
    with pytest.raises(InvalidInput) as caught:
        filter_of(query)
    assert caught.value.field == field
    answer = client.get(f"{RUNS}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


def test_the_runs_of_all_sessions_come_newest_first_and_page_by_page(client):
    whole = client.get(RUNS).json()["data"]
    assert len({run["sessionId"] for run in whole}) > 1
    found, answer = [], client.get(RUNS, params={"limit": 2})
    while True:
        found += answer.json()["data"]
        if "next" not in answer.links:
            break
        answer = client.get(answer.links["next"]["url"])
    assert found == whole


def test_a_filter_picks_out_runs_and_stays_in_the_next_page(client):
    answer = client.get(RUNS, params={"status": "SUCCESS", "limit": 1})
    assert [run["status"] for run in answer.json()["data"]] == ["SUCCESS"]
    assert "status=SUCCESS" in answer.links["next"]["url"]


def test_every_session_is_listed_with_its_newest_run(client):
    sessions = client.get(SESSIONS).json()["data"]
    empty = next(one for one in sessions if one["sessionId"] == "s-empty")
    assert (empty["runCount"], empty["newestRun"]) == (0, None)
    for one in sessions:
        if one["newestRun"] is not None:
            assert one["newestRun"]["sessionId"] == one["sessionId"]


def test_sessions_are_picked_out_by_how_they_begin(client):
    sessions = client.get(SESSIONS, params={"sessionPrefix": "s-42"}).json()["data"]
    assert [one["sessionId"] for one in sessions] == ["s-42"]
    assert client.get(SESSIONS, params={"sessionPrefix": "a b"}).status_code == 400
