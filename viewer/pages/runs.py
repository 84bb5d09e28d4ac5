"""The pages that list: what runs now and ended lately, all runs, all sessions, and the runs of one."""

from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness.clock import WallClock
from ledger.run_filter import STATUSES, RunFilter
from viewer.access.routes import GuardedRoute, Right
from viewer.access.sessions import ONE_SESSION
from viewer.api.filters import run_filter
from viewer.http import queries
from viewer.present.lists.agents import agent_rows, summary
from viewer.present.lists.filters import filter_form, page_address
from viewer.present.lists.runs import attention_rows, run_row, run_rows
from viewer.reading import Reader
from viewer.rendering import Renderer

LATELY = 10
"""Runs that home lists as running, and as ended lately."""
ENDED = tuple(status for status in STATUSES if status != "RUNNING")


class RunPages:
    """HTML of lists."""

    def __init__(self, reader: Reader, renderer: Renderer, clock: WallClock) -> None:
        self.reader = reader
        self.renderer = renderer
        self.clock = clock

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser is served; `HEAD` comes with `GET`."""
        return [
            GuardedRoute("/", self.home, needs=Right.READ, shows_content=True, lists_sessions=True),
            GuardedRoute(
                "/runs", self.runs, needs=Right.READ, shows_content=True, lists_sessions=True, about=ONE_SESSION
            ),
            GuardedRoute("/sessions", self.sessions, needs=Right.READ, shows_content=True, lists_sessions=True),
            GuardedRoute("/sessions/{sessionId}", self.session, needs=Right.READ, shows_content=True),
        ]

    async def home(self, request: Request) -> Response:
        """What runs now and what ended lately, by agent; what needs attention comes first."""
        if queries.session_prefix(request) is not None:
            # What all runs add up to is nothing for whoever may see some sessions alone.
            return RedirectResponse(self.renderer.site.runs(), 303)
        window = queries.window_in_query(request)
        tallies = await self.reader.tallies(window.since_us(self.clock.now_us()))
        running = await self.reader.runs(RunFilter(status=("RUNNING",)), limit=LATELY)
        ended = await self.reader.runs(RunFilter(status=ENDED), limit=LATELY)
        context = {
            "summary": summary(tallies, window.words),
            "window": window,
            "windows": queries.WINDOWS,
            "attention": attention_rows(tallies.attention),
            "agents": agent_rows(tallies),
            "running": run_rows(running.rows),
            "running_has_more": running.next_cursor is not None,
            "ended": run_rows(ended.rows),
        }
        return self.renderer.page(request, "home.html", context)

    async def runs(self, request: Request) -> Response:
        """The runs of all sessions that fit, newest first."""
        site = self.renderer.site
        context = await self._listed(request, run_filter(request), lambda query: _with(site.runs(), query))
        return self.renderer.page(request, "runs.html", context)

    async def sessions(self, request: Request) -> Response:
        """All sessions, the one that was last active first."""
        prefix = queries.session_prefix(request)
        page = await self.reader.sessions(queries.RUNS.default, queries.cursor_in_query(request), prefix)
        site = self.renderer.site
        rows = [(each, None if each.newest_run is None else run_row(each.newest_run)) for each in page.rows]
        context = {
            "page": page,
            "rows": rows,
            "prefix": prefix or "",
            "first": None if queries.cursor_in_query(request) is None else site.sessions(sessionPrefix=prefix),
            "following": page.next_cursor and site.sessions(sessionPrefix=prefix, cursor=page.next_cursor),
        }
        return self.renderer.page(request, "sessions.html", context)

    async def session(self, request: Request) -> Response:
        """One session and those of its runs that fit, newest first."""
        session_id = queries.session_in_path(request)
        session = await self.reader.session(session_id)
        wanted = replace(run_filter(request), session_id=session_id)
        path = self.renderer.site.session(session_id)
        context = await self._listed(request, wanted, lambda query: _with(path, query))
        return self.renderer.page(request, "session.html", {**context, "session": session})

    async def _listed(self, request: Request, wanted: RunFilter, address: Callable[[str], str]) -> dict[str, object]:
        cursor = queries.cursor_in_query(request)
        query = request.query_params.multi_items()
        page = await self.reader.runs(wanted, limit=queries.RUNS.default, cursor=cursor)
        return {
            "page": page,
            "rows": run_rows(page.rows),
            "form": filter_form(query, await self.reader.run_values(wanted), address),
            "first": None if cursor is None else page_address(query, address, None),
            "following": page.next_cursor and page_address(query, address, page.next_cursor),
        }


def _with(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path
