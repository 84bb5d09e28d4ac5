"""The page of one run."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness.errors import InvalidInput
from ledger.stored_events import CONTENT_NAMES
from viewer.access.principal import may, owner_in
from viewer.access.routes import GuardedRoute, Right
from viewer.api.etag import run_etag
from viewer.api.writing import Writing
from viewer.erasing.carrying_out import Erasures
from viewer.http import queries
from viewer.present.erasing import REASONS, Waiting, of_run, waiting
from viewer.present.links import IDLES, SEEKS, VIEWS, Seek, TraceLinks
from viewer.present.trace.event_list import FAMILIES
from viewer.present.trace.notices import not_found
from viewer.present.trace.page import trace_page
from viewer.present.trace.seal import seal
from viewer.proof import Proofs
from viewer.reading import Reader
from viewer.reading.replays import Replays
from viewer.reading.run import EVENTS_PER_READ, Asked, RunReading, read_run
from viewer.reading.searching import EventFilter
from viewer.reading.seeking import Sought, Wanted, of_same_kind, seek, went_wrong
from viewer.rendering import Renderer
from viewer.site import Site

T = TypeVar("T", bound=str)

_CONTENT_KEY = re.compile(rf"answer|(step|tool)-[0-9]{{1,9}}-(input|output|error)|event-({'|'.join(CONTENT_NAMES)})")
TEXT_CHARS_MAX = 200


class TracePages:
    """HTML of one run."""

    def __init__(
        self, reader: Reader, renderer: Renderer, writing: Writing, erasures: Erasures, *, is_bundled: bool
    ) -> None:
        self.reader = reader
        self.replays = Replays(reader)
        self.renderer = renderer
        self.writing = writing
        self.erasures = erasures
        self.is_bundled = is_bundled
        self.proofs = Proofs(reader)

    @property
    def routes(self) -> list[GuardedRoute]:
        """What a browser is served; `HEAD` comes with `GET`."""
        return [GuardedRoute("/trace", self.trace, needs=Right.READ, shows_content=True, within_sessions=True)]

    async def trace(self, request: Request) -> Response:
        """Exactly one run; the whole state of the page is in its address."""
        links = links_of(request, self.renderer.site)
        told = ""
        if links.seek is not None:
            sought = await self._seek(links, links.seek)
            if sought.is_found:
                return RedirectResponse(replace(links, seek=None).replaying(sought.seq), 303)
            told = not_found(links.seek, links.at, sought)
            links = replace(links, seek=None, at=links.at if sought.is_all else sought.seq)
        reading = await self._read(links)
        run = reading.whole.run
        is_asked = queries.position(request, "verify") == 1
        proof = seal(await self.proofs.of(reading.whole, reading.events, is_asked=is_asked), run, links)
        context = {
            "page": trace_page(reading, links, told),
            "related": await self.reader.related(links.session_id, links.run_id),
            "seal": proof,
            "etag": run_etag(reading.whole),
            "can_stop": self.writing.takes(request, Right.CANCEL),
            "can_judge": self.writing.takes(request, Right.ANNOTATE),
            "can_audit": may(request.scope, Right.AUDIT),
            "is_bundled": self.is_bundled,
            "can_erase": self._can_erase(request),
            "erasing": await self._erasing(request, links),
            "erasing_reasons": REASONS,
        }
        return self.renderer.page(request, "trace.html", context)

    def _can_erase(self, request: Request) -> bool:
        return self.erasures.is_possible and may(request.scope, Right.ERASE)

    async def _erasing(self, request: Request, links: TraceLinks) -> Sequence[Waiting]:
        """What was asked to be erased of the run, for those whom it concerns."""
        if not self._can_erase(request):
            return ()
        known = of_run(await self.erasures.known(), links.session_id, links.run_id)
        return waiting(known, owner_in(request.scope))

    async def _read(self, links: TraceLinks) -> RunReading:
        asked = Asked(
            session_id=links.session_id,
            run_id=links.run_id,
            after_seq=links.after,
            wanted=EventFilter(links.family, links.failures, links.text),
            event_seq=links.event,
            at_seq=links.at,
            steps_after=links.steps,
            tools_after=links.tools,
            lists_events=links.shown == "events",
        )
        return await read_run(self.reader, self.replays, asked)

    async def _seek(self, links: TraceLinks, what: Seek) -> Sought:
        """Look from the event that is shown, or from the end of the run as it is now."""
        keys, back = (links.session_id, links.run_id), what.endswith("before")
        head_seq = (await self.reader.overview(*keys)).run.event_count
        from_seq = min(max(links.at or head_seq, 1), head_seq)
        is_wanted: Wanted = went_wrong
        if what.startswith("kind"):
            is_wanted = of_same_kind((await self.reader.events(*keys, after_seq=from_seq - 1, limit=1))[0])
        return await seek(self.reader, keys, from_seq, head_seq, is_wanted, back=back)


def links_of(request: Request, site: Site) -> TraceLinks:
    """The state that the address asks for."""
    content = queries.single(request, "content")
    if content is not None and not _CONTENT_KEY.fullmatch(content):
        raise InvalidInput("content", "names no content of a run")
    text = (queries.single(request, "q") or "").strip()
    if len(text) > TEXT_CHARS_MAX:
        raise InvalidInput("q", f"must have at most {TEXT_CHARS_MAX} characters")
    at, after = queries.position(request, "at"), queries.position(request, "after")
    return TraceLinks(
        session_id=queries.id_in_query(request, "sessionId"),
        run_id=queries.id_in_query(request, "runId"),
        after=after if after is not None else _page_before(at),
        at=at,
        seek=_one_of(request, "seek", SEEKS),
        family=_one_of(request, "family", FAMILIES),
        failures=queries.position(request, "failures") == 1,
        text=text,
        event=queries.position(request, "event"),
        steps=queries.position(request, "steps") or 0,
        tools=queries.position(request, "tools") or 0,
        entries=queries.position(request, "entries") or 0,
        content=content,
        offset=queries.position(request, "offset") or 0,
        view=_one_of(request, "view", VIEWS),
        t0=queries.position(request, "t0"),
        t1=queries.position(request, "t1"),
        idle=_one_of(request, "idle", IDLES),
        site=site,
    )


def _page_before(at: int | None) -> int:
    """Where the page of the event list begins that holds an event; from the start without one."""
    return (max(at or 1, 1) - 1) // EVENTS_PER_READ * EVENTS_PER_READ


def _one_of(request: Request, name: str, allowed: tuple[T, ...]) -> T | None:
    value = queries.single(request, name) or None
    found = next((each for each in allowed if each == value), None)
    if value is not None and found is None:
        raise InvalidInput(name, f"must be one of {', '.join(allowed)}")
    return found
