"""Clients that retry on their own are refused: what they send a second time, no record would show (SPEC H7).

A client is known by the module and the name of its type and of that type's bases, so no SDK is imported here. What
clients hold inside (an HTTP client, its transports, the model within a chain) is looked at too. What is not known is
refused as well, unless the application declares how its retries are read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

from harness.errors import HiddenRetriesEnabled, UnknownClient

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Declared:
    """How clients of a type that is not known here tell of their own retries."""

    type: type[Any]
    count_retries: Callable[[Any], int]
    """How many requests more than one a client may send for one call; 0 is none."""
    setting: str
    """What turns them off, as one would write it."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """Something within a client that may retry, too."""

    client: object


Reader = Callable[[Any], Iterator["str | _Inside"]]
"""Yields each setting that has to be used because the client retries, and what within it is to be looked at."""


def refuse_hidden_retries(client: C, *, declared: Iterable[Declared] = ()) -> C:
    """`client` itself, if nothing in it sends a request more than once.

    `HiddenRetriesEnabled` names the setting that turns its retries off; `UnknownClient` is raised where the type is
    neither known here nor `declared`, or does not look as it is known to. Retries that are asked for at a single call
    are not seen here, but at the wire (`harness.adapters.wire`).
    """
    _Search(tuple(declared)).look_at(client)
    return client


class _Search:
    """One look through a client and all that it holds."""

    def __init__(self, declared: tuple[Declared, ...]) -> None:
        self._declared = declared
        self._seen: list[object] = []

    def look_at(self, client: object) -> None:
        if any(client is seen for seen in self._seen):
            return
        self._seen.append(client)
        name = _name_of(client)
        reader = self._reader_of(client)
        if reader is None:
            raise UnknownClient(name)
        try:
            found = list(reader(client))
        except (AttributeError, KeyError, TypeError) as error:
            raise UnknownClient(name) from error
        for one in found:
            if isinstance(one, str):
                raise HiddenRetriesEnabled(name, one)
            self.look_at(one.client)

    def _reader_of(self, client: object) -> Reader | None:
        for kind, known_as in zip(type(client).__mro__, _known_as(client), strict=True):
            for declared in self._declared:
                if declared.type is kind:
                    return partial(_declared, declared)
            if known_as in _READERS:
                return _READERS[known_as]
        return None


def _name_of(client: object) -> str:
    if isinstance(client, partial):
        return _name_of(client.func)
    if isinstance(client, ModuleType | FunctionType | MethodType):
        return client.__name__
    return type(client).__name__


def _package(module: str) -> str:
    """The package of a module, which for Google is the second part of its name."""
    return module.removeprefix("google.").split(".")[0]


def _declared(declared: Declared, client: Any) -> Iterator[str | _Inside]:
    if declared.count_retries(client) != 0:
        yield declared.setting


def _sdk(client: Any) -> Iterator[str | _Inside]:
    """The clients of `openai` and `anthropic`, and those that are built on them."""
    if client.max_retries != 0:
        yield "max_retries=0"
    yield _Inside(client._client)


def _genai(client: Any) -> Iterator[str | _Inside]:
    """Without options the asynchronous half asks again after a connection error; no attempts given are five."""
    api = client._api_client
    options = api._http_options.retry_options
    if options is None or options.attempts != 1:
        yield "http_options=HttpOptions(retry_options=HttpRetryOptions(attempts=1))"
    yield _Inside(api._httpx_client)
    yield _Inside(api._async_httpx_client)


def _boto(client: Any) -> Iterator[str | _Inside]:
    if client.meta.config.retries.get("total_max_attempts") != 1:
        yield 'config=Config(retries={"total_max_attempts": 1})'


def _boto_resource(resource: Any) -> Iterator[str | _Inside]:
    yield _Inside(resource.meta.client)


def _instructor(client: Any) -> Iterator[str | _Inside]:
    """It asks again about a reply that does not fit, and only a call can say that it shall not."""
    yield "functools.partial(client.create, max_retries=0)"


def _partial(client: partial[Any]) -> Iterator[str | _Inside]:
    """A call with its retries turned off in advance, where the client itself cannot be told."""
    func, given = client.func, client.keywords
    owner = getattr(func, "__self__", None)
    if owner is not None and _package(type(owner).__module__) == "instructor":
        if given.get("max_retries") != 0:
            yield from _instructor(owner)
        yield _Inside(owner.client)
    elif isinstance(func, FunctionType) and _package(func.__module__) == "litellm":
        if given.get("max_retries") != 0 or given.get("num_retries"):
            yield f"functools.partial(litellm.{func.__name__}, max_retries=0)"
        yield from (f"{name}=None" for name in _LITELLM_AGAIN if given.get(name))
        module = sys.modules["litellm"]
        yield from (f"litellm.{name} = None" for name in ("num_retries", "model_fallbacks") if getattr(module, name))
    else:
        raise UnknownClient(_name_of(client))


_LITELLM_AGAIN = ("retry_policy", "fallbacks", "context_window_fallback_dict")


def _function(function: Any) -> Iterator[str | _Inside]:
    """`litellm.num_retries = 0` turns nothing off: the SDK beneath then takes its own default."""
    if _package(function.__module__) != "litellm":
        raise UnknownClient(_name_of(function))
    yield f"functools.partial(litellm.{function.__name__}, max_retries=0)"


def _module(module: ModuleType) -> Iterator[str | _Inside]:
    if module.__name__ != "litellm":
        raise UnknownClient(_name_of(module))
    yield "functools.partial(litellm.completion, max_retries=0)"


def _litellm_router(router: Any) -> Iterator[str | _Inside]:
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
    deployments = router.registry().all() if hasattr(type(router), "registry") else router.model_list
    if any(deployment["litellm_params"].get("num_retries") for deployment in deployments):
        yield 'litellm_params={"num_retries": 0}'


def _chat_model(model: Any) -> Iterator[str | _Inside]:
    """Chat models of LangChain for `openai` and `anthropic`; None as `max_retries` is the SDK's own default."""
    if model.max_retries != 0:
        yield "max_retries=0"
    yield from _held(vars(model))


def _runnable(runnable: Any) -> Iterator[str | _Inside]:
    """Anything of LangChain that may hold a model: bindings, sequences, lambdas, choices."""
    yield from _held(vars(runnable))
    yield from _held(getattr(runnable, "deps", ()))


def _runnable_retry(runnable: Any) -> Iterator[str | _Inside]:
    if runnable.max_attempt_number != 1:
        yield "with_retry(stop_after_attempt=1)"
    yield from _runnable(runnable)


def _runnable_fallbacks(runnable: Any) -> Iterator[str | _Inside]:
    if runnable.fallbacks:
        yield "with_fallbacks([])"
    yield from _runnable(runnable)


def _held(value: object) -> Iterator[_Inside]:
    """Whatever in `value`, also in its lists and mappings, is a client or may hold one."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _held(part)
    elif not _HOLDERS.isdisjoint(_known_as(value)):
        yield _Inside(value)


def _known_as(value: object) -> list[tuple[str, str]]:
    """Package and name of the value's type and of its bases, the nearest first."""
    return [(_package(kind.__module__), kind.__name__) for kind in type(value).__mro__]


def _http_client(client: Any) -> Iterator[str | _Inside]:
    yield _Inside(client._transport)
    yield from (_Inside(transport) for transport in client._mounts.values() if transport is not None)


def _http_transport(transport: Any) -> Iterator[str | _Inside]:
    if transport._pool._retries != 0:
        yield f"{type(transport).__name__}(retries=0)"


def _wrapper(transport: Any) -> Iterator[str | _Inside]:
    yield _Inside(transport.inner)


def _never(client: object) -> Iterator[str | _Inside]:
    """Sends each request once, and has no setting."""
    return iter(())


def _unknown(client: object) -> Iterator[str | _Inside]:
    """A model of LangChain that is none of the known ones: it holds a client that is not known either."""
    raise UnknownClient(_name_of(client))


_RUNNABLE = ("langchain_core", "Runnable")

_READERS: dict[tuple[str, str], Reader] = {
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
    _RUNNABLE: _runnable,
}
for _http in ("httpx", "httpx2"):
    _READERS[_http, "BaseClient"] = _http_client
    _READERS[_http, "HTTPTransport"] = _READERS[_http, "AsyncHTTPTransport"] = _http_transport
    _READERS[_http, "MockTransport"] = _READERS[_http, "ASGITransport"] = _READERS[_http, "WSGITransport"] = _never
_HOLDERS = {_RUNNABLE} | {known for known in _READERS if known[1] == "BaseClient"}
