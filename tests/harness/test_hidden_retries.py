"""Clients that retry on their own are refused by the name of the setting that turns it off; on a real socket (H7)."""

import asyncio
import builtins
import functools
import gc
import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import create_model

from harness import Declared, HiddenRetriesEnabled, UnknownClient, refuse_hidden_retries
from tests.harness.fakes import shown
from tests.harness.wire import Answers, completion

# What the SDKs warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")

OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LANGSMITH_TRACING": "false",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
README = (Path(__file__).parents[2] / "harness/adapters/README.md").read_text()
ASKED = [{"role": "user", "content": "why?"}]
UNFIT = completion(
    content=None, tool_calls=[{"id": "t", "type": "function", "function": {"name": "Row", "arguments": '{"x":"no"}'}}]
)
"""A reply that does not fit what `instructor` was asked for, so that it asks again."""


@pytest.fixture(scope="module", autouse=True)
def _offline() -> Iterator[None]:
    """No client looks for credentials, prices or proxies anywhere else."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in OFFLINE.items():
            patch.setenv(name, value)
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            patch.delenv(name)
        yield
    # What an SDK left open is let go of here, and not in the middle of another test.
    asyncio.set_event_loop(None)
    gc.collect()


@pytest.fixture
def server() -> Iterator[Answers]:
    server = Answers()
    yield server
    server.close()


MODULES = {"genai": "google.genai"}
PARTS = {
    "ConfigurableField": "langchain_core.runnables",
    "StateGraph": "langgraph.graph",
    "Config": "botocore.config",
    "HttpOptions": "google.genai.types",
    "HttpRetryOptions": "google.genai.types",
    "RunnableLambda": "langchain_core.runnables",
}


class Sdks(dict[str, Any]):
    """The names that the expressions below are made of; an SDK is loaded when it is first named."""

    def __missing__(self, name: str) -> Any:
        if name in dir(builtins):
            raise KeyError(name)
        if name in PARTS:
            return getattr(importlib.import_module(PARTS[name]), name)
        module: Any = importlib.import_module(MODULES.get(name, name))
        if name == "litellm":
            module.num_retries = None
        return self.setdefault(name, module)

    def of(self, expression: str) -> Any:
        return eval(expression, {}, self)


@pytest.fixture
def sdks() -> Sdks:
    return Sdks()


@dataclass(frozen=True)
class Case:
    """A client as one would build it, and how it is asked once."""

    make: str
    """An expression in which `{}` stands for a further argument, or, where it begins with it, for the whole."""
    setting: str
    ask: str
    requests: int | None
    """What the client sends for one call before the setting is used; None where waiting for that takes too long."""
    default: str = ""
    """What stands for `{}` at first."""
    status: int = 500


CHAT = "client.chat.completions.create(model='m', messages=asked)"
INVOKE = "client.invoke('why?')"
CALL = "client(model='openai/m', messages=asked, api_base=url + '/v1', api_key='k')"
CONVERSE = "client.invoke_model(modelId='m', body=b'{}')"
GENERATE = "client.models.generate_content(model='m', contents='why?')"
LANGCHAIN = "langchain_openai.ChatOpenAI(model='m', base_url=url + '/v1', api_key='k', max_retries=0)"
ATTEMPTS = "http_options=HttpOptions(retry_options=HttpRetryOptions(attempts=1))"
TOTAL = 'config=Config(retries={"total_max_attempts": 1})'
HTTP_CLIENT = "httpx2.Client(transport=httpx2.HTTPTransport(retries=1))"
DEPLOYED = "[{'model_name': 'm', 'litellm_params': {'model': 'openai/m', 'api_base': url + '/v1', 'api_key': 'k'}}]"
OPENAI = "{'model_name': 'm', 'litellm_params': dict(model='openai/m', api_key='k', {})}"
RETRYING = "[{'model_name': 'm', 'litellm_params': {'model': 'openai/m', 'api_key': 'k', 'num_retries': 2}}]"

CASES = {
    "openai": Case("openai.OpenAI(base_url=url + '/v1', api_key='k', {})", "max_retries=0", CHAT, 3),
    "openai, Azure": Case(
        "openai.AzureOpenAI(azure_endpoint=url, api_version='1', api_key='k', {})", "max_retries=0", CHAT, 3
    ),
    "anthropic": Case(
        "anthropic.Anthropic(base_url=url, api_key='k', {})",
        "max_retries=0",
        "client.messages.create(model='m', messages=asked, max_tokens=9)",
        3,
    ),
    "google-genai": Case(
        "genai.Client(api_key='k', {})",
        ATTEMPTS,
        GENERATE,
        5,
        default="http_options=HttpOptions(retry_options=HttpRetryOptions(initial_delay=0.01, max_delay=0.01))",
    ),
    "boto3": Case(
        "boto3.client('bedrock-runtime', endpoint_url=url, {})",
        TOTAL,
        CONVERSE,
        3,
    ),
    "boto3, legacy": Case(
        "boto3.client('bedrock-runtime', endpoint_url=url, {})",
        TOTAL,
        CONVERSE,
        None,
        default="config=Config(retries={'mode': 'legacy'})",
    ),
    "boto3, adaptive": Case(
        "boto3.client('bedrock-runtime', endpoint_url=url, {})",
        TOTAL,
        CONVERSE,
        3,
        default="config=Config(retries={'mode': 'adaptive'})",
    ),
    "instructor": Case(
        "{}",
        "functools.partial(client.create, max_retries=0)",
        "(client.create if hasattr(client, 'create') else client)(model='m', messages=asked, response_model=Row)",
        4,
        default="instructor.from_openai(openai.OpenAI(base_url=url + '/v1', api_key='k', max_retries=0))",
        status=200,
    ),
    "litellm": Case(
        "{}", "functools.partial(litellm.completion, max_retries=0)", CALL, 3, default="litellm.completion"
    ),
    "litellm, whose own setting turns nothing off": Case(
        "{}",
        "functools.partial(litellm.completion, max_retries=0)",
        CALL,
        3,
        default="setattr(litellm, 'num_retries', 0) or litellm.completion",
    ),
    "litellm, asked to retry": Case(
        "{}",
        "functools.partial(litellm.completion, max_retries=0)",
        CALL,
        5,
        default="functools.partial(litellm.completion, max_retries=0, num_retries=2)",
    ),
    "litellm, the router": Case(
        f"litellm.Router(model_list={DEPLOYED}, {{}})",
        "num_retries=0",
        "client.completion(model='m', messages=asked)",
        None,
    ),
    "langchain-openai": Case(
        "langchain_openai.ChatOpenAI(model='m', base_url=url + '/v1', api_key='k', {})", "max_retries=0", INVOKE, 3
    ),
    "langchain-openai, None": Case(
        "langchain_openai.ChatOpenAI(model='m', base_url=url + '/v1', api_key='k', {})",
        "max_retries=0",
        INVOKE,
        3,
        default="max_retries=None",
    ),
    "langchain-anthropic": Case(
        "langchain_anthropic.ChatAnthropic(model='m', base_url=url, api_key='k', {})", "max_retries=0", INVOKE, 3
    ),
    "langchain, with_retry": Case(
        f"{LANGCHAIN}.{{}}",
        "with_retry(stop_after_attempt=1)",
        INVOKE,
        3,
        default="with_retry(wait_exponential_jitter=False)",
    ),
    "langchain, with_fallbacks": Case(
        f"{LANGCHAIN}.{{}}", "with_fallbacks([])", INVOKE, 2, default=f"with_fallbacks([{LANGCHAIN}])"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_client_is_refused_until_it_is_built_with_the_very_setting_that_the_refusal_names(
    case: Case, sdks: Sdks, server: Answers, monkeypatch: pytest.MonkeyPatch
):  # H7, CASES 13
    server.answers = [(case.status, UNFIT if case.status == 200 else {"error": {"message": "no", "type": "x"}})]
    server.headers = {"retry-after-ms": "1", "connection": "close"}
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
    sdks |= {"url": server.url, "asked": ASKED, "Row": create_model("Row", x=(int, ...))}
    sdks["client"] = sdks.of(case.make.replace("{}", case.default))
    with pytest.raises(HiddenRetriesEnabled) as refused:
        refuse_hidden_retries(sdks["client"])
    assert refused.value.setting == case.setting
    assert case.setting in str(refused.value)
    if case.requests is not None:
        ask_in_vain(case, sdks)
        assert len(server.paths) == case.requests
    server.paths.clear()
    sdks["client"] = refuse_hidden_retries(sdks.of(case.make.replace("{}", refused.value.setting)))
    ask_in_vain(case, sdks)
    assert len(server.paths) == 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_readme_of_the_adapters_names_the_same_setting(case: Case):
    assert case.setting in README


def ask_in_vain(case: Case, sdks: Sdks) -> None:
    """Ask once; to the client every answer of the server is a failure."""
    with pytest.raises(Exception, match=r"."):
        sdks.of(case.ask)


REFUSED = {
    "openai, asynchronous": ("openai.AsyncOpenAI(api_key='k')", "AsyncOpenAI", "max_retries=0"),
    "openai, asked for retries later": (
        "openai.OpenAI(api_key='k', max_retries=0).with_options(max_retries=1)",
        "OpenAI",
        "max_retries=0",
    ),
    "anthropic, asynchronous": ("anthropic.AsyncAnthropic(api_key='k')", "AsyncAnthropic", "max_retries=0"),
    "google-genai by default, whose asynchronous half retries after connection errors": (
        "genai.Client(api_key='k')",
        "Client",
        ATTEMPTS,
    ),
    "google-genai, asynchronous": ("genai.Client(api_key='k').aio", "AsyncClient", ATTEMPTS),
    "google-genai, a part": ("genai.Client(api_key='k').models", "Models", ATTEMPTS),
    "boto3, a resource": ("boto3.resource('s3')", "S3", TOTAL),
    "litellm, the module": ("litellm", "litellm", "functools.partial(litellm.completion, max_retries=0)"),
    "litellm, the module's own": (
        "setattr(litellm, 'num_retries', 2) or functools.partial(litellm.completion, max_retries=0)",
        "completion",
        "litellm.num_retries = None",
    ),
    "litellm, other models": (
        "functools.partial(litellm.completion, max_retries=0, fallbacks=['other'])",
        "completion",
        "fallbacks=None",
    ),
    "litellm, a router's policy": (
        "litellm.Router(model_list=[], num_retries=0, retry_policy={'TimeoutErrorRetries': 1})",
        "Router",
        "retry_policy=None",
    ),
    "litellm, a router's policy for a group": (
        "litellm.Router(model_list=[], num_retries=0, model_group_retry_policy={'m': {'TimeoutErrorRetries': 1}})",
        "Router",
        "model_group_retry_policy={}",
    ),
    "litellm, a router's fallbacks": (
        "litellm.Router(model_list=[], num_retries=0, fallbacks=[{'m': ['n']}])",
        "Router",
        "fallbacks=[]",
    ),
    "litellm, a deployment of a router": (
        f"litellm.Router(num_retries=0, model_list={RETRYING})",
        "Router",
        'litellm_params={"num_retries": 0}',
    ),
    "litellm, fallbacks of a deployment": (
        f"litellm.Router(num_retries=0, model_list=[{OPENAI.replace('{}', 'fallbacks=[1]')}])",
        "Router",
        'litellm_params={"fallbacks": None}',
    ),
    "litellm, deployments in an order": (
        f"litellm.Router(num_retries=0, model_list=[{OPENAI.replace('{}', 'order=at')} for at in (1, 2)])",
        "Router",
        'litellm_params={"order": None}',
    ),
    "litellm, what a router adds to every call": (
        "litellm.Router(model_list=[], num_retries=0, default_litellm_params={'num_retries': 3})",
        "Router",
        'default_litellm_params={"num_retries": 0}',
    ),
    "instructor, over a client that retries": (
        "functools.partial(instructor.from_openai(openai.OpenAI(api_key='k')).create, max_retries=0)",
        "OpenAI",
        "max_retries=0",
    ),
    "langchain, in a chain": (
        "langchain_openai.ChatOpenAI(api_key='k', max_retries=0).bind(stop=['x']).with_retry() | str",
        "RunnableRetry",
        "with_retry(stop_after_attempt=1)",
    ),
    "langchain, side by side": (
        "{'a': langchain_openai.ChatOpenAI(api_key='k')} | RunnableLambda(str)",
        "ChatOpenAI",
        "max_retries=0",
    ),
    "langchain, the client that it was given": (
        f"langchain_openai.ChatOpenAI(api_key='k', max_retries=0, http_client={HTTP_CLIENT})",
        "HTTPTransport",
        "HTTPTransport(retries=0)",
    ),
    "httpx": ("httpx.Client(transport=httpx.HTTPTransport(retries=2))", "HTTPTransport", "HTTPTransport(retries=0)"),
    "httpx, a mount": (
        "httpx.AsyncClient(mounts={'http://': httpx.AsyncHTTPTransport(retries=2)})",
        "AsyncHTTPTransport",
        "AsyncHTTPTransport(retries=0)",
    ),
    "httpx2": (
        "httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(retries=2))",
        "AsyncHTTPTransport",
        "AsyncHTTPTransport(retries=0)",
    ),
    "httpx2, inside an SDK": (
        f"openai.OpenAI(api_key='k', max_retries=0, http_client={HTTP_CLIENT})",
        "HTTPTransport",
        "HTTPTransport(retries=0)",
    ),
}


@pytest.mark.parametrize(("make", "client", "setting"), REFUSED.values(), ids=REFUSED)
def test_retries_are_found_wherever_a_client_keeps_them(make: str, client: str, setting: str, sdks: Sdks):  # H7
    with pytest.raises(HiddenRetriesEnabled) as refused:
        refuse_hidden_retries(sdks.of(make))
    assert (refused.value.client, refused.value.setting) == (client, setting)


ACCEPTED = [
    "openai.AsyncOpenAI(api_key='k', max_retries=0)",
    "openai.AsyncAzureOpenAI(azure_endpoint='http://x', api_version='1', api_key='k', max_retries=0)",
    "anthropic.AsyncAnthropic(api_key='k', max_retries=0)",
    f"genai.Client(api_key='k', {ATTEMPTS}).aio",
    "boto3.resource('s3', config=Config(retries={'total_max_attempts': 1}))",
    "boto3.client('s3', config=Config(retries={'max_attempts': 0}))",
    "functools.partial(litellm.acompletion, max_retries=0)",
    "langchain_anthropic.ChatAnthropic(model='m', api_key='k', max_retries=0).bind(stop=['x']) | str",
    "langchain_openai.ChatOpenAI(api_key='k', max_retries=0).with_structured_output({'title': 'R', 'type': 'object'})",
    "httpx.Client()",
    "httpx.AsyncClient(proxy='http://127.0.0.1:9')",
    "httpx2.Client()",
    "httpx2.AsyncClient(transport=httpx2.MockTransport(print))",
]


@pytest.mark.parametrize("make", ACCEPTED)
def test_a_client_without_retries_is_handed_back(make: str, sdks: Sdks):  # H7
    client = sdks.of(make)
    assert refuse_hidden_retries(client) is client


class Homemade:
    def __init__(self, tries: int) -> None:
        self.tries = tries


class Derived(Homemade): ...


HOMEMADE = Declared(Homemade, count_retries=lambda client: client.tries - 1, setting="tries=1")


@pytest.mark.parametrize(
    "client",
    [Homemade(1), object(), None, print, importlib, functools.partial(print), httpx.BaseTransport()],
    ids=shown,
)
def test_a_client_that_is_not_known_is_refused_with_the_way_out(client: object):  # H7
    with pytest.raises(UnknownClient, match=r"declared=\[Declared\(") as refused:
        refuse_hidden_retries(client)
    assert refused.value.client in str(refused.value)


class Twice(httpx.HTTPTransport):
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        super().handle_request(request).read()
        return super().handle_request(request)


class SendsTwice(httpx.Client):
    def send(self, request: httpx.Request, **given: Any) -> httpx.Response:
        super().send(request, **given)
        return super().send(request, **given)


class AsksTwice(httpx.Auth):
    def auth_flow(self, request: httpx.Request) -> Any:
        yield request
        yield request


class Mixin:
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        raise NotImplementedError


class Mixed(Mixin, httpx.HTTPTransport): ...


class Labelled(httpx.Client):
    """One that is made in a way of its own, and does nothing else."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label

    def described(self) -> str:
        return self.label


WRAPPED = "functools.partial(tenacity.retry(stop=tenacity.stop_after_attempt(3))(litellm.completion), max_retries=0)"
GRAPH = "StateGraph(dict).add_node('n', lambda state: state).add_edge('__start__', 'n').compile()"
MODEL = "langchain_openai.ChatOpenAI(model='m', api_key='k', max_retries=0)"
LATER = f"{MODEL}.configurable_alternatives(ConfigurableField(id='x'), other=lambda: 0)"
HEIRS = {
    "a transport": (lambda: httpx.Client(transport=Twice()), "Twice"),
    "a transport, by a mixin": (lambda: httpx.Client(mounts={"http://": Mixed()}), "Mixed"),
    "a client": (SendsTwice, "SendsTwice"),
    "what authenticates": (lambda: httpx.Client(auth=AsksTwice()), "AsksTwice"),
    "digest authentication": (lambda: httpx.Client(auth=httpx.DigestAuth("u", "p")), "DigestAuth"),
}


@pytest.mark.parametrize(("make", "name"), HEIRS.values(), ids=HEIRS)
def test_what_sends_in_another_way_than_the_known_type_that_it_derives_from_is_refused(make: Any, name: str):  # H7
    with make() as client, pytest.raises(UnknownClient) as refused:
        refuse_hidden_retries(client)
    assert refused.value.client == name


def test_what_derives_from_a_known_type_and_sends_as_that_does_is_judged_as_that_is():  # H7
    with Labelled("mine") as client:
        assert refuse_hidden_retries(client) is client


def test_an_sdk_whose_requests_somebody_else_makes_is_refused(sdks: Sdks):  # H7
    kind = type("Insistent", (sdks["openai"].OpenAI,), {"request": lambda *_: None})
    with pytest.raises(UnknownClient, match="Insistent"):
        refuse_hidden_retries(kind(api_key="k", max_retries=0))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (WRAPPED, "completion"),
        ("functools.partial(litellm.completion_with_retries, max_retries=0)", "completion_with_retries"),
        ("functools.partial(litellm.embedding, max_retries=0)", "embedding"),
        ("functools.partial(litellm.batch_completion_models, max_retries=0)", "batch_completion_models"),
        (GRAPH, "CompiledStateGraph"),
        (LATER, "RunnableConfigurableAlternatives"),
    ],
    ids=["wrapped", "with retries", "embedding", "several models", "a graph", "made later"],
)
def test_what_retries_though_it_goes_by_the_name_of_something_that_does_not_is_refused(
    make: str, name: str, sdks: Sdks
):  # H7
    with pytest.raises(UnknownClient) as refused:
        refuse_hidden_retries(sdks.of(make))
    assert refused.value.client == name


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("completion", {"messages": ASKED}),
        ("acompletion", {"messages": ASKED}),
        ("text_completion", {"prompt": "why?"}),
        ("atext_completion", {"prompt": "why?"}),
        ("responses", {"input": "why?"}),
        ("aresponses", {"input": "why?"}),
    ],
)
def test_each_function_of_litellm_that_is_let_through_sends_one_request(
    name: str, asked: Any, sdks: Sdks, server: Answers
):  # H7
    server.headers = {"retry-after-ms": "1", "connection": "close"}
    call = refuse_hidden_retries(functools.partial(getattr(sdks["litellm"], name), max_retries=0))

    async def ask() -> None:
        asking = call(model="openai/m", api_base=f"{server.url}/v1", api_key="k", **asked)
        if name.startswith("a"):
            await asking

    with pytest.raises(Exception, match=r"."):
        asyncio.run(ask())
    assert len(server.paths) == 1


def test_a_model_of_langchain_whose_client_is_not_known_is_refused():  # H7
    chats = importlib.import_module("langchain_core.language_models.fake_chat_models")
    with pytest.raises(UnknownClient, match="FakeListChatModel"):
        refuse_hidden_retries(chats.FakeListChatModel(responses=["x"]).bind(stop=["x"]))


@pytest.mark.parametrize("kind", [Homemade, Derived])
def test_a_declared_client_is_judged_by_its_declaration(kind: type[Homemade]):  # H7
    once = kind(1)
    assert refuse_hidden_retries(once, declared=[HOMEMADE]) is once
    with pytest.raises(HiddenRetriesEnabled) as refused:
        refuse_hidden_retries(kind(3), declared=[HOMEMADE])
    assert (refused.value.client, refused.value.setting) == (kind.__name__, "tries=1")


def test_what_a_known_client_holds_may_be_declared_too():  # H7
    class Retrying(httpx.BaseTransport):
        times = 3

    client = httpx.Client(transport=Retrying())
    with pytest.raises(UnknownClient, match="Retrying"):
        refuse_hidden_retries(client)
    with pytest.raises(HiddenRetriesEnabled, match="times=0"):
        refuse_hidden_retries(client, declared=[Declared(Retrying, lambda transport: transport.times, "times=0")])


def test_a_client_that_does_not_look_as_it_is_known_to_is_refused():  # H7
    client = httpx.Client()
    del client._transport
    with pytest.raises(UnknownClient, match="Client"):
        refuse_hidden_retries(client)
