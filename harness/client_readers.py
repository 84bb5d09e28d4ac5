"""How each known client tells of its retries, and of what it holds that may retry, too (SPEC H7).

What sends is known by the module and the name of its type, so no SDK is imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

from harness.errors import UnknownClient


@dataclass(frozen=True, slots=True)
class Inside:
    """Something within a client that may retry, too."""

    client: object


Reader = Callable[[Any], Iterator["str | Inside"]]
"""Yields each setting that has to be used because the client retries, and what within it is to be looked at."""


def name_of(client: object) -> str:
    if isinstance(client, partial):
        return name_of(client.func)
    if isinstance(client, ModuleType | FunctionType | MethodType):
        return client.__name__
    return type(client).__name__


def _package(module: str) -> str:
    """The package of a module, which for Google is the second part of its name."""
    return module.removeprefix("google.").split(".")[0]


def _sdk(client: Any) -> Iterator[str | Inside]:
    """The clients of `openai` and `anthropic`, and those that are built on them."""
    if client.max_retries != 0:
        yield "max_retries=0"
    yield Inside(client._client)


def _genai(client: Any) -> Iterator[str | Inside]:
    """Without options the asynchronous half asks again after a connection error; no attempts given are five."""
    api = client._api_client
    options = api._http_options.retry_options
    if options is None or options.attempts != 1:
        yield "http_options=HttpOptions(retry_options=HttpRetryOptions(attempts=1))"
    yield Inside(api._httpx_client)
    yield Inside(api._async_httpx_client)


def _boto(client: Any) -> Iterator[str | Inside]:
    if client.meta.config.retries.get("total_max_attempts") != 1:
        yield 'config=Config(retries={"total_max_attempts": 1})'


def _boto_resource(resource: Any) -> Iterator[str | Inside]:
    yield Inside(resource.meta.client)


def _instructor(client: Any) -> Iterator[str | Inside]:
    """It asks again about a reply that does not fit, and only a call can say that it shall not."""
    yield "functools.partial(client.create, max_retries=0)"


def _partial(client: partial[Any]) -> Iterator[str | Inside]:
    """A call with its retries turned off in advance, where the client itself cannot be told."""
    func, given = client.func, client.keywords
    owner = getattr(func, "__self__", None)
    if owner is not None and _package(type(owner).__module__) == "instructor":
        if given.get("max_retries") != 0:
            yield from _instructor(owner)
        yield Inside(owner.client)
    elif _is_litellm_call(func):
        if given.get("max_retries") != 0 or given.get("num_retries"):
            yield f"functools.partial(litellm.{func.__name__}, max_retries=0)"
        yield from (f"{name}=None" for name in _LITELLM_AGAIN if given.get(name))
        module = sys.modules["litellm"]
        yield from (f"litellm.{name} = None" for name in ("num_retries", "model_fallbacks") if getattr(module, name))
    else:
        raise UnknownClient(name_of(client))


_LITELLM_AGAIN = ("retry_policy", "fallbacks", "context_window_fallback_dict")
_LITELLM_CALLS = frozenset(
    {"completion", "acompletion", "text_completion", "atext_completion", "responses", "aresponses"}
)
"""The functions that send once where they are told to: `embedding` and others retry all the same."""


def _is_litellm_call(func: object) -> bool:
    """Whether this is such a function itself, and not one that is wrapped around it, which goes by its name."""
    if not isinstance(func, FunctionType) or _package(func.__module__) != "litellm":
        return False
    return func.__name__ in _LITELLM_CALLS and getattr(sys.modules["litellm"], func.__name__) is func


def _function(function: Any) -> Iterator[str | Inside]:
    """`litellm.num_retries = 0` turns nothing off: the SDK beneath then takes its own default."""
    if not _is_litellm_call(function):
        raise UnknownClient(name_of(function))
    yield f"functools.partial(litellm.{function.__name__}, max_retries=0)"


def _module(module: ModuleType) -> Iterator[str | Inside]:
    if module.__name__ != "litellm":
        raise UnknownClient(name_of(module))
    yield "functools.partial(litellm.completion, max_retries=0)"


def _litellm_router(router: Any) -> Iterator[str | Inside]:
    if router.num_retries != 0:
        yield "num_retries=0"
    if router.retry_policy:
        yield "retry_policy=None"
    if router.model_group_retry_policy:
        yield "model_group_retry_policy={}"
    if getattr(router, "enable_weighted_failover", False):
        yield "enable_weighted_failover=False"
    settings = router.settings() if hasattr(type(router), "settings") else router
    for name in ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks"):
        if getattr(settings, name):
            yield f"{name}=[]"
    yield from _again("default_litellm_params", [router.default_litellm_params])
    deployments = router.registry().all() if hasattr(type(router), "registry") else router.model_list
    yield from _again("litellm_params", [deployment["litellm_params"] for deployment in deployments])
    orders = {deployment["litellm_params"].get("order") for deployment in deployments}
    if len(orders) > 1:
        yield 'litellm_params={"order": None}'


def _again(given: str, deployments: Iterable[Any]) -> Iterator[str]:
    """What asks again of the parameters of deployments, which were `given` so."""
    for name, none in (("num_retries", 0), *((name, None) for name in _LITELLM_AGAIN)):
        if any(params.get(name) for params in deployments):
            yield f'{given}={{"{name}": {none}}}'


def _chat_model(model: Any) -> Iterator[str | Inside]:
    """Chat models of LangChain for `openai` and `anthropic`; None as `max_retries` is the SDK's own default."""
    if model.max_retries != 0:
        yield "max_retries=0"
    yield from _held(vars(model))


def _runnable(runnable: Any) -> Iterator[str | Inside]:
    """Anything of LangChain that may hold a model: bindings, sequences, lambdas, choices."""
    yield from _held(vars(runnable))
    yield from _held(getattr(runnable, "deps", ()))


def _runnable_retry(runnable: Any) -> Iterator[str | Inside]:
    if runnable.max_attempt_number != 1:
        yield "with_retry(stop_after_attempt=1)"
    yield from _runnable(runnable)


def _runnable_fallbacks(runnable: Any) -> Iterator[str | Inside]:
    if runnable.fallbacks:
        yield "with_fallbacks([])"
    yield from _runnable(runnable)


def _runnable_alternatives(runnable: Any) -> Iterator[str | Inside]:
    """One that is only made when it is asked for cannot be looked at."""
    if any(_HOLDERS.isdisjoint(known_names(each)) for each in runnable.alternatives.values()):
        raise UnknownClient(name_of(runnable))
    yield from _runnable(runnable)


def _held(value: object) -> Iterator[Inside]:
    """Whatever in `value`, also in its lists and mappings, is a client or may hold one."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _held(part)
    elif not _HOLDERS.isdisjoint(known_names(value)):
        yield Inside(value)


def known_names(value: object) -> list[tuple[str, str]]:
    """Package and name of the value's type and of its bases, the nearest first."""
    return [(_package(kind.__module__), kind.__name__) for kind in type(value).__mro__]


def _http_client(client: Any) -> Iterator[str | Inside]:
    yield Inside(client._transport)
    if client._auth is not None:
        yield Inside(client._auth)
    yield from (Inside(transport) for transport in client._mounts.values() if transport is not None)


def _http_transport(transport: Any) -> Iterator[str | Inside]:
    if transport._pool._retries != 0:
        yield f"{type(transport).__name__}(retries=0)"


def _wrapper(transport: Any) -> Iterator[str | Inside]:
    yield Inside(transport.inner)


def _never(client: object) -> Iterator[str | Inside]:
    """Sends each request once, and has no setting."""
    return iter(())


def _unknown(client: object) -> Iterator[str | Inside]:
    """A model of LangChain that is none of the known ones: it holds a client that is not known either."""
    raise UnknownClient(name_of(client))


_RUNNABLE = ("langchain_core", "Runnable")

READERS: dict[tuple[str, str], Reader] = {
    ("openai", "BaseClient"): _sdk,
    ("anthropic", "BaseClient"): _sdk,
    ("genai", "Client"): _genai,
    ("genai", "AsyncClient"): _genai,
    ("genai", "BaseModule"): _genai,
    ("botocore", "BaseClient"): _boto,
    ("boto3", "ServiceResource"): _boto_resource,
    ("instructor", "Instructor"): _instructor,
    ("instructor", "AsyncInstructor"): _instructor,
    ("functools", "partial"): _partial,
    ("builtins", "function"): _function,
    ("builtins", "module"): _module,
    ("harness", "WireTransport"): _wrapper,
    ("litellm", "Router"): _litellm_router,
    ("langchain_openai", "BaseChatOpenAI"): _chat_model,
    ("langchain_anthropic", "ChatAnthropic"): _chat_model,
    ("langchain_core", "BaseLanguageModel"): _unknown,
    ("langchain_core", "RunnableRetry"): _runnable_retry,
    ("langchain_core", "RunnableWithFallbacks"): _runnable_fallbacks,
    ("langchain_core", "RunnableConfigurableAlternatives"): _runnable_alternatives,
    _RUNNABLE: _runnable,
}
for _http in ("httpx", "httpx2"):
    READERS[_http, "BaseClient"] = _http_client
    READERS[_http, "HTTPTransport"] = READERS[_http, "AsyncHTTPTransport"] = _http_transport
    for _once in ("MockTransport", "ASGITransport", "WSGITransport", "BasicAuth", "FunctionAuth", "NetRCAuth"):
        READERS[_http, _once] = _never
PACKAGES = frozenset({"abc", "pydantic", "typing"}.union(package for package, _ in READERS))
"""Whose types are trusted to be what those are that they derive from."""
_HOLDERS = {_RUNNABLE} | {known for known in READERS if known[1] == "BaseClient"}
