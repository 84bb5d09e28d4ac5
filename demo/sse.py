"""Server-sent events: what a job emits, in order, and its error at the end (SPEC R7)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from demo.bounds import SSE_MESSAGES_WAITING_MAX
from demo.errors import DemoError
from demo.jobs import Job
from harness import CancelReason
from viewer.http.errors import problem_of

Message = dict[str, Any]

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream:
    """Messages on their way from a job to one reader; a slow reader holds the job back."""

    def __init__(self) -> None:
        self._unread: asyncio.Queue[bytes] = asyncio.Queue(SSE_MESSAGES_WAITING_MAX)

    async def emit(self, message: Message) -> None:
        """Send a message; waits while too many are unread. One that cannot be encoded is its sender's own failure."""
        await self._unread.put(_event(message))

    async def next(self, job: Job[None]) -> bytes | None:
        """The next event, or None once the job has ended and every event was read."""
        event = asyncio.create_task(self._unread.get())
        try:
            await asyncio.wait({event, job.task}, return_when=asyncio.FIRST_COMPLETED)
            if event.done():
                return event.result()
        finally:
            event.cancel()
        return None if self._unread.empty() else self._unread.get_nowait()


async def events(stream: EventStream, job: Job[None], first: bytes) -> AsyncIterator[bytes]:
    """Each event; after the last, the job's error if it failed."""
    event: bytes | None = first
    while event is not None:
        yield event
        event = await stream.next(job)
    error = RuntimeError("stopped") if job.task.cancelled() else job.task.exception()
    if error is not None:
        problem = problem_of(error if isinstance(error, Exception) else RuntimeError("stopped"))
        cause = f": {error.__cause__.message}" if isinstance(error.__cause__, DemoError) else ""
        told = {"type": "error", "data": f"{problem.message}{cause}", "code": problem.code}
        yield _event({**told, **(problem.data or {})})


class EventStreamResponse(StreamingResponse):
    """The stream of one job, which is stopped when its reader leaves."""

    def __init__(self, stream: EventStream, job: Job[None], first: bytes) -> None:
        super().__init__(events(stream, job, first), headers=HEADERS, media_type="text/event-stream")
        self._job = job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = CancelReason.CLIENT_DISCONNECTED
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            reason = CancelReason.SHUTDOWN
            raise
        except Exception as error:
            if not isinstance(error, ClientDisconnect | OSError):
                reason = CancelReason.TASK_CANCELLED
            raise
        finally:
            self._job.stop(reason)


def _event(message: Message) -> bytes:
    return b"event: message\ndata: " + orjson.dumps(message) + b"\n\n"
