"""What the app says of its own answers, and what the gatekeeper makes of that (SPEC R6, R7)."""

import json
from dataclasses import replace

import pytest

from demo.evaluation import CHAT_EVALUATION, evaluate_chat
from demo.gatekeeper import APPROVED, DEGRADED, NO_TOOL_USED, NOT_REVIEWED, NOT_SUCCESSFUL, Gatekeeper, judge
from demo.rules.results import Result
from demo.serving import serving
from ledger import LedgerReader, RunNotFound
from tests.demo.apps import app_served
from tests.demo.chats import DISKS
from tests.demo.scripted_model import answering


@pytest.fixture(scope="module")
def app(tmp_path_factory, model_url):
    with app_served(tmp_path_factory.mktemp("app"), model_url) as app:
        yield app


def verdict_after_feedback(app, data):
    """The verdict on the case that useful feedback makes of a run."""
    ids = {name: data[name] for name in ("sessionId", "runId")}
    answer = app.http.post("/api/feedback", json={**ids, "useful": True})
    assert answer.status_code == 200, answer.text
    ((verdict,),) = app.query("SELECT verdict FROM case_library WHERE diagnosis_id = ?", data["runId"])
    return verdict


def test_a_chat_that_looked_at_the_machine_evaluates_itself(app):
    data = app.chat(DISKS).json()["data"]
    said = app.trace(data)["selfEvaluation"][CHAT_EVALUATION]
    rules = {rule["rule"]: rule["passed"] for rule in json.loads(said["rationale"])["rules"]}
    assert said["verdict"] == "PASS"
    assert rules == dict.fromkeys(["evidence_found", "evidence_cited", "tools_worked", "not_degraded"], True)
    assert app.query("SELECT count(*) FROM event WHERE run_id = ? AND type = 'evaluation.recorded'", data["runId"]) == [
        (1,)
    ]


def test_a_useful_answer_from_evidence_is_approved(app):  # R6
    assert verdict_after_feedback(app, app.chat(DISKS).json()["data"]) == APPROVED


def test_an_answer_without_a_look_becomes_a_case_all_the_same_and_says_so(app):  # R6
    assert verdict_after_feedback(app, app.chat("What is swap?").json()["data"]) == NO_TOOL_USED


def test_a_degraded_answer_becomes_a_case_that_says_so(tmp_path):  # R6
    with serving("model", answering(lambda request: 500)) as model, app_served(tmp_path, model) as app:
        data = app.chat(DISKS).json()["data"]
        assert app.trace(data)["selfEvaluation"][CHAT_EVALUATION]["verdict"] == "FAIL"
        assert verdict_after_feedback(app, data) == DEGRADED


async def test_a_run_that_did_not_succeed_is_not_approved(app):
    data = app.chat(DISKS).json()["data"]
    async with await LedgerReader.open(f"sqlite:///{app.file}") as reader:
        trace = await reader.trace(data["sessionId"], data["runId"])
    failed = replace(trace.run, summary=replace(trace.run.summary, status="FAILED"))
    assert judge(replace(trace, run=failed)) == NOT_SUCCESSFUL
    assert judge(replace(trace, answer=None)) == "NO_ANSWER"
    assert judge(replace(trace, self_evaluation=None)) == "EVALUATION_FAILED"


class UnreadableLedger:
    """A ledger whose runs cannot be read, but which takes feedback."""

    def __init__(self):
        self.verdicts = []
        self.reader = self

    async def trace(self, session_id, run_id):
        raise RunNotFound(session_id, run_id)

    async def record_feedback(self, session_id, run_id, *, verdict, **said):
        self.verdicts.append(verdict)
        return "case-1"


async def test_a_gatekeeper_that_cannot_judge_prevents_nothing():  # R6
    ledger = UnreadableLedger()
    assert await Gatekeeper(ledger).record_feedback("s", "r", useful=True) == "case-1"
    assert ledger.verdicts == [NOT_REVIEWED]


FULL = Result("host_metrics", {}, {"disks": [{"mount": "/", "used_percent": 91.0}]})
BROKEN = Result("search_logs", {}, {"error": {"code": "x"}}, "x")


@pytest.mark.parametrize(
    ("answer", "results", "degraded", "failed"),
    [
        ("91.0% full", [FULL], False, set()),
        ("92% full", [FULL], False, {"evidence_cited"}),
        ("Full.", [FULL], False, {"evidence_cited"}),
        ("91.0% full", [FULL, BROKEN], False, {"tools_worked"}),
        ("91.0% full", [FULL], True, {"not_degraded"}),
        ("It is fine.", [], False, {"evidence_found", "evidence_cited"}),
    ],
)
def test_each_rule_of_a_chat_can_fail(answer, results, degraded, failed):
    found = evaluate_chat(answer, results, degraded=degraded)
    assert {rule["rule"] for rule in found["rules"] if not rule["passed"]} == failed
    assert found["verdict"] == ("FAIL" if failed else "PASS")


def test_an_earlier_case_is_offered_to_a_question_like_it_until_it_is_withdrawn(tmp_path, model_url):  # R6
    question = "What is the cause of the trouble with the disks?"
    with app_served(tmp_path, model_url) as app:
        first = app.chat(question).json()["data"]
        ids = {name: first[name] for name in ("sessionId", "runId")}
        app.http.post("/api/feedback", json={**ids, "useful": True})
        assert f"An earlier case like it, {first['runId']}" in app.chat(question).json()["data"]["answer"]
        app.http.post("/api/feedback", json={**ids, "useful": False})
        assert "An earlier case" not in app.chat(question).json()["data"]["answer"]
