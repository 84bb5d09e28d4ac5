"""The audit pages, as HTML and as JSON: what vouches for the ledger and for one run, and the files to carry away."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from harness.clock import SystemWallClock
from harness.errors import InvalidInput
from harness.events.base import Id
from ledger.audit.signing.receipts import Receipt, receipt_now
from viewer.access.errors import Forbidden
from viewer.access.principal import may, owner_in
from viewer.access.routes import GuardedRoute, Right
from viewer.api.auditing import audit_body, events_body, receipt_body, verification_body
from viewer.audit.bundles import Bundles, file_name
from viewer.audit.history import KINDS, Kind, SystemHistory
from viewer.audit.source import LedgerAddress
from viewer.audit.verification import Verification
from viewer.erasing.carrying_out import Erasures
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Parameter, Position
from viewer.present.audit.lists import listed
from viewer.present.audit.page import audit_page, run_page, verification_page
from viewer.present.erasing import waiting
from viewer.reading import Reader
from viewer.rendering import Renderer

EVENTS_PER_PAGE = 200
NO_STORE = {"Cache-Control": "no-store"}
CONTENT_CHOICES = ("included", "withheld")
VERIFYING_RELOAD_S = 2
"""How often a page on a verification that is under way is read again."""

ANY = Described(answer=dict[str, Any])
EVENTS = Described(
    answer=list[dict[str, Any]],
    query=(Parameter("after", Position, "The number of the event that the page begins behind."),),
    pages=True,
)
RUN = Described(
    answer=dict[str, Any],
    query=tuple(Parameter(name, Id, "", required=True) for name in ("sessionId", "runId")),
)


class AuditPages:
    """HTML, JSON and files."""

    def __init__(
        self,
        reader: Reader,
        renderer: Renderer,
        address: LedgerAddress | None,
        erasures: Erasures,
        history: SystemHistory,
    ) -> None:
        self.reader = reader
        self.renderer = renderer
        self.clock = SystemWallClock()
        self.history, self.erasures = history, erasures
        self.verification = Verification(address, self.clock)
        self.bundles = Bundles(address)

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser and a program are served; `HEAD` comes with `GET`."""
        audit = Right.AUDIT
        return [
            GuardedRoute("/audit", self.page, needs=audit),
            GuardedRoute("/api/audit", self.json, needs=audit, described=ANY),
            GuardedRoute("/api/audit/events", self.events, needs=audit, described=EVENTS),
            GuardedRoute("/audit/verification", self.verification_page, needs=audit),
            GuardedRoute("/audit/verification", self.verify, needs=audit, methods=["POST"]),
            GuardedRoute("/api/audit/verification", self.verification_json, needs=audit, described=ANY),
            GuardedRoute("/audit/runs", self.run, needs=audit, within_sessions=True),
            GuardedRoute("/api/audit/runs", self.run_json, needs=audit, within_sessions=True, described=RUN),
            GuardedRoute("/audit/receipt", self.receipt_file, needs=audit, within_sessions=True),
            GuardedRoute("/audit/bundle", self.bundle, needs=audit, shows_content=True, within_sessions=True),
            GuardedRoute("/audit/open", self.open_bundle, needs=Right.READ),
        ]

    async def page(self, request: Request) -> Response:
        """The newest checkpoint, what has come since, and what was decided."""
        kind = _kind(request)
        known = await self.history.read_on()
        now_us = self.clock.now_us()
        checkpoint, last_leaf = await self.reader.newest_checkpoint(), await self.reader.last_leaf()
        page = audit_page(await self.reader.ledger_id(), checkpoint, last_leaf + 1, now_us)
        lists = listed(known, kind, queries.position(request, "skip") or 0, self.renderer.site)
        context = {
            "page": page,
            "lists": lists,
            "verification": self.verification,
            "waiting": waiting(await self.erasures.known(), owner_in(request.scope)),
            "can_confirm": self._can_confirm(request),
        }
        return self.renderer.page(request, "audit/audit.html", context)

    def _can_confirm(self, request: Request) -> bool:
        """Whether whoever looks could be the second person: somebody with a name and the right."""
        is_named = owner_in(request.scope) is not None
        return self.erasures.is_possible and is_named and may(request.scope, Right.ERASE)

    async def json(self, request: Request) -> Response:
        """The same as JSON."""
        known = await self.history.read_on()
        checkpoint, last_leaf = await self.reader.newest_checkpoint(), await self.reader.last_leaf()
        body = audit_body(await self.reader.ledger_id(), checkpoint, last_leaf + 1, known)
        return wrapper.ok(body, headers=NO_STORE)

    async def events(self, request: Request) -> Response:
        """The ledger's own events after a position, in order."""
        found = await self.reader.system_events(queries.position(request, "after") or 0, EVENTS_PER_PAGE)
        headers = dict(NO_STORE)
        if len(found) == EVENTS_PER_PAGE:
            headers["Link"] = f'<{request.url.path}?after={found[-1].seq}>; rel="next"'
        return wrapper.ok(events_body(found), headers=headers)

    async def verification_page(self, request: Request) -> Response:
        """How far a verification is, and what the last one came to."""
        page = verification_page(self.verification.under_way, self.verification.last)
        context = {"page": page, "is_possible": self.verification.is_possible}
        response = self.renderer.page(request, "audit/verification.html", context)
        if self.verification.under_way is not None:
            response.headers["Refresh"] = str(VERIFYING_RELOAD_S)
        return response

    async def verify(self, request: Request) -> Response:
        """Begin a verification, unless one is under way."""
        self.verification.start()
        return RedirectResponse(self.renderer.site.verification(), 303)

    async def verification_json(self, request: Request) -> Response:
        """The same as JSON."""
        return wrapper.ok(verification_body(self.verification.under_way, self.verification.last), headers=NO_STORE)

    async def run(self, request: Request) -> Response:
        """What proves that the log holds one run."""
        keys = _keys(request)
        receipt = await self._receipt(request)
        page = run_page(*keys, receipt, self.renderer.site)
        context = {"page": page, "is_bundled": self.bundles.is_possible}
        return self.renderer.page(request, "audit/run.html", context)

    async def run_json(self, request: Request) -> Response:
        """The same as JSON."""
        return wrapper.ok(receipt_body(*_keys(request), await self._receipt(request)), headers=NO_STORE)

    async def receipt_file(self, request: Request) -> Response:
        """The receipt as a file."""
        receipt = await self._receipt(request)
        if receipt is None:
            return wrapper.error("no_checkpoint", "no checkpoint covers any event of this run", 409)
        return Response(receipt.text(), headers=_download(file_name(receipt.run_id, "tlog-proof"), "text/plain"))

    async def bundle(self, request: Request) -> Response:
        """The run as one file, with its contents for whoever may read them, or without."""
        session_id, run_id = _keys(request)
        content = queries.single(request, "content") or CONTENT_CHOICES[0]
        if content not in CONTENT_CHOICES:
            raise InvalidInput("content", f"must be one of {', '.join(CONTENT_CHOICES)}")
        if content == "included" and not may(request.scope, Right.READ):
            raise Forbidden(Right.READ)
        await self.reader.status(session_id, run_id)
        headers = _download(file_name(run_id, "bundle"), "application/zip")
        if request.method == "HEAD":
            return Response(headers=headers)
        made = await self.bundles.make(session_id, run_id, with_content=content == "included")
        headers["Content-Length"] = str(made.size_bytes)
        return StreamingResponse(made.pieces(), headers=headers)

    async def open_bundle(self, request: Request) -> Response:
        """A page on which a browser looks at a bundle by itself; it shows nothing of this ledger."""
        return self.renderer.page(request, "audit/open.html", {})

    async def _receipt(self, request: Request) -> Receipt | None:
        return await receipt_now(self.reader, *_keys(request))


def _keys(request: Request) -> tuple[str, str]:
    return queries.id_in_query(request, "sessionId"), queries.id_in_query(request, "runId")


def _kind(request: Request) -> Kind:
    value = queries.single(request, "list")
    found = next((kind for kind in KINDS if kind == value), None)
    if value is not None and found is None:
        raise InvalidInput("list", f"must be one of {', '.join(KINDS)}")
    return found or "keys"


def _download(name: str, media_type: str) -> dict[str, Any]:
    return {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Type": media_type,
        **NO_STORE,
    }
