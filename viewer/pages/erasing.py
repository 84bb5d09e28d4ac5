"""Erasing by forms, without JavaScript: a run's contents from its page, and confirming it from the audit page."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness.ids import check_code, check_id
from viewer.access.principal import owner_in
from viewer.access.routes import GuardedRoute, Right
from viewer.erasing.carrying_out import Erasures
from viewer.erasing.known import What
from viewer.http import queries
from viewer.http.form import read_confirmed
from viewer.pages.forms import SEE_OTHER
from viewer.site import Site


class ErasingForms:
    """The forms, beside the endpoints for programs that do the same."""

    def __init__(self, erasures: Erasures, site: Site) -> None:
        self._erasures = erasures
        self._site = site

    @property
    def routes(self) -> list[GuardedRoute]:
        erase = Right.ERASE
        return [
            GuardedRoute("/trace/erase", self.ask, needs=erase, within_sessions=True, methods=["POST"]),
            GuardedRoute(
                "/audit/erasures/{requestId}", self.confirm, needs=erase, lists_sessions=True, methods=["POST"]
            ),
        ]

    async def ask(self, request: Request) -> Response:
        """Erase the run's contents, or ask another person to confirm it; the run's page says which."""
        session_id, run_id = queries.run_in_query(request)
        reason = check_code("reason", (await read_confirmed(request)).get("reason"))
        await self._erasures.ask(What("RUN", reason, session_id, run_id), owner_in(request.scope))
        return RedirectResponse(f"{self._site.run(session_id, run_id)}#erasing", SEE_OTHER)

    async def confirm(self, request: Request) -> Response:
        """Erase what another person asked for."""
        request_id = check_id("requestId", request.path_params["requestId"])
        await read_confirmed(request)
        await self._erasures.confirm(request_id, owner_in(request.scope), queries.session_prefix(request))
        return RedirectResponse(f"{self._site.audit(list='erasures')}#decided", SEE_OTHER)
