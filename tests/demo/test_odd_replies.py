"""Replies of a model that are not as they should be: nothing of them breaks an answer, a stream or a record."""

import json

import pytest

from demo.investigation import call_tools
from demo.serving import serving
from demo.text import is_blank, whole
from harness import RunEnded
from harness.adapters.openai import ToolCall
from tests.demo.apps import app_served
from tests.demo.chats import DISKS, ask, of_type
from tests.demo.scripted_model import altered, answering
from tests.demo.test_ai_ops import check
from tests.demo.test_api import events_of

HALF = "a\udc00b"
DEEP = "[" * 100_000


def wanted(**changes):
    function = {"name": "host_metrics", "arguments": "{}", **changes.pop("function", {})}
    return [{"id": "call_0", "type": "function", "function": function, **changes}]


def test_half_a_surrogate_pair_in_a_reply_becomes_a_mark_in_the_answer(tmp_path):
    with serving("model", altered("chat", content=HALF)) as model, app_served(tmp_path, model) as app:
        data = app.chat("What is swap?").json()["data"]
        assert data["answer"] == "a�b"
        assert app.trace(data)["answer"] == "a�b"


def test_half_a_surrogate_pair_in_a_report_reaches_the_reader_of_the_stream(tmp_path):
    with serving("model", altered("answer", content=HALF)) as model, app_served(tmp_path, model) as app:
        with app.http.stream("POST", "/api/ai_ops", json={}) as response:
            first, content, last = events_of(response)
        assert (content["data"], last["type"]) == ("a�b", "done")
        assert app.trace(first)["run"]["status"] == "SUCCESS"


async def test_half_a_surrogate_pair_in_a_call_is_replaced_too(chatting):
    calls = wanted(id=HALF, function={"name": HALF, "arguments": HALF})
    async with chatting(altered("investigate", tool_calls=calls)) as agent:
        assert "`/` is" in (await ask(agent, DISKS)).text


def test_what_a_stream_cannot_send_is_the_runs_failure_and_no_disconnect(tmp_path, model_url, monkeypatch):
    monkeypatch.setattr("demo.ai_ops.paragraphs", lambda report: [HALF])
    with app_served(tmp_path, model_url) as app:
        with app.http.stream("POST", "/api/ai_ops", json={}) as response:
            first, last = events_of(response)
        run = app.trace(first)["run"]
    assert (last["type"], last["code"]) == ("error", "failed")
    assert (last["sessionId"], last["runId"]) == (first["sessionId"], first["runId"])
    assert (run["status"], run["outcomeReason"]) == ("FAILED", "UNHANDLED_EXCEPTION")


@pytest.mark.parametrize(
    "message", [{"content": ""}, {"content": None}, {"content": " \u200b\n"}, {"content": None, "tool_calls": wanted()}]
)
class TestWithoutText:
    async def test_a_composer_falls_back(self, chatting, message):
        async with chatting(altered("answer", **message)) as agent:
            answer = await ask(agent, DISKS)
        assert answer.degraded
        assert answer.text.startswith("Degraded answer.")

    async def test_a_check_reports_what_the_tools_returned(self, chatting, message):
        async with chatting(altered("answer", **message)) as agent:
            _, *_, last = await check(agent)
        assert last["data"] == {"degraded": True}

    async def test_a_simple_chat_fails(self, chatting, journal, message):
        async with chatting(altered("chat", **message)) as agent:
            with pytest.raises(RunEnded) as caught:
                await ask(agent, "What is swap?")
        assert (caught.value.outcome, caught.value.reason) == ("FAILED", "MODEL_FAILED")
        assert of_type(journal, caught.value.run_id, "attempt.failed")[-1].failure == "MALFORMED_REPLY"
        assert of_type(journal, caught.value.run_id, "answer.recorded") == []


@pytest.mark.parametrize(
    "message",
    [
        {"content": 7},
        {"content": ["a"]},
        {"content": {"a": 1}},
        {"tool_calls": wanted(id=None)},
        {"tool_calls": wanted(function={"arguments": {}})},
    ],
)
async def test_what_is_no_text_is_a_malformed_reply(chatting, journal, message):
    async with chatting(altered("investigate", **message)) as agent:
        answer = await ask(agent, DISKS)
    assert answer.degraded
    assert [event.failure for event in of_type(journal, answer.run_id, "attempt.failed")] == ["MALFORMED_REPLY"]


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{", b"{}", b'{"choices": [{}]}', b'{"a": "\xff"}', DEEP.encode(), b"9" * 5_000],
    ids=lambda body: body[:20],
)
async def test_a_body_that_is_no_completion_leads_to_a_degraded_answer(chatting, journal, body):
    async with chatting(answering(lambda request: body)) as agent:
        answer = await ask(agent, DISKS)
    assert answer.degraded
    failures = [event.failure for event in of_type(journal, answer.run_id, "attempt.failed")]
    assert failures == ["MALFORMED_REPLY"] * 3


@pytest.mark.parametrize(
    "arguments", [DEEP, '{"sections": ' + DEEP, '{"a":' * 900 + "1" + "}" * 900, '{"a": "\\udc00"}']
)
async def test_arguments_that_no_reader_takes_are_refused_and_recorded(chatting, journal, arguments):
    async with chatting() as agent, agent.run("s-1", "q") as run:
        (text,) = await call_tools(agent.trip(run), [ToolCall("c", "host_metrics", arguments)])
    assert json.loads(text)["error"]["code"] == "invalid_arguments"
    (failed,) = of_type(journal, run.run_id, "attempt.failed")
    assert failed.failure == "INVALID_ARGUMENTS"


async def test_arguments_nested_too_deeply_do_not_end_a_chat(chatting):
    deep = DEEP[: len(DEEP) // 2]
    async with chatting(altered("investigate", tool_calls=wanted(function={"arguments": deep}))) as agent:
        assert "`/` is" in (await ask(agent, DISKS)).text


@pytest.mark.parametrize(
    "blank", ["", " ", "\u200b", "\0", "\u202e", "\ufeff", "\u0301", "\u3164", "\u2800 \U000e0001"]
)
def test_what_nobody_can_see_is_blank(blank):
    assert is_blank(blank)
    assert not is_blank(f"{blank}?")


def test_whole_text_is_left_as_it_is_and_two_halves_find_each_other():
    assert whole("a\ue000😀\n") == "a\ue000😀\n"
    assert whole("\ud83d\ude00 \ud83d") == "😀 �"
