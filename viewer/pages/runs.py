"""The pages that list runs: of all sessions, and of one."""

from starlette.requests import Request
from starlette.responses import Response

from viewer.access.routes import GuardedRoute, Right
from viewer.http import queries
from viewer.reading import Reader
from viewer.rendering import Renderer


class RunPages:
    """HTML of lists of runs."""

    def __init__(self, reader: Reader, renderer: Renderer) -> None:
        self.reader = reader
        self.renderer = renderer

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser is served; `HEAD` comes with `GET`."""
        return [
            GuardedRoute("/", self.index, needs=Right.READ, shows_content=True),
            GuardedRoute("/sessions/{sessionId}", self.session, needs=Right.READ, shows_content=True),
        ]

    async def index(self, request: Request) -> Response:
        """The runs of all sessions, newest first."""
        cursor = queries.cursor_in_query(request)
        page = await self.reader.recent_runs(limit=queries.RUNS.default, cursor=cursor)
        return self.renderer.page(request, "index.html", {"page": page, "first": cursor is None})

    async def session(self, request: Request) -> Response:
        """One session and its runs, newest first."""
        session_id = queries.session_in_path(request)
        cursor = queries.cursor_in_query(request)
        session = await self.reader.session(session_id)
        page = await self.reader.session_runs(session_id, limit=queries.RUNS.default, cursor=cursor)
        context = {"session": session, "page": page, "first": cursor is None}
        return self.renderer.page(request, "session.html", context)
