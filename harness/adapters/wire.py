"""Requests are counted at the wire, so that a client that sends two within one attempt is found out (SPEC H7).

For `httpx` and `httpx2`, synchronous or not, neither of which is imported. A client is watched once; within an
operation its requests are bound to the attempt, by a derived client or by a request extension.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, TypeVar

from harness.concurrency.waiting import result_of
from harness.context import RunContext
from harness.errors import HarnessError, InvalidInput
from harness.live.sent import SentRequests, stopped

C = TypeVar("C")

EXTENSION = "harness.sent"
_REDIRECTED = "harness.redirected"
"""In a request's extensions, once it was answered by a redirect: itself. What follows that inherits them, but what
sends the same again follows nothing."""


class Wire:
    """What the transports of one client share.

    A second request within one attempt is recorded and charged; where it `ends_run`, that ends FAILED, and the request
    does not go out.
    """

    def __init__(self, *, ends_run: bool = True) -> None:
        self._ends_run = ends_run
        self._lock = threading.Lock()
        self._unattributed = 0

    @property
    def unattributed(self) -> int:
        """Requests that were bound to no attempt."""
        return self._unattributed

    def note(self, request: Any) -> Any:
        """Count a request; a future where it waits for its record. `Interrupted` if it must not go out."""
        sent = request.extensions.get(EXTENSION)
        if sent is None:
            with self._lock:
                self._unattributed += 1
            return None
        redirected = request.extensions.pop(_REDIRECTED, None)
        if redirected is not None and redirected is not request:
            return None
        return sent.add(ends_run=self._ends_run)


class WireTransport:
    """A transport that lets its wire know of each request before the transport within sends it."""

    def __init__(self, inner: Any, wire: Wire) -> None:
        self.inner = inner
        self.wire = wire

    def handle_request(self, request: Any) -> Any:
        recorded = self.wire.note(request)
        try:
            if recorded is not None:
                recorded.result()
        except HarnessError as error:
            raise stopped(error) from error
        return _answered(request, self.inner.handle_request(request))

    async def handle_async_request(self, request: Any) -> Any:
        recorded = self.wire.note(request)
        try:
            if recorded is not None:
                await result_of(recorded)
        except HarnessError as error:
            raise stopped(error) from error
        return _answered(request, await self.inner.handle_async_request(request))

    def __enter__(self) -> WireTransport:
        self.inner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.inner.__exit__(kind, error, trace)

    async def __aenter__(self) -> WireTransport:
        await self.inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.inner.__aexit__(kind, error, trace)

    def close(self) -> None:
        self.inner.close()

    async def aclose(self) -> None:
        await self.inner.aclose()


class _BoundTransport:
    """Binds each request to an attempt, and leaves it to the client that it comes from; closing it closes nothing."""

    def __init__(self, client: Any, sent: SentRequests) -> None:
        self._client = client
        self._sent = sent

    def handle_request(self, request: Any) -> Any:
        request.extensions[EXTENSION] = self._sent
        return self._client._transport_for_url(request.url).handle_request(request)

    async def handle_async_request(self, request: Any) -> Any:
        request.extensions[EXTENSION] = self._sent
        return await self._client._transport_for_url(request.url).handle_async_request(request)

    def __enter__(self) -> _BoundTransport:
        return self

    async def __aenter__(self) -> _BoundTransport:
        return self

    def __exit__(self, *_: object) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


def watch(client: Any, *, ends_run: bool = True) -> Wire:
    """Have every transport of a client count its requests; what is watched already stays as it is.

    `client` is one of `httpx`, `httpx2`, or of an SDK built on them, such as `openai` and `anthropic`.
    """
    http = _http_client(client)
    if isinstance(http._transport, WireTransport):
        return http._transport.wire
    wire = Wire(ends_run=ends_run)
    http._transport = WireTransport(http._transport, wire)
    for pattern, transport in http._mounts.items():
        if transport is not None:
            http._mounts[pattern] = WireTransport(transport, wire)
    return wire


def is_watched(client: object) -> bool:
    """Whether `watch` was called with this client."""
    return isinstance(_http_client(client)._transport, WireTransport)


def extensions(run: RunContext) -> dict[str, Any]:
    """Bind one request to the attempt that `run` stands in: `client.get(url, extensions=extensions(run))`."""
    return {EXTENSION: _sent(run)}


def bind(client: C, run: RunContext) -> C:
    """A client like `client`, over its connections, whose requests are bound to the attempt that `run` stands in.

    It needs no closing, and closing it leaves `client` open.
    """
    if not is_watched(client):
        raise InvalidInput("client", "is not watched: call watch(client) once, where it is made")
    given: Any = client
    http = _http_client(client)
    bound = _class_of(http)(
        transport=_BoundTransport(http, _sent(run)),
        auth=http.auth,
        params=http.params,
        headers=http.headers,
        cookies=http.cookies,
        timeout=http.timeout,
        follow_redirects=http.follow_redirects,
        max_redirects=http.max_redirects,
        event_hooks=http.event_hooks,
        base_url=http.base_url,
        trust_env=http.trust_env,
    )
    derived: C = bound if http is given else given.with_options(http_client=bound)
    return derived


def _sent(run: RunContext) -> SentRequests:
    if run.sent is None:
        raise InvalidInput("run", "stands in no attempt: bind inside the operation, with the run that it is given")
    return run.sent


def _http_client(client: Any) -> Any:
    """The client of `httpx` or `httpx2` that this is, or that is within."""
    http = client if _class_of(client) is not None else getattr(client, "_client", None)
    if _class_of(http) is None:
        raise InvalidInput("client", f"must be of httpx, httpx2 or an SDK over them, not {type(client).__name__}")
    return http


def _class_of(client: object) -> Any:
    """The plain class of an HTTP client, since an SDK's own may close connections that are not its own."""
    for kind in type(client).__mro__:
        if kind.__name__ in ("Client", "AsyncClient") and kind.__module__.split(".")[0] in ("httpx", "httpx2"):
            return kind
    return None


def _answered(request: Any, response: Any) -> Any:
    if response.has_redirect_location:
        request.extensions[_REDIRECTED] = request
    return response
