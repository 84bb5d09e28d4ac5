"""The audit pages: what vouches for the ledger and for one run, and the files to carry away."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from harness.clock import WallClock
from harness.errors import InvalidInput
from ledger.audit.signing.receipts import receipt_now
from viewer.access.errors import Forbidden
from viewer.access.principal import may, owner_in
from viewer.access.routes import GuardedRoute, Right
from viewer.audit.bundles import Bundles, file_name
from viewer.audit.history import KINDS, Kind, SystemHistory
from viewer.audit.verification import Verification
from viewer.erasing.carrying_out import Erasures
from viewer.http import queries, wrapper
from viewer.present.audit import findings
from viewer.present.audit.lists import listed
from viewer.present.audit.page import audit_page, run_page, verification_page
from viewer.present.erasing import waiting
from viewer.reading import Reader
from viewer.rendering import Renderer

NO_STORE = {"Cache-Control": "no-store"}
CONTENT_CHOICES = ("included", "withheld")
VERIFYING_RELOAD_S = 2
"""How often a page on a verification that is under way is read again."""


class AuditPages:
    """HTML and files."""

    def __init__(
        self,
        reader: Reader,
        renderer: Renderer,
        clock: WallClock,
        history: SystemHistory,
        verification: Verification,
        erasures: Erasures,
        bundles: Bundles,
    ) -> None:
        self.reader = reader
        self.renderer = renderer
        self.clock = clock
        self.history = history
        self.verification = verification
        self.erasures = erasures
        self.bundles = bundles

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser is served; `HEAD` comes with `GET`."""
        audit = Right.AUDIT
        return [
            GuardedRoute("/audit", self.page, needs=audit),
            GuardedRoute("/audit/verification", self.verification_page, needs=audit),
            GuardedRoute("/audit/verification", self.verify, needs=audit, methods=["POST"]),
            GuardedRoute("/audit/runs", self.run, needs=audit, within_sessions=True),
            GuardedRoute("/audit/receipt", self.receipt_file, needs=audit, within_sessions=True),
            GuardedRoute("/audit/bundle", self.bundle, needs=audit, shows_content=True, within_sessions=True),
            GuardedRoute("/audit/open", self.open_bundle, needs=None),
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

    async def run(self, request: Request) -> Response:
        """What proves that the log holds one run."""
        keys = queries.run_in_query(request)
        page = run_page(*keys, await receipt_now(self.reader, *keys), self.renderer.site)
        context = {"page": page, "is_bundled": self.bundles.is_possible}
        return self.renderer.page(request, "audit/run.html", context)

    async def receipt_file(self, request: Request) -> Response:
        """The receipt as a file."""
        receipt = await receipt_now(self.reader, *queries.run_in_query(request))
        if receipt is None:
            return wrapper.error("no_checkpoint", "no checkpoint covers any event of this run", 409)
        return Response(receipt.text(), headers=_download(file_name(receipt.run_id, "tlog-proof"), "text/plain"))

    async def bundle(self, request: Request) -> Response:
        """The run as one file, with its contents for whoever may read them, or without."""
        session_id, run_id = queries.run_in_query(request)
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
        return self.renderer.page(request, "audit/open.html", {"findings": findings.for_scripts()})


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
