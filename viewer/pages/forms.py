"""What people do on a page of a run, without JavaScript: judge it, and ask it to stop. Each leads back to the run."""

import contextlib

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness.errors import AlreadyTerminated, InvalidInput
from viewer.access.routes import GuardedRoute, Right
from viewer.api.writing import Writing
from viewer.http import queries
from viewer.http.form import read_confirmed, read_form
from viewer.site import Site

SEE_OTHER = 303
"""So that a page that is loaded again sends nothing again."""
_USEFUL = {"yes": True, "no": False}


class RunForms:
    """The forms of the trace page, beside the endpoints for programs that do the same."""

    def __init__(self, writing: Writing, site: Site) -> None:
        self._writing = writing
        self._site = site

    @property
    def routes(self) -> list[GuardedRoute]:
        return [
            GuardedRoute(
                "/trace/feedback", self.feedback, needs=Right.ANNOTATE, within_sessions=True, methods=["POST"]
            ),
            GuardedRoute("/trace/stop", self.stop, needs=Right.CANCEL, within_sessions=True, methods=["POST"]),
        ]

    async def feedback(self, request: Request) -> Response:
        """Bind what the form says to exactly that run."""
        keys = queries.run_in_query(request)
        fields = await read_form(request)
        useful = _USEFUL.get(fields.get("useful", ""))
        if useful is None:
            raise InvalidInput("useful", "must be yes or no")
        comment = fields.get("comment", "").replace("\r\n", "\n").strip() or None
        await self._writing.judge(request, *keys, useful=useful, comment=comment)
        return self._back(*keys, "feedback")

    async def stop(self, request: Request) -> Response:
        """Ask the run to stop; whether it has ended meanwhile is on the page that this leads back to."""
        keys = queries.run_in_query(request)
        await read_confirmed(request)
        with contextlib.suppress(AlreadyTerminated):
            await self._writing.stop(request, *keys)
        return self._back(*keys, "question")

    def _back(self, session_id: str, run_id: str, anchor: str) -> Response:
        return RedirectResponse(f"{self._site.run(session_id, run_id)}#{anchor}", SEE_OTHER)
