"""The failures of real clients on real sockets, told apart by type; and how long a reply asks to wait (SPEC H6)."""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import anthropic as anthropic_sdk
import httpx as httpx_library
import httpx2 as httpx2_library
import openai as openai_sdk
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core import exceptions as langchain_errors
from langchain_core.output_parsers import JsonOutputParser
from langchain_openai import ChatOpenAI

from harness import FailureType, ManualClock, TypedFailure
from harness.adapters import anthropic, httpx, langchain, openai
from harness.adapters.replies import retry_after_s
from harness.retry import Classifier, tell
from tests.harness.wire import Answers

pytestmark = pytest.mark.filterwarnings("ignore:.*max_tokens.*")

ASKED: Any = [{"role": "user", "content": "why?"}]
NO = {"error": {"message": "no", "type": "x"}, "type": "error"}
TIMEOUT_S = 10.0


def ask_anthropic(url: str, timeout_s: float) -> object:
    with anthropic_sdk.Anthropic(base_url=url, api_key="k", max_retries=0, timeout=timeout_s) as client:
        return client.messages.create(model="m", messages=ASKED, max_tokens=9)


def ask_openai(url: str, timeout_s: float) -> object:
    with openai_sdk.OpenAI(base_url=url, api_key="k", max_retries=0, timeout=timeout_s) as client:
        return client.chat.completions.create(model="m", messages=ASKED)


def get_httpx(url: str, timeout_s: float) -> object:
    with httpx_library.Client(timeout=timeout_s) as client:
        return client.get(url).raise_for_status().json()


def get_httpx2(url: str, timeout_s: float) -> object:
    with httpx2_library.Client(timeout=timeout_s) as client:
        return client.get(url).raise_for_status().json()


def invoke_langchain_openai(url: str, timeout_s: float) -> object:
    with httpx2_library.Client() as client:
        model = ChatOpenAI(model="m", base_url=url, api_key="k", max_retries=0, timeout=timeout_s, http_client=client)
        return model.invoke("why?")


def invoke_langchain_anthropic(url: str, timeout_s: float) -> object:
    model = ChatAnthropic(model="m", base_url=url, api_key="k", max_retries=0, timeout=timeout_s)
    try:
        return model.invoke("why?")
    finally:
        model._client.close()


CLIENTS: dict[str, tuple[Callable[[str, float], object], Classifier]] = {
    "openai": (ask_openai, openai.classify),
    "anthropic": (ask_anthropic, anthropic.classify),
    "httpx": (get_httpx, httpx.classify),
    "httpx2": (get_httpx2, httpx.classify),
    "langchain-openai": (invoke_langchain_openai, langchain.classify),
    "langchain-anthropic": (invoke_langchain_anthropic, langchain.classify),
}
every_client = pytest.mark.parametrize(("ask", "classify"), CLIENTS.values(), ids=CLIENTS)


@pytest.fixture
def server() -> Iterator[Answers]:
    server = Answers()
    server.headers = {"connection": "close"}
    yield server
    server.close()


def failed(ask: Callable[[str, float], object], url: str, timeout_s: float = TIMEOUT_S) -> BaseException:
    """What a call that must fail raises, whatever its type."""
    with pytest.raises(Exception, match=r"(?s).*") as raised:
        ask(url, timeout_s)
    return raised.value


STATUSES = {
    400: FailureType.REJECTED_REQUEST,
    401: FailureType.REJECTED_REQUEST,
    403: FailureType.REJECTED_REQUEST,
    404: FailureType.NOT_FOUND,
    408: FailureType.TIMEOUT,
    409: FailureType.REJECTED_REQUEST,
    422: FailureType.REJECTED_REQUEST,
    429: FailureType.RATE_LIMITED,
    500: FailureType.PROVIDER_ERROR,
    503: FailureType.PROVIDER_ERROR,
    529: FailureType.PROVIDER_ERROR,
}


@every_client
@pytest.mark.parametrize(("status", "failure"), STATUSES.items())
def test_every_status_is_told_as_what_it_is(
    ask: Callable[[str, float], object], classify: Classifier, server: Answers, status: int, failure: FailureType
):  # H6, CASES 14
    server.answers = [(status, NO)]
    error = failed(ask, server.url)
    assert tell(error, [classify]).failure is failure
    assert len(server.paths) == 1


@every_client
def test_a_connection_that_breaks_or_never_was_is_no_answer_of_404(
    ask: Callable[[str, float], object], classify: Classifier, server: Answers
):  # CASES 14
    server.answers = [(0, None)]
    hung_up = failed(ask, server.url)
    server.close()
    refused = failed(ask, server.url)
    assert [tell(error, [classify]).failure for error in (hung_up, refused)] == [FailureType.TRANSPORT] * 2


@every_client
def test_a_server_that_never_answers_is_a_time_out(ask: Callable[[str, float], object], classify: Classifier):  # H6
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = failed(ask, f"http://127.0.0.1:{silent.getsockname()[1]}", 0.1)
    assert tell(error, [classify]).failure is FailureType.TIMEOUT


@every_client
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "Tue, 01 Dec 2026 00:00:45 GMT", "date": "Tue, 01 Dec 2026 00:00:00 GMT"}, 45.0),
        ({"retry-after-ms": "1500", "retry-after": "30"}, 1.5),
        ({"retry-after": "soon"}, None),
    ],
    ids=repr,
)
def test_the_delay_that_a_reply_asks_for_is_read(
    ask: Callable[[str, float], object],
    classify: Classifier,
    server: Answers,
    status: int,
    headers: dict[str, str],
    delay_s: float | None,
):  # CASES 15
    server.answers = [(status, NO)]
    server.headers |= headers
    told = tell(failed(ask, server.url), [classify])
    assert (told.failure, told.retry_after_s) == (STATUSES[status], delay_s)


NOW_US = 1_796_083_200_000_000  # Tue, 01 Dec 2026 00:00:00 GMT


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "9" * 400}, float("inf")),
        ({"retry-after": "Tue, 01 Dec 2026 00:01:00 GMT"}, 60.0),
        ({"retry-after": "Tuesday, 01-Dec-26 00:01:00 GMT"}, 60.0),
        ({"retry-after": "Tue Dec  1 00:01:00 2026"}, 60.0),
        ({"retry-after": "Tue, 01 Dec 2026 01:01:00 +0100"}, 60.0),
        ({"retry-after": "Mon, 30 Nov 2026 23:59:00 GMT"}, 0.0),
        ({"retry-after": "Tue, 99 Dec 2026 00:01:00 GMT"}, None),
        ({"retry-after": "Tue, 01 Dec 2026 00:01:00 GMT", "date": "Tue, 01 Dec 2026 00:00:50 GMT"}, 10.0),
        ({"retry-after": "Tue, 01 Dec 2026 00:01:00 GMT", "date": "today"}, 60.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "12.5", "retry-after": "3"}, 0.0125),
        ({"retry-after-ms": "some", "retry-after": "3"}, 3.0),
    ],
    ids=repr,
)
def test_a_delay_is_read_as_the_standard_has_it_or_not_at_all(
    headers: Mapping[str, str], delay_s: float | None
):  # CASES 15
    assert retry_after_s(headers, ManualClock(wall_us=NOW_US)) == delay_s


def test_a_date_without_a_date_of_the_reply_is_measured_by_the_clock_that_is_given():  # CASES 15
    request = httpx_library.Request("GET", "http://x")
    reply = httpx_library.Response(503, headers={"retry-after": "Tue, 01 Dec 2026 00:01:00 GMT"}, request=request)
    with pytest.raises(httpx_library.HTTPStatusError) as raised:
        reply.raise_for_status()
    told = tell(raised.value, [partial(httpx.classify, wall_clock=ManualClock(wall_us=NOW_US))])
    assert told.retry_after_s == 60.0


@pytest.mark.parametrize("library", [httpx_library, httpx2_library])
@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("PoolTimeout", FailureType.TIMEOUT),
        ("ConnectTimeout", FailureType.TIMEOUT),
        ("ConnectError", FailureType.TRANSPORT),
        ("ReadError", FailureType.TRANSPORT),
        ("RemoteProtocolError", FailureType.TRANSPORT),
        ("ProxyError", FailureType.TRANSPORT),
        ("UnsupportedProtocol", FailureType.REJECTED_REQUEST),
        ("LocalProtocolError", FailureType.REJECTED_REQUEST),
        ("InvalidURL", FailureType.REJECTED_REQUEST),
        ("DecodingError", FailureType.MALFORMED_REPLY),
        ("TooManyRedirects", FailureType.UNKNOWN),
    ],
)
def test_the_exceptions_of_both_http_libraries_are_known(library: Any, name: str, failure: FailureType):  # CASES 14
    assert tell(getattr(library, name)("not found: 404"), [httpx.classify]).failure is failure


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (langchain_errors.ModelRefusalError(), FailureType.BUSINESS_REJECTION),
        (langchain_errors.ContextOverflowError("too long"), FailureType.REJECTED_REQUEST),
        (langchain_errors.ModelConnectionError("x"), FailureType.TRANSPORT),
        (langchain_errors.ModelNotFoundError("x"), FailureType.NOT_FOUND),
        (langchain_errors.ModelTimeoutError("x"), FailureType.TIMEOUT),
        (langchain_errors.TracerException("x"), FailureType.UNKNOWN),
    ],
    ids=repr,
)
def test_the_exceptions_of_langchain_are_known(error: BaseException, failure: FailureType):  # H6
    assert tell(error, [langchain.classify]).failure is failure


def test_a_reply_that_a_parser_cannot_read_is_malformed():  # H6
    with pytest.raises(langchain_errors.OutputParserException) as raised:
        JsonOutputParser().parse("no json")
    assert tell(raised.value, [langchain.classify]).failure is FailureType.MALFORMED_REPLY


def test_what_langchain_wraps_without_a_type_of_its_own_is_told_by_what_is_within():  # CASES 14
    within = httpx2_library.ConnectError("404")
    told = [
        _raised_from(langchain_errors.LangChainException("x"), cause)
        for cause in (within, TypedFailure(FailureType.NO_EVIDENCE, "none"), ValueError("x"))
    ]
    assert [tell(error, [langchain.classify]).failure for error in told] == [
        FailureType.TRANSPORT,
        FailureType.NO_EVIDENCE,
        FailureType.UNKNOWN,
    ]


def _raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("classify", [openai.classify, anthropic.classify, httpx.classify, langchain.classify])
def test_a_classifier_leaves_to_others_what_is_not_of_its_client(classify: Classifier):
    assert [classify(ValueError("x")), classify(KeyError("404"))] == [None, None]


@pytest.mark.parametrize("classify", [openai.classify, anthropic.classify])
def test_a_reply_that_is_no_json_is_malformed(classify: Classifier):  # H6
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads("<html>")
    assert classify(raised.value) is FailureType.MALFORMED_REPLY


@pytest.mark.parametrize(
    ("ask", "classify"),
    [
        (
            lambda url: list(
                openai_sdk.OpenAI(base_url=url, api_key="k", max_retries=0).chat.completions.create(
                    model="m", messages=ASKED, stream=True
                )
            ),
            openai.classify,
        ),
        (
            lambda url: list(
                anthropic_sdk.Anthropic(base_url=url, api_key="k", max_retries=0).messages.create(
                    model="m", messages=ASKED, max_tokens=9, stream=True
                )
            ),
            anthropic.classify,
        ),
    ],
    ids=["openai", "anthropic"],
)
def test_an_error_in_the_middle_of_a_stream_is_the_providers(
    ask: Callable[[str], object], classify: Classifier, server: Answers
):  # H6
    server.answers = [(200, b"event: error\ndata: " + json.dumps(NO).encode() + b"\n\n")]
    server.headers |= {"content-type": "text/event-stream"}
    with pytest.raises(Exception, match="no") as raised:
        ask(server.url)
    assert tell(raised.value, [classify]).failure is FailureType.PROVIDER_ERROR
