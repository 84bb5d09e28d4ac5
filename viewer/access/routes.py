"""Routes that say what right they need; who asks without it is refused before the endpoint is called."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from starlette.datastructures import URLPath
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from viewer.access.guard import Guard
from viewer.access.rights import Right
from viewer.access.rule import Rule
from viewer.access.sessions import NAMES_BEGIN, ONE_RUN, About
from viewer.http.describing import Described

__all__ = ["ForeignRoute", "GuardedRoute", "Right", "guarded"]

ACTION_CHARS_MAX = 64
HOME = "home"


class GuardedRoute(Route):
    """A route with its rule; None needs no right, which only what shows nothing of any run may say."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]],
        *,
        needs: Right | None,
        shows_content: bool = False,
        within_sessions: bool = False,
        lists_sessions: bool = False,
        about: About | None = None,
        goes_on: bool = False,
        described: Described | None = None,
        methods: Collection[str] | None = None,
    ) -> None:
        """`shows_content`: content of runs is in the answer, so that who saw it is on record.

        Somebody may be limited to some sessions. `within_sessions`: the answer is about no other sessions than those
        that the request names, in parameters that begin `session` or in a body that is read through `session_for`; one
        in the path says so, too. `lists_sessions`: a list that heeds `sessionPrefix`, which is set for him. Any other
        route he is refused. `about`: the parameters by which what was seen is put on record; those of the path, and
        `sessionId` and `runId` of an answer within sessions, unless others are given. `goes_on`: the answer may last,
        and is cut once whoever gets it is not let in any more.
        """
        super().__init__(path, endpoint, methods=methods)
        self.needs = needs
        self.described = described
        """What the description of the API says of it; None for what is a page."""
        rule = None if needs is None else _rule(path, needs, shows_content, within_sessions, lists_sessions, about)
        self.rule = rule and replace(rule, goes_on=goes_on)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask the guard, then the endpoint."""
        if self.methods is not None and scope["method"] not in self.methods:
            # Others of the same path take other methods.
            same = [one for one in scope["app"].routes if isinstance(one, GuardedRoute) and one.path == self.path]
            allowed = sorted({method for one in same for method in one.methods or ()})
            raise HTTPException(405, headers={"Allow": ", ".join(allowed)})
        if self.rule is not None:
            receive = await _guard(scope).admit(scope, receive, self.rule)
        await super().handle(scope, receive, send)


class ForeignRoute(BaseRoute):
    """A route of an application's own that knows nothing of rights: it needs that to annotate.

    It may do anything, so reading is too little; and somebody who is limited to some sessions is refused unless its
    path names one of them, since nobody knows what else the endpoint looks at.
    """

    def __init__(self, route: BaseRoute) -> None:
        self.route = route
        self.path = getattr(route, "path", "")
        self.needs = Right.ANNOTATE
        self.rule = replace(_rule(self.path, self.needs, shows_content=True), may_make=True)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As the route itself."""
        return self.route.matches(scope)

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """As the route itself."""
        return self.route.url_path_for(name, **path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask the guard, then the route."""
        receive = await _guard(scope).admit(scope, receive, self.rule)
        await self.route.handle(scope, receive, send)


def guarded(routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Routes of an application, each with a rule: its own, or that of one that has none."""
    return [route if isinstance(route, GuardedRoute) else ForeignRoute(route) for route in routes]


def action_of(path: str) -> str:
    """A path as a code: `/api/diagnosis/{sessionId}/trace` as `api.diagnosis.trace`."""
    segments = [segment for segment in path.split("/") if segment and not segment.startswith("{")]
    return re.sub(r"[^A-Za-z0-9_.]", "_", ".".join(segments))[:ACTION_CHARS_MAX] or HOME


def _rule(
    path: str,
    needs: Right,
    shows_content: bool,
    within: bool = False,
    lists: bool = False,
    about: About | None = None,
) -> Rule:
    in_path = _about_in(path)
    if about is None:
        about = in_path or (ONE_RUN if within else ())
    return Rule(action_of(path), needs, shows_content, within or bool(in_path), about, lists)


def _about_in(path: str) -> About:
    """What a path such as `/things/{sessionId}/{runId}` names."""
    names = re.findall(r"{(\w+)", path)
    run = next((name for name in names if name.startswith("run")), None)
    return tuple((name, run) for name in names if name.startswith(NAMES_BEGIN))[:1]


def _guard(scope: Scope) -> Guard:
    guard: Guard = scope["app"].state.guard
    return guard
