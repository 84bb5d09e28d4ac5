"""Server-sent events: what a job emits, in order, and its error at the end (SPEC R7)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from demo.bounds import SSE_MESSAGES_WAITING_MAX
from demo.jobs import Job
from harness import CancelReason
from viewer.errors import problem_of

Message = dict[str, Any]

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream:
    """Messages on their way from a job to one reader; a slow reader holds the job back."""

    def __init__(self) -> None:
        self._unread: asyncio.Queue[Message] = asyncio.Queue(SSE_MESSAGES_WAITING_MAX)

    async def emit(self, message: Message) -> None:
        """Send a message; waits while too many are unread."""
        await self._unread.put(message)

    async def next(self, job: Job[None]) -> Message | None:
        """The next message, or None once the job has ended and every message was read."""
        message = asyncio.create_task(self._unread.get())
        await asyncio.wait({message, job.task}, return_when=asyncio.FIRST_COMPLETED)
        if message.done():
            return message.result()
        message.cancel()
        return None if self._unread.empty() else self._unread.get_nowait()


async def events(stream: EventStream, job: Job[None], first: Message) -> AsyncIterator[bytes]:
    """Each message as an event; after the last, the job's error if it failed."""
    message: Message | None = first
    while message is not None:
        yield _event(message)
        message = await stream.next(job)
    error = RuntimeError("stopped") if job.task.cancelled() else job.task.exception()
    if error is not None:
        problem = problem_of(error if isinstance(error, Exception) else RuntimeError("stopped"))
        yield _event({"type": "error", "data": problem.message, "code": problem.code, **(problem.data or {})})


class EventStreamResponse(StreamingResponse):
    """The stream of one job, which is stopped when its reader leaves."""

    def __init__(self, stream: EventStream, job: Job[None], first: Message) -> None:
        super().__init__(events(stream, job, first), headers=HEADERS, media_type="text/event-stream")
        self._job = job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._job.stop(CancelReason.CLIENT_DISCONNECTED)


def _event(message: Message) -> bytes:
    return b"event: message\ndata: " + orjson.dumps(message) + b"\n\n"
