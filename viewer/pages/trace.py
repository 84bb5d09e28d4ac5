"""The page of one run."""

import re

from starlette.requests import Request
from starlette.responses import Response

from harness.errors import InvalidInput
from viewer.access.routes import GuardedRoute, Right
from viewer.http import queries
from viewer.http.etag import run_etag
from viewer.present.links import VIEWS, TraceLinks, View
from viewer.present.trace.page import trace_page
from viewer.present.trace.seal import seal
from viewer.proof import Proofs
from viewer.reading import Reader, read_run
from viewer.rendering import Renderer
from viewer.site import Site

_CONTENT_KEY = re.compile(r"answer|(step|tool)-[0-9]{1,9}-(input|output|error)")


class TracePages:
    """HTML of one run."""

    def __init__(self, reader: Reader, renderer: Renderer) -> None:
        self.reader = reader
        self.renderer = renderer
        self.proofs = Proofs(reader)

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser is served; `HEAD` comes with `GET`."""
        return [GuardedRoute("/trace", self.trace, needs=Right.READ, shows_content=True)]

    async def trace(self, request: Request) -> Response:
        """Exactly one run; the whole state of the page is in its address."""
        links = links_of(request, self.renderer.site)
        reading = await read_run(
            self.reader, links.session_id, links.run_id, after_seq=links.after, event_seq=links.event
        )
        run = reading.trace.run
        is_asked = queries.position(request, "verify") == 1
        proof = seal(await self.proofs.of(run, is_asked=is_asked), run, links)
        context = {"page": trace_page(reading, links), "seal": proof, "etag": run_etag(reading.trace)}
        return self.renderer.page(request, "trace.html", context)


def links_of(request: Request, site: Site) -> TraceLinks:
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
        view=_view(request),
        site=site,
    )


def _view(request: Request) -> View | None:
    value = queries.single(request, "view")
    found = next((view for view in VIEWS if view == value), None)
    if value is not None and found is None:
        raise InvalidInput("view", f"must be one of {', '.join(VIEWS)}")
    return found
