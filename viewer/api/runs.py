"""The lists of all runs and of all sessions, newest first, page by page (SPEC D14)."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from harness.ids import check_id
from ledger.lists import RunLine, SessionLine
from ledger.words.format import instant
from viewer.access.routes import GuardedRoute, Right
from viewer.access.sessions import ONE_SESSION
from viewer.api import shapes
from viewer.api.bodies import camel, instant_or_null, summary_body
from viewer.http import queries, wrapper
from viewer.http.filters import FILTERS, SESSION_PREFIX, run_filter
from viewer.openapi.describing import RUN_CURSOR, Described, Parameter, paging
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
        prefix = queries.single(request, "sessionPrefix") or None
        if prefix is not None:
            check_id("sessionPrefix", prefix)
        page = await self.reader.sessions(limit=limit, cursor=queries.cursor_in_query(request), prefix=prefix)
        headers = _headers(request, limit, page.next_cursor, is_cut=page.is_cut)
        return wrapper.ok([session_line_body(session) for session in page.rows], headers=headers)


def line_body(run: RunLine) -> shapes.RunLine:
    """A line of the list of all runs."""
    return {
        **summary_body(run),
        "agent": run.agent,
        "agentVersion": run.agent_version,
        "actor": run.actor,
        "environment": run.environment,
        "labels": dict(run.labels),
        "outcomeReason": run.outcome_reason,
        "degraded": run.degraded,
        "inputTokens": run.input_tokens,
        "outputTokens": run.output_tokens,
        "usageUnknownCount": run.usage_unknown_count,
        "costMicros": run.cost_micros,
        "currency": run.currency,
        "costUnknownCount": run.cost_unknown_count,
        "timeoutUs": run.timeout_us,
        "endedAt": instant_or_null(run.ended_us),
        "elapsedUs": run.elapsed_us,
        "useful": run.useful,
        "incidents": camel(run.incidents),
        "eventCount": run.event_count,
        "checkpointed": run.is_checkpointed,
    }


def session_line_body(session: SessionLine) -> shapes.SessionLine:
    """A line of the list of all sessions."""
    return {
        "sessionId": session.session_id,
        "status": session.status,
        "messagePairCount": session.message_pair_count,
        "runCount": session.run_count,
        "createdAt": instant(session.created_us),
        "lastActiveAt": instant(session.last_active_us),
        "expiresAt": instant_or_null(session.expires_us),
        "newestRun": None if session.newest_run is None else line_body(session.newest_run),
    }


def _list_of(row: Any, *more: Parameter) -> Described:
    paged = paging(queries.RUNS, RUN_CURSOR)
    return Described(answer=list[row], query=(*paged, *more), pages=True, headers=(CUT,))


def _headers(request: Request, limit: int, cursor: str | None, *, is_cut: bool) -> dict[str, str]:
    headers = {} if cursor is None else queries.next_page(request, limit, cursor)
    return headers | {CUT: "true"} if is_cut else headers
