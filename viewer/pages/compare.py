"""Two runs side by side."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness.errors import InvalidInput
from harness.ids import check_id
from viewer.access.routes import GuardedRoute, Right
from viewer.access.sessions import TWO_RUNS
from viewer.http import queries
from viewer.present.compare.links import CompareLinks, Keys
from viewer.present.compare.page import compare_page
from viewer.present.compare.rows import SHOWN, Shown
from viewer.reading import Reader
from viewer.reading.comparing import Comparisons
from viewer.rendering import Renderer

OTHER_RUNS = 20
"""How many of the session's newest runs are offered to compare with."""


class ComparePages:
    """HTML of comparisons; an unknown run and one of another session get the same answer."""

    def __init__(self, reader: Reader, comparisons: Comparisons, renderer: Renderer) -> None:
        self.reader = reader
        self.comparisons = comparisons
        self.renderer = renderer

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser is served; `HEAD` comes with `GET`."""
        return [
            GuardedRoute(
                "/compare", self.page, needs=Right.READ, shows_content=True, within_sessions=True, about=TWO_RUNS
            ),
        ]

    async def page(self, request: Request) -> Response:
        """The comparison, or, while only one run is named, what it may be compared with."""
        a = _keys(request, "A")
        other = queries.single(request, "with")
        if other is not None:
            return RedirectResponse(self.renderer.site.compare(a, _named(other)), 303)
        if queries.single(request, "sessionB") is None and queries.single(request, "runB") is None:
            return await self._choice(request, a)
        links = CompareLinks(
            self.renderer.site, a, _keys(request, "B"), _shown(request), queries.position(request, "skip") or 0
        )
        found = await self.comparisons.of(links.a, links.b)
        return self.renderer.page(request, "compare.html", {"page": compare_page(found, links)})

    async def _choice(self, request: Request, a: Keys) -> Response:
        trace = await self.reader.overview(*a)
        page = await self.reader.session_runs(a[0], limit=OTHER_RUNS)
        others = [run for run in page.rows if run.run_id != a[1]]
        context = {"run": trace.run.summary, "keys": a, "others": others, "has_more": page.next_cursor is not None}
        return self.renderer.page(request, "compare_with.html", context)


def _keys(request: Request, letter: str) -> Keys:
    return queries.run_in_query(request, f"session{letter}", f"run{letter}")


def _named(text: str) -> Keys:
    """`SESSION/RUN` as the ids that it names."""
    session_id, slash, run_id = text.strip().partition("/")
    if not slash:
        raise InvalidInput("with", "must be SESSION/RUN")
    return check_id("sessionB", session_id), check_id("runB", run_id)


def _shown(request: Request) -> Shown:
    value = queries.single(request, "show")
    found = next((each for each in SHOWN if each == value), None)
    if value is not None and found is None:
        raise InvalidInput("show", f"must be one of {', '.join(SHOWN)}")
    return found or "folded"
