"""The style guide: every component in every state, by the very templates that the pages use."""

from starlette.requests import Request
from starlette.responses import Response

from ledger.run_filter import STATUSES
from viewer.access.routes import GuardedRoute
from viewer.guide import contents, lists, told
from viewer.guide.nowhere import GuideSite
from viewer.guide.trace import guide_page
from viewer.http.errors import Problem
from viewer.rendering import Renderer


class GuidePages:
    """HTML; it shows nothing of any run, so nobody needs a right for it."""

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser is served; `HEAD` comes with `GET`."""
        return [GuardedRoute("/style", self.guide, needs=None)]

    async def guide(self, request: Request) -> Response:
        """One long page."""
        site = GuideSite(self.renderer.site.root)
        page = guide_page(site)
        context = {
            "site": site,
            "page": page,
            "summary": page.trace.run.summary,
            "statuses": STATUSES,
            "seals": told.seals(page.links),
            "rows": lists.rows(),
            "form": lists.form(),
            "blocks": contents.blocks(),
            "problem": Problem(404, "run_not_found", "there is no such run in this session"),
            "can_stop": True,
            "can_judge": True,
            "can_audit": False,
            "is_bundled": False,
        }
        return self.renderer.page(request, "guide.html", context)
