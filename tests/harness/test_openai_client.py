"""The `openai` client under a harness, on a real socket: one request for each recorded attempt (SPEC H7)."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from harness import FailureType, Harness, HiddenRetriesEnabled, InvalidInput, OperationKind, TokenUsage, TypedFailure
from harness.adapters.openai import Chat, ToolCall, check_client, classify, make_async_client
from tests.harness.fakes import HandJournal, each, harness_over, limits, only
from tests.harness.wire import Answers, completion

MESSAGES = [{"role": "user", "content": "why?"}]


@pytest.fixture
def provider() -> Iterator[Answers]:
    provider = Answers((200, completion()))
    provider.headers = {"retry-after": "0"}
    yield provider
    provider.close()


@pytest.fixture
def harness(journal: HandJournal) -> Harness:
    return harness_over(journal, classifiers=(classify,), sleep=lambda _: asyncio.sleep(0))


async def asked(
    harness: Harness, provider: Answers, kind: OperationKind = OperationKind.DIAGNOSIS_AGENT, **args: Any
) -> Any:
    """What the model says when a run asks it once."""
    async with (
        make_async_client(base_url=f"{provider.url}/v1", api_key="none", timeout_s=10) as client,
        harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
    ):
        chat = Chat(client, "fake-1")
        return await harness.model(run, "ask", chat, args={"messages": MESSAGES} | args, kind=kind, model="fake-1")


async def test_the_client_that_is_built_here_has_no_retries_of_its_own():  # H7
    async with make_async_client(base_url="http://127.0.0.1:9/v1", api_key="none", timeout_s=1) as client:
        assert client.max_retries == 0
        assert check_client(client) is client


async def test_a_client_that_retries_on_its_own_is_refused_by_the_name_of_the_setting():  # H7, CASES 13
    async with openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="none") as client:
        assert client.max_retries > 0
        with pytest.raises(HiddenRetriesEnabled) as refused:
            Chat(client, "fake-1")
        with pytest.raises(HiddenRetriesEnabled):
            Chat(client.with_options(max_retries=3), "fake-1")
    assert (refused.value.client, refused.value.setting) == ("AsyncOpenAI", "max_retries=0")
    assert "max_retries=0" in str(refused.value)


@pytest.mark.parametrize("bad", [0, -1, float("inf"), None, True])
def test_the_time_out_of_one_request_is_checked(bad: Any):
    with pytest.raises(InvalidInput, match="timeout_s"):
        make_async_client(base_url="http://127.0.0.1:9/v1", api_key="none", timeout_s=bad)


async def test_a_reply_is_read_with_its_usage(harness: Harness, journal: HandJournal, provider: Answers):  # H4a
    reply = await asked(harness, provider)
    assert (reply.content, reply.model, reply.usage, reply.tool_calls) == ("because", "fake-1", TokenUsage(11, 7), ())
    assert provider.requests == [{"model": "fake-1", "messages": MESSAGES}]
    assert only(journal.events("r"), "attempt.started").model == "fake-1"
    assert only(journal.events("r"), "usage.settled").usage == {
        "input_tokens": 11,
        "output_tokens": 7,
        "total_tokens": 18,
    }


async def test_the_tool_calls_of_a_reply_keep_their_ids(harness: Harness, provider: Answers):  # H8
    call = {"id": "call_0", "type": "function", "function": {"name": "grep", "arguments": '{"pattern":"OOM"}'}}
    provider.answers = [(200, completion(content=None, tool_calls=[call]))]
    tools = [{"type": "function", "function": {"name": "grep", "parameters": {"type": "object"}}}]
    reply = await asked(harness, provider, tools=tools, temperature=0)
    assert reply.tool_calls == (ToolCall("call_0", "grep", '{"pattern":"OOM"}'),)
    assert (reply.content, provider.requests[0]["tools"], provider.requests[0]["temperature"]) == (None, tools, 0)


@pytest.mark.parametrize(
    ("status", "error", "failure"),
    [
        (500, openai.InternalServerError, "PROVIDER_ERROR"),
        (503, openai.InternalServerError, "PROVIDER_ERROR"),
        (429, openai.RateLimitError, "RATE_LIMITED"),
        (404, openai.NotFoundError, "NOT_FOUND"),
        (400, openai.BadRequestError, "REJECTED_REQUEST"),
        (401, openai.AuthenticationError, "REJECTED_REQUEST"),
        (0, openai.APIConnectionError, "TRANSPORT"),
    ],
)
async def test_one_recorded_attempt_is_one_request_on_the_wire(
    harness: Harness, journal: HandJournal, provider: Answers, status: int, error: type[Exception], failure: str
):  # H7, CASES 13, 14
    provider.answers = [(status, {"error": {"message": "no", "type": "x"}})]
    with pytest.raises(error):
        await asked(harness, provider)
    assert len(provider.requests) == len(each(journal.events("r"), "attempt.started")) == 1
    assert only(journal.events("r"), "attempt.failed").failure == failure


@pytest.mark.parametrize(
    ("statuses", "requests"), [([500, 200], 2), ([500, 500, 200], 2), ([429, 200], 2), ([404, 200], 1)]
)
async def test_a_permitted_retry_is_a_recorded_attempt_and_one_more_request(
    harness: Harness, journal: HandJournal, provider: Answers, statuses: list[int], requests: int
):  # H6, H7, CASES 13
    provider.answers = [(status, completion() if status == 200 else {"error": {}}) for status in statuses]
    try:
        await asked(harness, provider, OperationKind.INTENT_ROUTER)
    except openai.APIStatusError:
        assert provider.answers[requests - 1][0] != 200
    assert len(provider.requests) == requests
    assert [event.attempt for event in each(journal.events("r"), "attempt.started")] == list(range(1, requests + 1))


async def test_nobody_at_home_is_a_transport_failure(harness: Harness, journal: HandJournal, provider: Answers):
    provider.close()
    with pytest.raises(openai.APIConnectionError):
        await asked(harness, provider)
    assert only(journal.events("r"), "attempt.failed").failure == "TRANSPORT"


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>bad gateway</html>",
        b"",
        b'{"choices"',
        b'{"a": "\xff"}',
        b"[" * 100_000,
        b"9" * 5_000,
        completion() | {"choices": []},
        {},
        None,
        [],
        "hello",
        completion() | {"choices": [None]},
        completion(content=["a"]),
        completion(tool_calls=[{"id": 7, "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
        completion(tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}]),
    ],
    ids=lambda answer: repr(answer)[:30],
)
async def test_a_malformed_reply_is_told_as_such(
    harness: Harness, journal: HandJournal, provider: Answers, answer: Any
):  # H6
    provider.answers = [(200, answer)]
    with pytest.raises(TypedFailure):
        await asked(harness, provider)
    assert only(journal.events("r"), "attempt.failed").failure == "MALFORMED_REPLY"


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        (None, None),
        ({"prompt_tokens": None, "completion_tokens": 3}, TokenUsage(None, 3)),
        ({"prompt_tokens": -1, "completion_tokens": 3}, TokenUsage(None, 3)),
        ({"prompt_tokens": 10**18, "completion_tokens": "many"}, TokenUsage(None, None)),
    ],
    ids=repr,
)
async def test_usage_that_is_none_is_unknown_and_loses_no_reply(
    harness: Harness, journal: HandJournal, provider: Answers, usage: Any, known: TokenUsage | None
):  # H4a, CASES 9
    provider.answers = [(200, completion() | {"usage": usage})]
    reply = await asked(harness, provider)
    assert (reply.content, reply.usage) == ("because", known)
    assert only(journal.events("r"), "usage.settled").complete is False


async def test_a_provider_that_never_answers_is_a_time_out_of_the_request(harness: Harness, journal: HandJournal):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        async with make_async_client(base_url=url, api_key="none", timeout_s=0.1) as client:
            with pytest.raises(openai.APITimeoutError):
                async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                    await harness.model(run, "ask", Chat(client, "fake-1"), args={"messages": MESSAGES})
    assert only(journal.events("r"), "attempt.failed").failure == "TIMEOUT"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("header", "delays_s"), [("30", [30.0]), ("61", []), ("soon", [0.05]), ("-1", [0.05])])
async def test_the_delay_that_a_provider_names_is_kept_or_ends_the_trying(
    journal: HandJournal, provider: Answers, status: int, header: str, delays_s: list[float]
):  # CASES 15
    slept: list[float] = []

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)

    harness = harness_over(journal, classifiers=(classify,), sleep=sleep)
    provider.headers = {"retry-after": header}
    provider.answers = [(status, {"error": {}}), (200, completion())]
    try:
        await asked(harness, provider, OperationKind.INTENT_ROUTER)
    except openai.APIStatusError:
        assert only(journal.events("r"), "retry.refused").reason == "DEADLINE_EXCEEDED"
    assert slept == delays_s
    assert len(provider.requests) == 1 + len(delays_s)


def test_what_is_not_of_the_client_is_left_to_others():
    unknown: Callable[[BaseException], FailureType | None] = classify
    assert [unknown(ValueError("x")), unknown(KeyError("x"))] == [None, None]
