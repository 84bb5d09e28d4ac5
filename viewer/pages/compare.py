"""Two runs side by side, as a page and as JSON."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness.errors import InvalidInput
from harness.events.base import Id
from harness.ids import check_id
from ledger.audit.comparing.comparing import Comparison, compare
from viewer.access.routes import GuardedRoute, Right
from viewer.access.sessions import TWO_RUNS
from viewer.api.comparing import BOUNDARIES_PER_PAGE, comparison_body
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Parameter, Position
from viewer.present.compare.links import CompareLinks, Keys
from viewer.present.compare.page import compare_page
from viewer.present.compare.rows import SHOWN, Shown
from viewer.reading import Reader
from viewer.rendering import Renderer

COMPARISONS_AT_ONCE = 2
"""A further one waits: two long runs take some hundred megabytes and seconds."""
OTHER_RUNS = 20
"""How many of the session's newest runs are offered to compare with."""
BOTH_RUNS = (
    *(Parameter(name, Id, "", required=True) for name in ("sessionA", "runA", "sessionB", "runB")),
    Parameter("skip", Position, "How many boundaries come before the page."),
)


class ComparePages:
    """HTML and JSON of comparisons; an unknown run and one of another session get the same answer."""

    def __init__(self, reader: Reader, renderer: Renderer) -> None:
        self.reader = reader
        self.renderer = renderer
        self._room = asyncio.Semaphore(COMPARISONS_AT_ONCE)

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser and a program are served; `HEAD` comes with `GET`."""
        return [
            GuardedRoute(
                "/compare", self.page, needs=Right.READ, shows_content=True, within_sessions=True, about=TWO_RUNS
            ),
            GuardedRoute(
                "/api/diagnosis/compare",
                self.json,
                needs=Right.READ,
                shows_content=True,
                within_sessions=True,
                about=TWO_RUNS,
                described=Described(answer=dict[str, Any], query=BOTH_RUNS, pages=True),
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
        found = await self._compare(links.a, links.b)
        return self.renderer.page(request, "compare.html", {"page": compare_page(found, links)})

    async def json(self, request: Request) -> Response:
        """The same as JSON, boundaries by page."""
        a, b = _keys(request, "A"), _keys(request, "B")
        skipped = queries.position(request, "skip") or 0
        found = await self._compare(a, b)
        headers = {"Cache-Control": "no-store"}
        following = skipped + BOUNDARIES_PER_PAGE
        if following < len(found.entries):
            headers["Link"] = f'<{self.renderer.site.compare_api(a, b, skip=following)}>; rel="next"'
        return wrapper.ok(comparison_body(found, skipped), headers=headers)

    async def _compare(self, a: Keys, b: Keys) -> Comparison:
        async with self._room:
            return await compare(self.reader, a, b)

    async def _choice(self, request: Request, a: Keys) -> Response:
        trace = await self.reader.overview(*a)
        page = await self.reader.session_runs(a[0], limit=OTHER_RUNS)
        others = [run for run in page.rows if run.run_id != a[1]]
        context = {"run": trace.run.summary, "keys": a, "others": others, "has_more": page.next_cursor is not None}
        return self.renderer.page(request, "compare_with.html", context)


def _keys(request: Request, letter: str) -> Keys:
    return queries.id_in_query(request, f"session{letter}"), queries.id_in_query(request, f"run{letter}")


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
