"""The pages: recent runs, the runs of a session, and the trace of one run."""

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.errors import InvalidInput
from viewer import queries
from viewer.etag import trace_etag
from viewer.present.links import TraceLinks
from viewer.present.trace_page import trace_page
from viewer.reading import Reader, read_run
from viewer.rendering import Renderer

_CONTENT_KEY = re.compile(r"answer|(step|tool)-[0-9]{1,9}-(input|output|error)")


class Pages:
    """HTML endpoints over one reader."""

    def __init__(self, reader: Reader, renderer: Renderer) -> None:
        self.reader = reader
        self.renderer = renderer

    @property
    def routes(self) -> list[Route]:
        """What a browser is served; `HEAD` comes with `GET`."""
        return [
            Route("/", self.index),
            Route("/sessions/{sessionId}", self.session),
            Route("/trace", self.trace),
        ]

    async def index(self, request: Request) -> Response:
        """The runs of all sessions, newest first."""
        cursor = queries.cursor_in_query(request)
        page = await self.reader.recent_runs(limit=queries.RUNS_LIMIT_DEFAULT, cursor=cursor)
        return self.renderer.page("index.html", {"page": page, "first": cursor is None})

    async def session(self, request: Request) -> Response:
        """One session and its runs, newest first."""
        session_id = queries.session_in_path(request)
        cursor = queries.cursor_in_query(request)
        session = await self.reader.session(session_id)
        page = await self.reader.session_runs(session_id, limit=queries.RUNS_LIMIT_DEFAULT, cursor=cursor)
        return self.renderer.page("session.html", {"session": session, "page": page, "first": cursor is None})

    async def trace(self, request: Request) -> Response:
        """Exactly one run; the whole state of the page is in its address."""
        links = links_of(request)
        reading = await read_run(
            self.reader, links.session_id, links.run_id, after_seq=links.after, event_seq=links.event
        )
        context = {"page": trace_page(reading, links), "etag": trace_etag(reading.trace)}
        return self.renderer.page("trace.html", context)


def links_of(request: Request) -> TraceLinks:
    """The state that the address asks for."""
    content = queries.single(request, "content")
    if content is not None and not _CONTENT_KEY.fullmatch(content):
        raise InvalidInput("content", "names no content of a run")
    return TraceLinks(
        session_id=queries.id_in_query(request, "sessionId"),
        run_id=queries.id_in_query(request, "runId"),
        after=queries.position(request, "after") or 0,
        event=queries.position(request, "event"),
        steps=queries.position(request, "steps") or 0,
        tools=queries.position(request, "tools") or 0,
        content=content,
        offset=queries.position(request, "offset") or 0,
    )
