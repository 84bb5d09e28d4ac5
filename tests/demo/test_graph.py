"""Chats through router and graph, with a model over real HTTP and the journal in memory."""

import asyncio
import json
from dataclasses import replace

import pytest

from demo.bounds import CHAT_LIMITS
from demo.investigation import call_tools
from demo.offline_model.server import reply_to
from demo.offline_model.wire import Reply
from demo.tools import TOOLS
from demo.tools.errors import failure_type
from harness import Harness
from harness.adapters.openai import ToolCall
from tests.demo.chats import DISKS, ask, limits, of_type, started, transitions
from tests.demo.scripted_model import answering, calls, failing, failing_from, task_of

LOOKING = {"investigate", "repair"}


async def test_a_complex_question_goes_from_planner_to_composer(chatting, journal):  # SPEC R11
    async with chatting() as agent:
        answer = await ask(agent, DISKS)
    assert transitions(journal, answer.run_id) == [
        (None, "planner", "NEXT"),
        ("planner", "executor", "NEXT"),
        ("executor", "semantic_guard", "NEXT"),
        ("semantic_guard", "evidence_guard", "NEXT"),
        ("evidence_guard", "composer", "NEXT"),
    ]
    (finished,) = of_type(journal, answer.run_id, "graph.finished")
    assert (finished.final_node, finished.reason, finished.degraded) == ("composer", "COMPOSED", False)
    assert journal.state(answer.run_id).outcome == "SUCCESS"
    assert not answer.degraded


async def test_the_answer_comes_from_evidence_that_the_tools_found(chatting):
    async with chatting() as agent:
        answer = await ask(agent, DISKS)
    assert "`app.log:1`: `kernel: No space left on device`" in answer.text
    assert "runbooks/disk-full.md" in answer.text


async def test_the_router_runs_before_the_graph_and_its_choice_is_recorded(chatting, journal):  # SPEC D17
    async with chatting() as agent:
        answer = await ask(agent, DISKS)
    kinds = [event.type for event in journal.events(answer.run_id)]
    assert kinds.index("attempt.succeeded") < kinds.index("flow.selected") < kinds.index("graph.transitioned")
    assert of_type(journal, answer.run_id, "flow.selected")[0].flow == "CHAT_GRAPH"


async def test_a_simple_question_is_one_model_call_and_no_graph(chatting, journal):  # SPEC D17
    async with chatting() as agent:
        answer = await ask(agent, "What is swap?")
    assert transitions(journal, answer.run_id) == []
    assert of_type(journal, answer.run_id, "graph.finished") == []
    assert journal.state(answer.run_id).usage["model_calls"] == 2
    assert of_type(journal, answer.run_id, "flow.selected")[0].flow == "CHAT_SIMPLE"


async def test_tools_called_at_once_have_scopes_of_their_own_and_the_models_ids(chatting, journal):  # SPEC D7
    async with chatting() as agent:
        answer = await ask(agent, DISKS)
    made = started(journal, answer.run_id, "/tool/")
    assert sorted(event.boundary for event in made) == [
        "executor.2/batch/tools/1/1/0/tool/host_metrics/1/1",
        "executor.2/batch/tools/1/1/1/tool/search_logs/1/1",
        "executor.2/batch/tools/1/1/2/tool/search_runbooks/1/1",
    ]
    assert {event.call_id for event in made} == {"call_0", "call_1", "call_2"}
    assert {event.tool_key for event in made} == {f"demo:{answer.run_id}:call_{number}" for number in range(3)}
    assert {event.effect for event in made} == {"read"}
    assert not any(event.ambiguous for event in made)


async def test_the_second_question_is_understood_by_the_first(chatting):  # SPEC R2
    async with chatting() as agent:
        first = await ask(agent, DISKS)
        second = await ask(agent, "And what about its logs?")
        elsewhere = await ask(agent, "And what about its logs?", session_id="s-2")
    assert second.run_id != first.run_id
    assert second.text.startswith("Following up on disk space.")
    assert not elsewhere.text.startswith("Following up")


async def test_missing_evidence_is_repaired_once_by_looking_wider(chatting, journal):
    async with chatting() as agent:
        answer = await ask(agent, "find `zebra unicorn` in the logs")
    assert transitions(journal, answer.run_id)[2:6] == [
        ("executor", "semantic_guard", "NEXT"),
        ("semantic_guard", "evidence_guard", "NEXT"),
        ("evidence_guard", "executor", "REPAIR"),
        ("executor", "semantic_guard", "NEXT"),
    ]
    assert answer.text.startswith("It is not in the logs.")
    kinds = {event.operation for event in of_type(journal, answer.run_id, "attempt.started")}
    assert "EVIDENCE_REPAIR" in kinds


async def test_evidence_about_something_else_is_repaired_once_like_none(chatting, journal):
    def stray(request):
        metrics = calls(("host_metrics", {"sections": ["load"]}))
        has_called = any(message.role == "tool" for message in request.messages)
        if task_of(request) == "investigate":
            return Reply("enough") if has_called else metrics
        return Reply("I looked.") if task_of(request) == "repair" else reply_to(request)

    async with chatting(answering(stray)) as agent:
        answer = await ask(agent, DISKS)
    assert [to for _, to, _ in transitions(journal, answer.run_id)] == [
        "planner",
        *["executor", "semantic_guard", "evidence_guard"] * 2,
        "fallback",
    ]
    assert of_type(journal, answer.run_id, "graph.finished")[0].reason == "NO_EVIDENCE"
    assert {event.operation for event in started(journal, answer.run_id, "/model/semantic_guard/")} == {
        "SEMANTIC_GUARD"
    }


async def test_where_nothing_was_found_nobody_is_asked_to_judge_it(chatting, journal):
    async with chatting(
        answering(lambda request: Reply("no") if task_of(request) in LOOKING else reply_to(request))
    ) as a:
        answer = await ask(a, DISKS)
    assert "semantic_guard" in {to for _, to, _ in transitions(journal, answer.run_id)}
    assert started(journal, answer.run_id, "/model/semantic_guard/") == []


async def test_evidence_that_is_still_missing_leads_to_the_fallback(chatting, journal):
    def no_tools(request):
        return Reply("enough") if task_of(request) in {"investigate", "repair"} else reply_to(request)

    async with chatting(answering(no_tools)) as agent:
        answer = await ask(agent, DISKS)
    assert answer.degraded
    assert transitions(journal, answer.run_id)[-1] == ("evidence_guard", "fallback", "FALLBACK")
    assert [cause for _, _, cause in transitions(journal, answer.run_id)].count("REPAIR") == 1
    assert of_type(journal, answer.run_id, "graph.finished")[0].reason == "NO_EVIDENCE"


async def test_the_router_is_asked_again_after_a_technical_failure_and_both_attempts_are_recorded(chatting, journal):
    async with chatting(failing(500)) as agent:  # SPEC H6
        answer = await ask(agent, DISKS)
    attempts = started(journal, answer.run_id, "/router/")
    assert [event.boundary for event in attempts] == [f"intent_router/model/router/1/{number}" for number in (1, 2)]
    assert of_type(journal, answer.run_id, "attempt.failed")[0].failure == "PROVIDER_ERROR"
    assert not answer.degraded


async def test_a_router_that_does_not_answer_in_json_is_asked_again(chatting, journal):
    async with chatting(failing("COMPLEX, I think")) as agent:
        answer = await ask(agent, "What is swap?")
    assert of_type(journal, answer.run_id, "attempt.failed")[0].failure == "MALFORMED_REPLY"
    assert answer.flow.value == "CHAT_SIMPLE"


async def test_json_between_other_words_is_understood(chatting, journal):
    fenced = 'Sure:\n```json\n{"intent": "SIMPLE"}\n```'
    async with chatting(failing(fenced)) as agent:
        answer = await ask(agent, DISKS)
    assert answer.flow.value == "CHAT_SIMPLE"
    assert of_type(journal, answer.run_id, "attempt.failed") == []


async def test_without_any_model_the_fallback_still_measures_the_machine(chatting, journal):  # SPEC R11
    async with chatting(answering(lambda request: 503)) as agent:
        answer = await ask(agent, DISKS)
    assert answer.degraded
    assert "`/` is" in answer.text
    assert transitions(journal, answer.run_id) == [(None, "planner", "NEXT"), ("planner", "fallback", "FALLBACK")]
    (finished,) = of_type(journal, answer.run_id, "graph.finished")
    assert (finished.final_node, finished.reason, finished.degraded) == ("fallback", "MODEL_FAILED", True)
    assert journal.state(answer.run_id).outcome == "SUCCESS"
    routed = started(journal, answer.run_id, "/router/")
    assert len(routed) == 2


@pytest.mark.parametrize("task", ["investigate", "answer"])
async def test_a_model_that_fails_later_leads_to_a_fallback_with_what_was_found(chatting, journal, task):
    async with chatting(failing_from(task)) as agent:
        answer = await ask(agent, DISKS)
    assert answer.degraded
    assert transitions(journal, answer.run_id)[-1][1:] == ("fallback", "FALLBACK")
    tools = started(journal, answer.run_id, "/tool/")
    assert len(tools) == (1 if task == "investigate" else 3)


async def test_an_unreadable_plan_is_done_without(chatting):
    def vague(request):
        return Reply("first, look around") if task_of(request) == "plan" else reply_to(request)

    async with chatting(answering(vague)) as agent:
        assert not (await ask(agent, DISKS)).degraded


async def test_wrong_arguments_go_back_to_the_model_as_a_typed_error(chatting, journal):
    seen = []

    def clumsy(request):
        if task_of(request) != "investigate":
            return reply_to(request)
        answers = [json.loads(message.text) for message in request.messages if message.role == "tool"]
        seen.append(answers)
        if not answers:
            return calls(("host_metrics", {"sections": ["gpu"]}), ("no_such_tool", {}))
        return Reply("enough") if len(answers) > 2 else calls(("host_metrics", {}))

    async with chatting(answering(clumsy)) as agent:
        answer = await ask(agent, DISKS)
    assert [error["error"]["code"] for error in seen[1]] == ["invalid_arguments", "unknown_tool"]
    (failed,) = of_type(journal, answer.run_id, "attempt.failed")
    assert (failed.failure, failed.error_type) == ("INVALID_ARGUMENTS", "InvalidArguments")
    assert not answer.degraded


async def test_a_model_that_never_gets_its_arguments_right_is_stopped(chatting, journal):
    def stubborn(request):
        wrong = calls(("host_metrics", {"sections": ["gpu"]}))
        return wrong if task_of(request) in {"investigate", "repair"} else reply_to(request)

    async with chatting(answering(stubborn)) as agent:
        answer = await ask(agent, DISKS)
    assert answer.degraded
    assert len(of_type(journal, answer.run_id, "attempt.failed")) == 4


@pytest.mark.parametrize("arguments", ["{", "[1]", '"x"', "null"])
async def test_arguments_that_are_no_object_are_refused_and_recorded(chatting, journal, arguments):
    async with chatting() as agent, agent.run("s-1", "q") as run:
        (text,) = await call_tools(agent.trip(run), [ToolCall("c", "search_logs", arguments)])
    assert json.loads(text)["error"]["code"] == "invalid_arguments"
    assert len(of_type(journal, run.run_id, "attempt.failed")) == 1


async def test_a_tool_that_would_write_is_denied_and_the_model_is_told(chatting, journal, monkeypatch):
    monkeypatch.setattr("demo.tools.registry.TOOLS", tuple(replace(tool, effect="write") for tool in TOOLS))
    asked = [ToolCall(f"c{number}", name, "{}") for number, name in enumerate(("host_metrics", "rm_rf"))]
    async with chatting() as agent, agent.run("s-1", "q") as run:
        texts = await call_tools(agent.trip(run), asked)
    errors = [json.loads(text)["error"] for text in texts]
    assert errors[0] == {"code": "tool_denied", "message": "read_only does not allow it: EFFECT_NOT_ALLOWED"}
    assert errors[1]["code"] == "unknown_tool"
    assert of_type(journal, run.run_id, "attempt.started") == []
    decided = of_type(journal, run.run_id, "policy.decided")
    assert [(event.name, event.allowed, event.reason) for event in decided] == [
        ("host_metrics", False, "EFFECT_NOT_ALLOWED"),
        ("rm_rf", False, "TOOL_NOT_ALLOWED"),
    ]


@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("rm -rf /", "rm -rf /"),
        ("query_prometheus", "query_prometheus"),
        ("x" * 500, "unknown_tool"),
        ("", "unknown_tool"),
        ("\udc00", "unknown_tool"),
    ],
)
async def test_a_wrong_tool_name_is_told_to_the_model_recorded_and_charged_nothing(chatting, journal, name, recorded):
    async with chatting() as agent, agent.run("s-1", "q") as run:
        (text,) = await call_tools(agent.trip(run), [ToolCall("c", name, "{}")])
    assert json.loads(text)["error"]["code"] == "unknown_tool"
    (decided,) = of_type(journal, run.run_id, "policy.decided")
    assert (decided.name, decided.allowed) == (recorded, False)
    assert journal.state(run.run_id).usage.get("tool_calls", 0) == 0


async def test_where_no_policy_is_asked_a_wrong_name_still_calls_nothing(chatting, journal):
    async with chatting() as agent:
        lax = replace(agent, harness=Harness(journal, classifiers=(failure_type,)))
        async with lax.run("s-1", "q") as run:
            (text,) = await call_tools(lax.trip(run), [ToolCall("c", "rm_rf", "{}")])
    assert json.loads(text)["error"]["code"] == "unknown_tool"
    assert [event.failure for event in of_type(journal, run.run_id, "attempt.failed")] == ["BUSINESS_REJECTION"]


async def test_a_model_that_runs_in_a_circle_is_on_record_and_not_stopped_for_it(chatting, journal):  # SPEC D13
    def circling(request):
        same = calls(("host_metrics", {"sections": ["load"]}))
        return same if task_of(request) == "investigate" else reply_to(request)

    async with chatting(answering(circling)) as agent:
        answer = await ask(agent, DISKS)
    assert {event.resource for event in of_type(journal, answer.run_id, "limit.would_reject")} == {
        "repeat:host_metrics"
    }


async def test_more_calls_than_are_made_at_once_get_an_answer_each(chatting, journal):
    answers = []

    def greedy(request):
        if task_of(request) != "investigate":
            return reply_to(request)
        answers[:] = [json.loads(message.text) for message in request.messages if message.role == "tool"]
        return Reply("enough") if answers else calls(*[("search_runbooks", {"query": "disk"})] * 10)

    async with chatting(
        answering(greedy), limits=limits(per_tool={**CHAT_LIMITS.per_tool, "search_runbooks": 20})
    ) as a:
        await ask(a, DISKS)
    assert len(answers) == 10
    assert [answer["error"]["code"] for answer in answers[8:]] == ["not_executed", "not_executed"]


async def test_chats_at_once_do_not_mix(chatting, journal):  # CASES 41
    questions = [DISKS, "How much memory is left?", "What is swap?"] * 3
    async with chatting() as agent:
        answers = await asyncio.gather(*(ask(agent, question) for question in questions))
    assert len({answer.run_id for answer in answers}) == len(questions)
    for question, answer in zip(questions, answers, strict=True):
        assert {event.run_id for event in journal.events(answer.run_id)} == {answer.run_id}
        assert ("disk-full" in answer.text) == (question == DISKS)
