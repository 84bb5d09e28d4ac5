"""The parts of one run, page by page: its steps, its tool invocations and its events (SPEC D14, CASES 40).

Events are given as one stream, too: the whole run, read while it is sent, in memory for one page. The last line of the
stream says how many there were, so that a stream that was cut is not taken for the run.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from harness.errors import InvalidInput
from ledger.records import AgentStep, RecordedEvent, RunTrace, ToolInvocation
from viewer.access.routes import GuardedRoute, Right
from viewer.api import shapes
from viewer.api.bodies import event_body, step_body, tool_body
from viewer.api.etag import event_etag, matches, not_modified, run_etag, tagged
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Failure, Parameter, paging
from viewer.http.sending import PartByPart
from viewer.reading import Reader
from viewer.reading.run import EVENTS_PER_READ

NDJSON = "application/x-ndjson"
LINES = "As lines: every event after `cursor`, and then `end` with their number."
FORMATS = ("json", "ndjson")
FORMAT = Parameter("format", Literal[FORMATS], "A page, or all events as lines; else what `Accept` says.")
NO_EVENT = Failure(404, "event_not_found", "The run has no such event.")

Row = TypeVar("Row", AgentStep, ToolInvocation, RecordedEvent)
Keys = tuple[str, str]


Read = Callable[[str, str, int, int], Awaitable[Sequence[Row]]]
"""Reads so many rows of a run after a number."""


class Parts:
    """JSON endpoints over one reader."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @property
    def routes(self) -> list[GuardedRoute]:
        run = "/api/diagnosis/{sessionId}/runs/{runId}"
        return [
            GuardedRoute(
                f"{run}/steps",
                self.steps,
                needs=Right.READ,
                shows_content=True,
                described=_list_of(shapes.AgentStep, queries.ROWS),
            ),
            GuardedRoute(
                f"{run}/tools",
                self.tools,
                needs=Right.READ,
                shows_content=True,
                described=_list_of(shapes.ToolInvocation, queries.ROWS),
            ),
            GuardedRoute(
                f"{run}/events",
                self.events,
                needs=Right.READ,
                goes_on=True,
                described=_list_of(shapes.Event, queries.EVENTS, FORMAT, other_forms={NDJSON: LINES}),
            ),
            GuardedRoute(
                f"{run}/events/{{seq}}",
                self.event,
                needs=Right.READ,
                described=Described(answer=shapes.Event, has_tag=True, failures=(NO_EVENT,)),
            ),
        ]

    async def steps(self, request: Request) -> Response:
        """Model steps of one run, in the order in which they started."""
        return await self._page(request, self.reader.steps, step_body, lambda step: step.step_no, queries.ROWS)

    async def tools(self, request: Request) -> Response:
        """Tool invocations of one run, in the order in which they started."""
        return await self._page(request, self.reader.tools, tool_body, lambda tool: tool.invocation_no, queries.ROWS)

    async def events(self, request: Request) -> Response:
        """Events of one run in their order, a page as JSON, or all of them after `cursor` as a stream of lines."""
        if not _wants_lines(request):
            return await self._page(request, self.reader.events, event_body, lambda event: event.seq, queries.EVENTS)
        keys, after, _ = _keys(request), queries.number_cursor(request), queries.limit_in_query(request, queries.EVENTS)
        run = await self.reader.overview(*keys)
        tag = run_etag(run, NDJSON)
        if matches(request.headers.getlist("if-none-match"), tag):
            return _varying(not_modified(tag))
        return _varying(PartByPart(self._lines(keys, after, run), NDJSON, tagged(tag)))

    async def event(self, request: Request) -> Response:
        """One event of one run."""
        keys, seq = _keys(request), queries.position_in_path(request, "seq")
        found = await self.reader.events(*keys, max(seq - 1, 0), 1)
        if not found or found[0].seq != seq:
            return wrapper.error(NO_EVENT.code, "this run has no such event", NO_EVENT.status)
        tag = event_etag(found[0])
        if matches(request.headers.getlist("if-none-match"), tag):
            return not_modified(tag)
        return wrapper.ok(event_body(found[0]), headers=tagged(tag))

    async def _page(
        self,
        request: Request,
        read: Read[Row],
        body: Callable[[Row], Mapping[str, Any]],
        number: Callable[[Row], int],
        size: queries.PageSize,
    ) -> Response:
        """A page of the rows; what the run appended since its tag was made belongs to the next reading."""
        keys, after = _keys(request), queries.number_cursor(request)
        limit = queries.limit_in_query(request, size)
        tag = run_etag(await self.reader.overview(*keys))
        if matches(request.headers.getlist("if-none-match"), tag):
            return _varying(not_modified(tag))
        rows = await read(*keys, after, limit + 1)
        more = queries.next_page(request, limit, number(rows[limit - 1])) if len(rows) > limit else {}
        return _varying(wrapper.ok([body(row) for row in rows[:limit]], headers={**tagged(tag), **more}))

    async def _lines(self, keys: Keys, after: int, run: RunTrace) -> AsyncGenerator[bytes, None]:
        """The events after a position, up to the head that the run had at the beginning, and then how many."""
        head, count = run.run.event_count, 0
        while after < head and (page := await self.reader.events(*keys, after, min(EVENTS_PER_READ, head - after))):
            yield b"".join(_line(event_body(event)) for event in page)
            after, count = page[-1].seq, count + len(page)
        end = {"eventCount": count, "headSeq": head, "headLink": run.run.head_link}
        yield _line({"end": {"sessionId": keys[0], "runId": keys[1], **end}})


def _list_of(row: Any, size: queries.PageSize, *more: Parameter, **settings: Any) -> Described:
    return Described(answer=list[row], query=(*paging(size), *more), has_tag=True, pages=True, **settings)


def _keys(request: Request) -> Keys:
    return queries.session_in_path(request), queries.run_in_path(request)


def _wants_lines(request: Request) -> bool:
    """Whether the stream is asked for: by `format`, or where that is not given, by the one media type accepted."""
    wanted = queries.single(request, "format")
    if wanted is None:
        accepted = request.headers.get("accept", "").lower().split(",")
        return any(kind.partition(";")[0].strip() == NDJSON for kind in accepted)
    if wanted not in FORMATS:
        raise InvalidInput("format", "must be json or ndjson")
    return wanted == "ndjson"


def _varying(response: Response) -> Response:
    response.headers["Vary"] = "Accept"
    return response


def _line(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
