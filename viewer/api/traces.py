"""The read API: one trace, the runs of a session, a session, and whether the server is up (SPEC R4, R5, D15)."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from viewer.access.routes import GuardedRoute, Right
from viewer.api.bodies import session_body, summary_body, trace_body
from viewer.http import queries, wrapper
from viewer.http.etag import matches, trace_etag
from viewer.reading import Reader

_REVALIDATE = "private, no-cache"


class Api:
    """JSON endpoints over one reader."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @property
    def routes(self) -> list[GuardedRoute]:
        """What the API serves; `HEAD` comes with `GET`."""
        return [
            GuardedRoute("/api/diagnosis/{sessionId}/trace", self.trace, needs=Right.READ, shows_content=True),
            GuardedRoute("/api/chat/session/{sessionId}/runs", self.session_runs, needs=Right.READ, shows_content=True),
            GuardedRoute("/api/chat/session/{sessionId}", self.session, needs=Right.READ),
            GuardedRoute("/healthz", self.health, needs=None),
        ]

    async def trace(self, request: Request) -> Response:
        """Exactly one run; `304` while it still is what the client has."""
        session_id = queries.session_in_path(request)
        run_id = queries.id_in_query(request, "runId")
        trace = await self.reader.trace(session_id, run_id)
        etag = trace_etag(trace)
        headers = {"ETag": etag, "Cache-Control": _REVALIDATE}
        if matches(request.headers.getlist("if-none-match"), etag):
            return Response(status_code=304, headers=headers)
        return wrapper.ok(trace_body(trace), headers=headers)

    async def session_runs(self, request: Request) -> Response:
        """Summaries, newest first; `Link: rel="next"` where there are more."""
        session_id = queries.session_in_path(request)
        limit = queries.limit_in_query(request)
        page = await self.reader.session_runs(session_id, limit=limit, cursor=queries.cursor_in_query(request))
        headers = {}
        if page.next_cursor is not None:
            query = urlencode({"limit": limit, "cursor": page.next_cursor})
            headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
        return wrapper.ok([summary_body(run) for run in page.rows], headers=headers)

    async def session(self, request: Request) -> Response:
        """Conversation metadata."""
        return wrapper.ok(session_body(await self.reader.session(queries.session_in_path(request))))

    async def health(self, request: Request) -> Response:
        """Up, and able to read the ledger; `503` otherwise."""
        await self.reader.recent_runs(limit=1)
        return wrapper.ok({"status": "up"})
