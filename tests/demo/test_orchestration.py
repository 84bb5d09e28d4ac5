"""The orchestration trace of real chats: what the graph's events say, no more, and only where there are any."""

import json

import pytest

from demo.graph.build import NODES
from demo.offline_model.faults import Fault
from demo.serving import serving
from tests.demo.apps import app_served
from tests.demo.chats import DISKS, limits
from tests.demo.scripted_model import Plan, with_faults

STRAIGHT = ["planner", "executor", "semantic_guard", "evidence_guard", "composer"]
REPAIRED = [*STRAIGHT[:4], "executor", "semantic_guard", "evidence_guard", "composer"]
UNFOUND = "find `zebra unicorn` in the logs"
LOOKING = {"investigate": Fault.WRONG_TOOL, "repair": Fault.WRONG_TOOL}
WAYS = {
    "straight": (DISKS, {}, STRAIGHT, "COMPOSED", 0),
    "repaired": (UNFOUND, {}, REPAIRED, "COMPOSED", 1),
    "no evidence": (DISKS, LOOKING, [*REPAIRED[:7], "fallback"], "NO_EVIDENCE", 1),
    "no plan": (DISKS, {"plan": Fault.RESET}, ["planner", "fallback"], "MODEL_FAILED", 0),
    "no judge": (DISKS, {"judge": Fault.REFUSAL}, [*STRAIGHT[:3], "fallback"], "MODEL_FAILED", 0),
    "no answer": (DISKS, {"answer": Fault.EMPTY}, [*STRAIGHT, "fallback"], "MODEL_FAILED", 0),
}
"""A question, what goes wrong, the nodes that are entered, why the graph ends, and how often it looked again."""
WORDS = {*NODES, "NEXT", "REPAIR", "FALLBACK", "COMPOSED", "NO_EVIDENCE", "MODEL_FAILED"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    plan = Plan()
    with (
        serving("model", with_faults(plan)) as model,
        app_served(tmp_path_factory.mktemp("app"), model) as app,
    ):
        yield app, plan


@pytest.fixture
def app(served):
    served[1].clear()
    return served[0]


@pytest.fixture
def plan(served):
    return served[1]


def events(app, run_id):
    rows = app.query("SELECT body FROM event WHERE stream_id = ? ORDER BY seq", f"r:{run_id}")
    return [json.loads(body) for (body,) in rows]


def texts(value):
    """Every text in a JSON value, other than the keys of its objects."""
    if isinstance(value, dict | list):
        return {text for part in (value.values() if isinstance(value, dict) else value) for text in texts(part)}
    return {value} if isinstance(value, str) else set()


@pytest.mark.parametrize("name", WAYS)
def test_a_chat_that_is_answered_is_traced_as_its_events_say(app, plan, name):  # R11, R12
    question, plan.stays, nodes, reason, repair_count = WAYS[name]
    answered = app.chat(question).json()["data"]
    run = app.trace(answered)["run"]
    is_degraded = nodes[-1] == "fallback"
    assert (run["status"], run["degraded"], answered["degraded"]) == ("SUCCESS", is_degraded, is_degraded)

    trace, told = run["orchestrationTrace"], events(app, answered["runId"])
    moved = [event for event in told if event["type"] == "graph.transitioned"]
    assert trace == {
        "version": 1,
        "transitions": [
            {"n": number, "from": event.get("from_node"), "to": event["to_node"], "cause": event["cause"]}
            for number, event in enumerate(moved, start=1)
        ],
        "transitionCount": len(nodes),
        "truncated": False,
        "finalNode": nodes[-1],
        "terminationReason": reason,
        "degraded": is_degraded,
        "evidenceRetryCount": repair_count,
    }
    assert [step["to"] for step in trace["transitions"]] == nodes
    assert all(step["to"] in NODES[step["from"]][1] for step in trace["transitions"][1:])
    assert texts(trace) <= WORDS
    kinds = [event["type"] for event in told]
    assert kinds.index("graph.transitioned") < kinds.index("graph.finished") < kinds.index("run.terminated")


def test_the_trace_is_given_parsed_in_one_place(app):  # R13
    body = app.trace(app.chat(DISKS).json()["data"])
    named = [key for part in (body, body["run"]) for key in part if "orchestration" in key.lower()]
    assert named == ["orchestrationTrace"]
    assert isinstance(body["run"]["orchestrationTrace"], dict)


def test_a_chat_without_a_graph_has_none_whatever_comes_of_it(app, plan):  # D17, R13
    answered = app.chat("What is swap?").json()["data"]
    plan.stays = {"chat": Fault.SERVER_ERROR}
    failed = app.chat("What is swap?")
    assert (failed.status_code, failed.json()["data"]["outcome"]) == (500, "FAILED")
    for ids in (answered, failed.json()["data"]):
        assert app.trace(ids)["run"]["orchestrationTrace"] is None


@pytest.mark.parametrize(
    ("settings", "faults", "status", "outcome", "nodes"),
    [
        ({"limits": limits(model_calls=2)}, {}, 409, "BUDGET_EXHAUSTED", ["planner", "executor"]),
        ({"limits": limits(tool_calls=2)}, {}, 409, "BUDGET_EXHAUSTED", ["planner", "executor"]),
        ({"limits": limits(model_calls=5)}, {}, 409, "BUDGET_EXHAUSTED", STRAIGHT),
        ({"timeout_s": 1.5}, {"judge": Fault.SILENCE}, 504, "TIMED_OUT", STRAIGHT[:3]),
    ],
    ids=["model calls", "tool calls", "the last model call", "time"],
)
def test_an_end_by_budget_or_deadline_is_an_error_with_a_partial_trace_and_no_fallback(
    tmp_path, settings, faults, status, outcome, nodes
):  # R11, D14
    plan = Plan()
    plan.stays = faults
    with serving("model", with_faults(plan)) as model, app_served(tmp_path, model, **settings) as app:
        refused = app.chat(DISKS, "s-1")
        data = refused.json()["data"]
        run = app.trace(data)["run"]
    assert (refused.status_code, data["sessionId"], data["outcome"]) == (status, "s-1", outcome)
    assert run["status"] == outcome
    trace = run["orchestrationTrace"]
    assert [step["to"] for step in trace["transitions"]] == nodes
    assert (trace["finalNode"], trace["degraded"], trace["truncated"]) == (None, False, False)
    assert trace["terminationReason"] == run["outcomeReason"]
