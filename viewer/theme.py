"""Light or dark: by the reader's preference, unless the reader has chosen here."""

from typing import Literal, get_args
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness.errors import InvalidInput
from viewer.access.routes import GuardedRoute
from viewer.http.form import read_form
from viewer.site import Site
from viewer.words import N_

Theme = Literal["light", "dark"]
COOKIE = "tachograph_theme"
KEPT_S = 365 * 86_400
CHOICES = (("", N_("As the system")), ("light", N_("Light")), ("dark", N_("Dark")))
"""What is sent, and its name; the first forgets what was chosen."""


def theme_of(request: Request) -> Theme | None:
    """What the reader chose; None leaves it to the browser."""
    return next((theme for theme in get_args(Theme) if request.cookies.get(COOKIE) == theme), None)


class ThemePages:
    """Where the choice is kept: in a cookie that says nothing else."""

    def __init__(self, site: Site) -> None:
        self.site = site

    @property
    def routes(self) -> list[GuardedRoute]:
        return [GuardedRoute("/theme", self.choose, needs=None, methods=["POST"])]

    async def choose(self, request: Request) -> Response:
        """Keep it, and lead back to the page it was chosen on."""
        form = await read_form(request)
        chosen = form.get("theme", "")
        if chosen not in dict(CHOICES):
            raise InvalidInput("theme", "must be light, dark or nothing")
        answer = RedirectResponse(self._back(form.get("back", "")), 303)
        path = self.site.home()
        if chosen:
            answer.set_cookie(COOKIE, chosen, max_age=KEPT_S, path=path, httponly=True, samesite="strict")
        else:
            answer.delete_cookie(COOKIE, path=path, httponly=True, samesite="strict")
        return answer

    def _back(self, address: str) -> str:
        """The page, if it is one of ours: nobody is led elsewhere."""
        home = self.site.home()
        inside = address.removeprefix(home)
        path, _, _ = inside.partition("?")
        is_below = inside != address and not inside.startswith(("/", "\\")) and ".." not in unquote(path)
        is_ours = is_below and address.isascii() and address.isprintable()
        return address if is_ours else home
