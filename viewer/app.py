"""The application: routes, the security layer, and one way of telling what went wrong."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from harness.clock import SystemWallClock, WallClock
from harness.errors import HarnessError
from ledger.errors import LedgerError
from viewer.access.guard import Guard
from viewer.access.routes import guarded
from viewer.api.auditing import Auditing
from viewer.api.comparing import Comparing
from viewer.api.erasing import Erasing
from viewer.api.live import Live
from viewer.api.overview import Overview
from viewer.api.parts import Parts
from viewer.api.runs import RunLists
from viewer.api.traces import Traces
from viewer.api.writing import Writer, Writing
from viewer.audit.bundles import Bundles
from viewer.audit.history import SystemHistory
from viewer.audit.source import LedgerAddress
from viewer.audit.verification import Verification
from viewer.erasing.carrying_out import Eraser, Erasures
from viewer.http import wrapper
from viewer.http.errors import Problem, log_unexpected, problem_of
from viewer.http.forwarded import Forwarded, TrustedProxies
from viewer.http.head import BoundedHead
from viewer.http.refusals import Refusal
from viewer.http.root_path import BelowRootPath, check_root_path, path_below_root
from viewer.http.security import LOOPBACK_HOSTS, SecurityMiddleware
from viewer.metrics import CountRequests, Metrics
from viewer.openapi.endpoint import OpenApi
from viewer.pages.audit import AuditPages
from viewer.pages.compare import ComparePages
from viewer.pages.erasing import ErasingForms
from viewer.pages.forms import RunForms
from viewer.pages.guide import GuidePages
from viewer.pages.login import LoginPages
from viewer.pages.runs import RunPages
from viewer.pages.trace import TracePages
from viewer.reading import Reader
from viewer.reading.comparing import Comparisons
from viewer.rendering import Renderer
from viewer.site import Site
from viewer.stylesheet import Stylesheet
from viewer.theme import ThemePages

TOLD = (HTTPException, HarnessError, LedgerError, Refusal)
"""What is raised on purpose, and becomes an answer."""

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[Any]]


def create_app(
    reader: Reader,
    *,
    address: LedgerAddress | None = None,
    writer: Writer | None = None,
    eraser: Eraser | None = None,
    extra_routes: Sequence[BaseRoute] = (),
    lifespan: Lifespan | None = None,
    allowed_hosts: Sequence[str] = LOOPBACK_HOSTS,
    metrics: Metrics | None = None,
    root_path: str = "",
    trusted_proxies: Sequence[str] = (),
    guard: Guard | None = None,
    clock: WallClock | None = None,
) -> Starlette:
    """The viewer over `reader`, with an application's own routes before its own.

    `address` is where the same ledger is opened anew, to verify it and to make bundles; without it neither is done.
    `writer`, such as the open ledger, takes feedback and cancelling, and `eraser` erases, as far as the ledger lets one
    person do it; without them it is refused as `read_only`.
    Only requests whose `Host` is one of `allowed_hosts` are answered: loopback's names unless more are given, `"*"`
    for any. `metrics` are served at `/metrics`, and count the requests. Errors of the harness and the ledger become the
    wrapper in the extra routes too. `root_path` is the sub-path (`/ledger`) that a reverse proxy serves the viewer at,
    and `trusted_proxies` are those (`10.0.0.1`, `10.0.0.0/8`, `unix`) whose `X-Forwarded-For`, `-Proto` and `-Host` are
    believed.
    `guard` asks for tokens and records who looks; without one everybody may do everything, and routes of an application
    that say no right of their own need that to annotate.
    """
    guard = guard or Guard()
    clock = clock or SystemWallClock()
    style = Stylesheet()
    renderer = Renderer(Site(root_path), style.version)
    tell, writing, history = _Teller(renderer), Writing(writer), SystemHistory(reader)
    erasures, comparisons = Erasures(eraser, history, clock), Comparisons(reader)
    verification = Verification(address, clock)
    routes: list[BaseRoute] = [
        *guarded(extra_routes),
        *Traces(reader).routes,
        *Parts(reader).routes,
        *RunLists(reader).routes,
        *Overview(reader, clock).routes,
        *Live(reader).routes,
        *writing.routes,
        *Erasing(erasures).routes,
        *(metrics.routes if metrics is not None else ()),
        *Comparing(comparisons, renderer.site).routes,
        *ComparePages(reader, comparisons, renderer).routes,
        *Auditing(reader, history, verification).routes,
        *AuditPages(reader, renderer, clock, history, verification, erasures, Bundles(address)).routes,
        *RunForms(writing, renderer.site).routes,
        *ErasingForms(erasures, renderer.site).routes,
        *RunPages(reader, renderer, clock).routes,
        *TracePages(reader, renderer, writing, erasures, is_bundled=address is not None).routes,
        *style.routes,
        *ThemePages(renderer.site).routes,
        *GuidePages(renderer).routes,
        *LoginPages(guard, renderer).routes,
        Mount("/static", StaticFiles(packages=[("viewer", "static")]), name="static"),
    ]
    app = Starlette(
        routes=[*OpenApi(routes, root_path).routes, *routes],
        middleware=_layers(root_path, trusted_proxies, allowed_hosts, metrics, tell),
        exception_handlers=dict.fromkeys(TOLD, tell),
        lifespan=lifespan,
    )
    check_root_path(root_path, (getattr(route, "path", "") for route in app.routes))
    # One page has one address; with a slash too many it is not found.
    app.router.redirect_slashes = False
    app.state.guard = guard
    return app


def _layers(
    root_path: str,
    trusted_proxies: Sequence[str],
    allowed_hosts: Sequence[str],
    metrics: Metrics | None,
    tell: "_Teller",
) -> list[Middleware]:
    """What a request passes before its route, the first one first."""
    return [
        Middleware(Forwarded, proxies=TrustedProxies(trusted_proxies)),
        Middleware(BelowRootPath, root_path=root_path),
        *([Middleware(CountRequests, metrics=metrics)] if metrics is not None else ()),
        Middleware(SecurityMiddleware, allowed_hosts=allowed_hosts),
        Middleware(BoundedHead),
        Middleware(ExceptionMiddleware, handlers={Exception: tell.unexpected}),
    ]


class _Teller:
    """Answers an exception: the wrapper for programs, a page for people."""

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer

    async def __call__(self, request: Request, error: Exception) -> Response:
        return self.answer(request, problem_of(error))

    async def unexpected(self, request: Request, error: Exception) -> Response:
        """Whatever nobody expected: logged by place, told without detail."""
        log_unexpected(request, error)
        return await self(request, error)

    def answer(self, request: Request, problem: Problem) -> Response:
        """The same problem in the form that the path stands for."""
        if wants_json(path_below_root(request.scope)):
            return wrapper.error(problem.code, problem.message, problem.status, problem.data, problem.headers)
        response = self.renderer.page(request, "error.html", {"problem": problem}, status=problem.status)
        response.headers.update(problem.headers)
        return response


def wants_json(path: str) -> bool:
    """Whether a path is for programs."""
    return path == "/healthz" or path == "/api" or path.startswith(("/api/", "/v1/"))
