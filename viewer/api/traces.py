"""The read API: one trace, the runs of a session, a session, and whether the server is up (SPEC R4, R5, D15)."""

from starlette.requests import Request
from starlette.responses import Response

from harness.events.base import Id
from viewer.access.routes import GuardedRoute, Right
from viewer.access.sessions import ONE_RUN
from viewer.api import shapes
from viewer.api.bodies import session_body, summary_body, trace_body
from viewer.api.etag import matches, not_modified, run_etag, tagged
from viewer.api.long_trace import is_long, trace_parts
from viewer.http import queries, wrapper
from viewer.http.describing import RUN_CURSOR, Described, Parameter, paging
from viewer.http.sending import PartByPart
from viewer.reading import Reader


class Traces:
    """JSON endpoints over one reader."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @property
    def routes(self) -> list[GuardedRoute]:
        """What the API serves; `HEAD` comes with `GET`."""
        return [
            GuardedRoute(
                "/api/diagnosis/{sessionId}/trace",
                self.trace,
                needs=Right.READ,
                shows_content=True,
                about=ONE_RUN,
                described=Described(
                    answer=shapes.Trace, query=(Parameter("runId", Id, "The run.", required=True),), has_tag=True
                ),
            ),
            GuardedRoute(
                "/api/chat/session/{sessionId}/runs",
                self.session_runs,
                needs=Right.READ,
                shows_content=True,
                described=Described(answer=list[shapes.RunSummary], query=paging(queries.RUNS, RUN_CURSOR), pages=True),
            ),
            GuardedRoute(
                "/api/chat/session/{sessionId}",
                self.session,
                needs=Right.READ,
                described=Described(answer=shapes.Session),
            ),
            GuardedRoute("/healthz", self.health, needs=None, described=Described(answer=shapes.Health)),
        ]

    async def trace(self, request: Request) -> Response:
        """Exactly one run; `304` while it still is what the client has."""
        session_id = queries.session_in_path(request)
        run_id = queries.id_in_query(request, "runId")
        known = request.headers.getlist("if-none-match")
        if known and matches(known, tag := run_etag(await self.reader.overview(session_id, run_id))):
            return not_modified(tag)
        trace = await self.reader.trace(session_id, run_id)
        headers = tagged(run_etag(trace))
        if is_long(trace):
            return PartByPart(trace_parts(trace), wrapper.MEDIA_TYPE, headers)
        return wrapper.ok(trace_body(trace), headers=headers)

    async def session_runs(self, request: Request) -> Response:
        """Summaries, newest first; `Link: rel="next"` where there are more."""
        session_id = queries.session_in_path(request)
        limit = queries.limit_in_query(request)
        page = await self.reader.session_runs(session_id, limit=limit, cursor=queries.cursor_in_query(request))
        headers = {} if page.next_cursor is None else queries.next_page(request, limit, page.next_cursor)
        return wrapper.ok([summary_body(run) for run in page.rows], headers=headers)

    async def session(self, request: Request) -> Response:
        """Conversation metadata."""
        return wrapper.ok(session_body(await self.reader.session(queries.session_in_path(request))))

    async def health(self, request: Request) -> Response:
        """Up, and able to read the ledger; `503` otherwise."""
        await self.reader.recent_runs(limit=1)
        return wrapper.ok({"status": "up"})
