"""A running run, told event by event over server-sent events; `id` is the place in the public order (CASES 48).

A client that lost the connection goes on after its `Last-Event-ID`, without a gap or a duplicate. Nothing is queued for
it: a client that does not read is dropped, and finds its place again when it comes back.

A page is drawn anew when it is told of something. So that open pages cost no more than so much, however many there are
and however much happens, a stream that has told something rests, and all of them take turns; what comes meanwhile is
told together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal

import orjson
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from harness.errors import InvalidInput
from ledger.errors import AheadOfLog, LedgerError
from ledger.following.following import PAGE_EVENTS, RECENT_EVENTS
from ledger.records import RecordedEvent
from viewer.access.routes import GuardedRoute, Right
from viewer.api.turns import Turns
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Failure, Parameter, Position
from viewer.http.sending import left, say
from viewer.reading import Follower, Reader

log = logging.getLogger(__name__)

HEARTBEAT_S = 15.0
"""How often a silent stream says that it is there."""
ENDED_WAIT_S = 1.0
"""How long after a run's end its last events may take to get their places."""
REST_S = 0.25
"""A stream that has told something tells no more for so long."""
TELLINGS_PER_S_MAX = 20
"""All streams together tell something so often, at most; who has much to catch up with is not counted."""
STREAMS_MAX = 200
"""Streams open at once; whoever comes later asks again."""
RUNNING = "RUNNING"
EVENT_STREAM = "text/event-stream"
FROM = Parameter("from", Literal["now"], "Only what comes; else everything from the beginning.")
LAST_EVENT_ID = Parameter("Last-Event-ID", Position, "Goes on after this place of the public order.", place="header")
AHEAD = Failure(409, AheadOfLog.code, "The log ends before that place: it was restored to less, or is another.")
TOO_MANY = Failure(503, "too_many_streams", "Too many live streams are open; come again.")
LAST = "run.terminated"
FOLLOWING = b": following\n\n"
STILL_THERE = b": still there\n\n"
END = b"event: end\ndata: {}\n\n"

Told = Sequence[tuple[int, RecordedEvent]]


class Live:
    """The live endpoint over one reader."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.turns = Turns(TELLINGS_PER_S_MAX)
        self._open = 0

    @property
    def routes(self) -> list[GuardedRoute]:
        return [
            GuardedRoute(
                "/api/diagnosis/{sessionId}/runs/{runId}/live",
                self.live,
                needs=Right.READ,
                goes_on=True,
                methods=["GET"],
                described=Described(
                    query=(FROM, LAST_EVENT_ID),
                    other_forms={EVENT_STREAM: "Each event's `seq` and `type` as it happens; `end` when the run has."},
                    empty={204: "Nothing will come."},
                    failures=(AHEAD, TOO_MANY),
                ),
            )
        ]

    async def live(self, request: Request) -> Response:
        """The run's events, after `Last-Event-ID` or with `?from=now` those to come; 204 where none will."""
        keys = queries.session_in_path(request), queries.run_in_path(request)
        after = _last_event_id(request.headers)
        if after is None and queries.single(request, "from") == "now":
            after = await self.reader.last_leaf()
        until = await self._until(keys)
        if self._open >= STREAMS_MAX:
            headers = {"Retry-After": "5"}
            return wrapper.error(TOO_MANY.code, "too many live streams are open", TOO_MANY.status, headers=headers)
        follower = self.reader.follow(after, run=keys)
        first: Told = ()
        if until is not None:
            try:
                first = await asyncio.wait_for(follower.page(), ENDED_WAIT_S)
            except TimeoutError:
                return Response(status_code=204)
        stopping = getattr(request.state, "stopping", None) or asyncio.Event()
        return _Stream(self, follower, first, until, stopping)

    async def _until(self, keys: tuple[str, str]) -> int | None:
        """The last event of a run that has ended; what came after its end is told, too. None while it is running."""
        if await self.reader.status(*keys) == RUNNING:
            return None
        return (await self.reader.overview(*keys)).run.event_count

    @contextmanager
    def entered(self) -> Iterator[None]:
        """A stream is open meanwhile."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


class _Stream(Response):
    """Sends until the run has ended, the client has gone or does not read, or the server stops."""

    def __init__(self, live: Live, follower: Follower, first: Told, until: int | None, stopping: asyncio.Event) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(None, headers=headers, media_type=EVENT_STREAM)
        del self.headers["content-length"]
        self._live = live
        self._follower = follower
        self._first = first
        self._until = until
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        telling = asyncio.create_task(self._tell(send))
        gone = asyncio.create_task(left(receive))
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            with self._live.entered():
                await asyncio.wait((telling, gone, stopped), return_when=asyncio.FIRST_COMPLETED)
                if telling.done():
                    await telling
                elif not gone.done():
                    # Without the run's end the client asks again, of whoever serves next.
                    telling.cancel()
                    await asyncio.wait((telling,))
                    await say(send, b"", more=False)
        except TimeoutError:
            log.info("a live stream was dropped, as its client did not read it")
        except LedgerError as error:
            log.warning("a live stream was cut: %s", error.code)
        finally:
            for task in (telling, gone, stopped):
                task.cancel()

    async def _tell(self, send: Send) -> None:
        """Tell what comes, until the run has ended."""
        await say(send, FOLLOWING)
        page = self._first or await self._coming(send)
        while True:
            # Whoever is far behind comes nearer first.
            is_near = len(page) < PAGE_EVENTS
            if is_near:
                await self._live.turns.take()
                page = [*page, *self._follower.at_hand()]
            await say(send, b"".join(_message(place, event.seq, event.type) for place, event in page))
            if self._has_ended(page):
                break
            if is_near:
                await asyncio.sleep(REST_S)
            page = await self._coming(send)
        await say(send, END, more=False)

    async def _coming(self, send: Send) -> Told:
        """What comes next; the client is told meanwhile that somebody is there."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    return await self._follower.page()
            except TimeoutError:
                await say(send, STILL_THERE)

    def _has_ended(self, page: Told) -> bool:
        if self._until is None:
            return any(event.type == LAST for _, event in page)
        return any(event.seq >= self._until for _, event in page)


@lru_cache(RECENT_EVENTS)
def _message(place: int, seq: int, of_type: str) -> bytes:
    """Made once for all pages that are told of it."""
    return b"id: %d\ndata: %b\n\n" % (place, orjson.dumps({"seq": seq, "type": of_type}))


def _last_event_id(headers: Headers) -> int | None:
    value = headers.get("last-event-id")
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 16):
        raise InvalidInput("Last-Event-ID", "must be an id that an earlier event had")
    return int(value)
