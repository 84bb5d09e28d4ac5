"""The viewer over a real ledger, with runs that a real harness made."""

import asyncio
import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from ledger import Ledger
from ledger.cli import read as commands
from ledger.words.codes import resource
from tests.viewer.example_runs import HOSTILE
from tests.viewer.served import client_of
from tests.viewer.test_pages import read


@pytest.fixture(scope="module")
def source(recorded_runs, tmp_path_factory):
    return Path(shutil.copy(recorded_runs, tmp_path_factory.mktemp("real")))


def page_of(session_id: str, run_id: str) -> str:
    return f"/trace?sessionId={session_id}&runId={run_id}"


def trace_of(client, session_id, run_id):
    answer = client.get(f"/api/diagnosis/{session_id}/trace", params={"runId": run_id})
    assert answer.status_code == 200
    return answer.json()["data"]


@pytest.mark.parametrize(
    ("session_id", "run_id", "words"),
    [
        ("s-1", "r-answered", "Answered after 1.58 s. It made one write: open_ticket."),
        (
            "s-1",
            "r-budget",
            "Stopped after 400 ms: a third query_logs call would have passed its limit of 2. It was in executor.",
        ),
        (
            "s-4",
            "r-astray",
            "A policy denied one call. Work was let past a limit that is only observed, 3 times. It changed nothing",
        ),
        ("s-2", "r-failed", "Failed after 10 ms: the plan was empty."),
        ("s-2", "r-cancelled", "Cancelled after 0 s because the client went away."),
        ("s-2", "r-timed-out", "Stopped after 1.00 s: its time of 1.00 s was up."),
    ],
)
def test_each_way_a_run_can_end_is_told(client, session_id, run_id, words):
    paragraph = re.search(r'<p class="why">(.*?)</p>', client.get(page_of(session_id, run_id)).text, re.DOTALL)
    assert words in " ".join(re.sub(r"<[^>]*>", "", paragraph[1]).split())


def test_the_trace_of_a_run_is_that_run(client):
    data = trace_of(client, "s-1", "r-answered")
    assert data["run"]["status"] == "SUCCESS"
    assert data["answer"] == "The disk is full."
    assert [step["name"] for step in data["agentSteps"]] == ["router", "composer"]
    assert data["agentSteps"][0]["attemptCount"] == 2
    assert [tool["toolName"] for tool in data["toolInvocations"]] == ["query_metrics", "query_logs", "open_ticket"]
    assert data["run"]["orchestrationTrace"]["finalNode"] == "composer"
    assert data["feedback"] == {**data["feedback"], "useful": True, "comment": "Exactly."}
    assert data["selfEvaluation"]["aiops_rule_evaluation"]["verdict"] == "PASS"
    assert data["chatSession"]["messagePairCount"] == 1


def test_the_page_of_a_run_shows_its_retry_its_failure_and_its_write(client):
    text = read(client, page_of("s-1", "r-answered")).text
    for words in ("attempt 1 of 2 · connection failed", "back-off", "kern.log: permission denied", "open_ticket"):
        assert words in text


def test_the_page_of_a_run_shows_its_scope_its_cost_its_denial_and_its_stream(client):  # D5, D13, H4
    text = read(client, page_of("s-4", "r-astray")).text
    for words in (
        "The scope deploys was exhausted (model calls: 1 of 1 used).",
        "exhausted · model calls: 1 of 1 used · at most 30.0 s",
        "refused by its scope · model calls: 1 of 1 used",
        "denied by tool_rules · effect not allowed",
        "only observed: query_logs: 2 of 2 used",
        "first output after 400 ms",
        "prices 2026-11",
        "0.00072 / 0.004 USD",
    ):
        assert words in text, words


def test_the_trace_of_such_a_run_has_its_figures_and_only_what_was_done(client):  # R3, R4
    data = trace_of(client, "s-4", "r-astray")
    assert [tool["toolName"] for tool in data["toolInvocations"]] == ["query_logs"] * 3
    assert [(step["name"], step["costMicros"], step["outputChunks"]) for step in data["agentSteps"]] == [
        ("planner", 360, None),
        ("composer", 360, 2),
    ]
    run = data["run"]
    assert (run["currency"], run["usage"]["costMicros"], run["reserved"]) == ("USD", 720, {"perTool": {}})
    assert run["incidents"] == {"callsDenied": 1, "limitsPassed": 3, "scopesExhausted": 1}
    assert run["observedLimits"] == {"perTool": {"query_logs": 2}, "repeatedCalls": 1}
    assert run["agentFlow"] == "CHAT_GRAPH"


def test_hostile_content_of_a_real_run_is_inert_on_the_page_and_exact_in_the_api(client):
    html = client.get(page_of("s-3", "r-hostile")).text
    assert "<script>window" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    data = trace_of(client, "s-3", "r-hostile")
    assert data["run"]["query"] == " ".join(HOSTILE)
    assert [tool["output"]["text"] for tool in data["toolInvocations"]][: len(HOSTILE)] == HOSTILE


def camel(name):
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def told_otherwise(by_command, by_api, at=""):
    """Where two tell the same fact, but not the same; of names the ones in the middle of a line are the API's."""
    if isinstance(by_command, dict) and isinstance(by_api, dict):
        both = ((name, camel(name)) for name in by_command if camel(name) in by_api)
        return [each for name, its in both for each in told_otherwise(by_command[name], by_api[its], f"{at}.{its}")]
    if isinstance(by_command, list) and isinstance(by_api, list) and len(by_command) == len(by_api):
        pairs = enumerate(zip(by_command, by_api, strict=True))
        return [each for number, both in pairs for each in told_otherwise(*both, f"{at}.{number}")]
    is_alike = by_command == by_api or (by_command == "" and by_api is None and at.endswith("mediaType"))
    return [] if is_alike else [(at, by_command, by_api)]


def gauges_on(text):
    """The name of each gauge of a page, with what is used and what there is."""
    found = re.findall(r'class="label">(.*?)</span><span class="amount">(.*?)</span>(?:</span>)?<', text, re.DOTALL)
    return {unescape(re.sub("<[^>]*>", "", name)): re.sub("<[^>]*>", "", figures) for name, figures in found}


def test_commands_the_api_and_the_page_tell_of_each_run_the_same(client, source):
    def said(command, *arguments):
        return CliRunner().invoke(command, [*arguments, "--db", str(source)]).stdout

    listed = json.loads(said(commands.runs, "--limit", "100", "--json"))["rows"]
    lines = client.get("/api/diagnosis/runs?limit=100").json()["data"]
    assert told_otherwise(listed, lines) == []
    assert {line["status"] for line in lines} >= {"SUCCESS", "BUDGET_EXHAUSTED", "TIMED_OUT", "FAILED", "CANCELLED"}
    for line in lines:
        keys = line["sessionId"], line["runId"]
        shown, traced = json.loads(said(commands.show, "/".join(keys), "--json")), trace_of(client, *keys)
        facts = ("run", "agent_steps", "tool_invocations")
        assert told_otherwise({fact: shown[fact] for fact in facts}, traced) == [], keys
        assert told_otherwise(shown["run"]["summary"], traced["run"]) == [], keys
        table = re.findall(
            r"^(tool\S+|model_calls|\w+_tokens) +(≥ )?(\d+) +(\d+)$", said(commands.show, "/".join(keys)), re.M
        )
        gauges = gauges_on(client.get(page_of(*keys)).text)
        assert len(table) > 4
        for name, at_least, used, limit in table:
            assert gauges[resource(name)] == f"{at_least}{int(used):,} / {int(limit):,}", (keys, name)


def test_a_foreign_run_and_an_unknown_one_get_the_same_answer(client):
    foreign, unknown = (
        client.get("/api/diagnosis/s-2/trace", params={"runId": run_id}) for run_id in ("r-answered", "r-unknown")
    )
    assert (foreign.status_code, foreign.content) == (404, unknown.content)


def test_lists_follow_their_next_links_over_the_real_cursor(client):
    seen, path = [], "/api/chat/session/s-2/runs?limit=2"
    while path:
        answer = client.get(path)
        seen += [run["runId"] for run in answer.json()["data"]]
        path = answer.links.get("next", {}).get("url")
    assert seen == ["r-timed-out", "r-cancelled", "r-failed"]
    assert client.get("/api/chat/session/s-2/runs?cursor=nonsense").json()["code"] == "invalid_cursor"


def test_an_empty_session_and_an_unknown_one_are_told_apart(client):
    assert client.get("/api/chat/session/s-empty/runs").json()["data"] == []
    assert client.get("/api/chat/session/s-none/runs").status_code == 404


def test_an_annotation_after_the_end_changes_the_tag(client, source):
    url = "/api/diagnosis/s-1/trace?runId=r-budget"
    etag = client.get(url).headers["etag"]
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 304

    async def annotate() -> None:
        async with await Ledger.open(source) as ledger:
            await ledger.record_feedback("s-1", "r-budget", useful=False)

    asyncio.run(annotate())
    changed = client.get(url, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.json()["data"]["feedback"]["useful"] is False


def test_a_ledger_whose_file_is_gone_is_503(recorded_runs, tmp_path):
    path = Path(shutil.copy(recorded_runs, tmp_path))
    with client_of(path) as client:
        assert client.get("/healthz").status_code == 200
        for name in tmp_path.iterdir():
            name.unlink()
        path.write_bytes(b"no ledger at all")
        answer = client.get("/api/diagnosis/s-1/trace?runId=r-budget")
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text
