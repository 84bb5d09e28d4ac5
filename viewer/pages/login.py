"""Signing in with a link, and out again.

Whoever only looks at the link, such as a program that previews it, does not use it up: the page that it leads to has a
button, and that is what signs in.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ledger.tokens.tokens import SESSION_TTL_S
from viewer.access.guard import COOKIE, Guard, session_in
from viewer.access.routes import GuardedRoute
from viewer.http import queries
from viewer.http.form import read_form
from viewer.rendering import Renderer

CODE: Final = "code"
SEE_OTHER: Final = 303


class LoginPages:
    """HTML of signing in; it shows nothing of any run."""

    def __init__(self, guard: Guard, renderer: Renderer) -> None:
        self._guard = guard
        self._renderer = renderer

    @property
    def routes(self) -> list[GuardedRoute]:
        return [
            GuardedRoute("/login", self.ask, needs=None, methods=["GET"]),
            GuardedRoute("/login", self.enter, needs=None, methods=["POST"]),
            GuardedRoute("/logout", self.leave, needs=None, methods=["POST"]),
        ]

    async def ask(self, request: Request) -> Response:
        """The page that a link leads to."""
        return self._page(request, queries.single(request, CODE))

    async def enter(self, request: Request) -> Response:
        """Exchange the link's code for a cookie, once."""
        code = (await read_form(request)).get(CODE, "")
        secret = await self._guard.enter(code)
        if secret is None:
            return self._page(request, None, is_over=True, status=403)
        answer = RedirectResponse(self._renderer.site.home(), SEE_OTHER)
        answer.set_cookie(COOKIE, secret, max_age=SESSION_TTL_S, **self._where(request))
        return answer

    async def leave(self, request: Request) -> Response:
        """End the session, here and in the ledger."""
        await read_form(request)
        secret = session_in(request.headers)
        if secret is not None:
            await self._guard.leave(secret)
        answer = RedirectResponse(self._renderer.site.login(), SEE_OTHER)
        answer.delete_cookie(COOKIE, **self._where(request))
        return answer

    def _where(self, request: Request) -> dict[str, Any]:
        """A cookie for this site alone, which no script reads and no other site makes a browser send."""
        is_secure = request.url.scheme == "https"
        return {"path": self._renderer.site.home(), "httponly": True, "samesite": "strict", "secure": is_secure}

    def _page(self, request: Request, code: str | None, *, is_over: bool = False, status: int = 200) -> Response:
        context = {"code": code, "is_over": is_over, "hours": SESSION_TTL_S // 3600}
        return self._renderer.page(request, "login.html", context, status=status)
