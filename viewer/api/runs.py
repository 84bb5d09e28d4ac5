"""The lists of all runs and of all sessions, newest first, page by page (SPEC D14)."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from viewer.access.routes import GuardedRoute, Right
from viewer.access.sessions import ONE_SESSION
from viewer.api import shapes
from viewer.api.bodies import line_body, session_line_body
from viewer.api.filters import FILTERS, SESSION_PREFIX, run_filter
from viewer.http import queries, wrapper
from viewer.http.describing import RUN_CURSOR, Described, Parameter, paging
from viewer.reading import Reader

CUT = "X-Search-Cut"
"""Says of a page that the search stopped at its bound: more may fit than is shown."""


class RunLists:
    """JSON endpoints over one reader."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @property
    def routes(self) -> list[GuardedRoute]:
        return [
            GuardedRoute(
                "/api/diagnosis/runs",
                self.runs,
                needs=Right.READ,
                shows_content=True,
                lists_sessions=True,
                about=ONE_SESSION,
                described=_list_of(shapes.RunLine, *FILTERS),
            ),
            GuardedRoute(
                "/api/chat/sessions",
                self.sessions,
                needs=Right.READ,
                shows_content=True,
                lists_sessions=True,
                described=_list_of(shapes.SessionLine, SESSION_PREFIX),
            ),
        ]

    async def runs(self, request: Request) -> Response:
        """The runs that fit; `Link: rel="next"` where there may be more."""
        limit = queries.limit_in_query(request)
        page = await self.reader.runs(run_filter(request), limit=limit, cursor=queries.cursor_in_query(request))
        headers = _headers(request, limit, page.next_cursor, is_cut=page.is_cut)
        return wrapper.ok([line_body(run) for run in page.rows], headers=headers)

    async def sessions(self, request: Request) -> Response:
        """The sessions, the one that was last active first, each with its newest run."""
        limit = queries.limit_in_query(request)
        cursor, prefix = queries.cursor_in_query(request), queries.session_prefix(request)
        page = await self.reader.sessions(limit=limit, cursor=cursor, prefix=prefix)
        headers = _headers(request, limit, page.next_cursor, is_cut=page.is_cut)
        return wrapper.ok([session_line_body(session) for session in page.rows], headers=headers)


def _list_of(row: Any, *more: Parameter) -> Described:
    paged = paging(queries.RUNS, RUN_CURSOR)
    return Described(answer=list[row], query=(*paged, *more), pages=True, headers=(CUT,))


def _headers(request: Request, limit: int, cursor: str | None, *, is_cut: bool) -> dict[str, str]:
    headers = {} if cursor is None else queries.next_page(request, limit, cursor)
    return headers | {CUT: "true"} if is_cut else headers
