"""The client of a real server closes its socket, and the run is told to stop (SPEC H3, CASES 17)."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from harness import Harness, RunContext, RunEnded
from harness.adapters.asgi import stop_on_disconnect
from tests.harness.fakes import HandJournal, left_with, limits, only, say, types, until

REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


@contextlib.asynccontextmanager
async def served(app: Any) -> AsyncIterator[int]:
    """The port of a real server."""
    config = uvicorn.Config(app, port=0, lifespan="off", ws="none", log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


@contextlib.asynccontextmanager
async def client_of(port: int) -> AsyncIterator[asyncio.StreamReader]:
    """A socket on which a request was sent; leaving the block closes it at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    await writer.drain()
    try:
        yield reader
    finally:
        writer.transport.abort()


def app_that(handle: Callable[[Request], Awaitable[Response]]) -> Starlette:
    return Starlette(routes=[Route("/", handle, methods=["POST"])])


async def hang(run: RunContext) -> None:
    await asyncio.Event().wait()


async def test_a_client_that_goes_while_a_tool_waits_ends_the_run(harness: Harness, journal: HandJournal):  # CASES 17
    async def handle(request: Request) -> Response:
        await request.body()
        async with (
            harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
            stop_on_disconnect(run, request.receive),
        ):
            await harness.tool(run, "hang", hang)
        return PlainTextResponse("never")

    async with served(app_that(answering(handle))) as port:
        async with client_of(port):
            await until(lambda: "attempt.started" in types(journal.events("r")))
        await until(lambda: types(journal.events("r"))[-1] == "run.terminated")
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    assert (journal.state("r").outcome, journal.state("r").reason) == ("CANCELLED", "CLIENT_DISCONNECTED")


def answering(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The handler, whose ended run becomes an answer that nobody hears."""

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
        except RunEnded as ended:
            return PlainTextResponse(ended.code, status_code=500)

    return answer


async def test_the_late_result_of_a_thread_is_recorded_as_late_and_changes_nothing(
    harness: Harness, journal: HandJournal
):  # CASES 17
    started, go_on = threading.Event(), threading.Event()

    def work(run: RunContext) -> str:
        started.set()
        go_on.wait(timeout=30)
        return "late"

    async def handle(request: Request) -> Response:
        await request.body()
        async with (
            harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
            stop_on_disconnect(run, request.receive),
        ):
            await harness.tool(run, "work", work)
        return PlainTextResponse("never")

    async with served(app_that(answering(handle))) as port:
        async with client_of(port):
            await until(started.is_set)
        await until(lambda: types(journal.events("r"))[-1] == "run.terminated")
        go_on.set()
        await until(lambda: types(journal.events("r"))[-1] == "attempt.finished_late")
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_AWAITED"
    assert journal.state("r").reason == "CLIENT_DISCONNECTED"


async def test_a_client_that_goes_in_mid_stream_ends_the_stream_and_the_run(harness: Harness, journal: HandJournal):
    async def count(run: RunContext) -> AsyncIterator[str]:
        yield "1 "
        await asyncio.Event().wait()

    async def handle(request: Request) -> Response:
        await request.body()

        async def body() -> AsyncIterator[str]:
            async with (
                harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
                stop_on_disconnect(run, request.receive),
                harness.stream(run, "count", count) as chunks,
            ):
                async for chunk in chunks:
                    yield chunk

        return StreamingResponse(body())

    async with served(app_that(handle)) as port:
        async with client_of(port) as reader:
            assert b"1 " in await reader.readuntil(b"1 ")
        await until(lambda: types(journal.events("r"))[-1] == "run.terminated")
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    assert journal.state("r").outcome == "CANCELLED"


async def test_a_client_that_stays_gets_its_answer_and_the_run_is_a_success(harness: Harness, journal: HandJournal):
    async def handle(request: Request) -> Response:
        await request.body()
        async with (
            harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
            stop_on_disconnect(run, request.receive),
        ):
            await harness.tool(run, "say", say)
        return PlainTextResponse("done")

    async with served(app_that(handle)) as port, client_of(port) as reader:
        assert await reader.readuntil(b"done")
    assert journal.state("r").outcome == "SUCCESS"


async def test_messages_that_are_no_disconnect_are_passed_over_and_a_websockets_is_one(
    harness: Harness, journal: HandJournal
):
    messages = iter([{"type": "http.request"}, {"type": "websocket.receive"}, {"type": "websocket.disconnect"}])

    async def receive() -> dict[str, Any]:
        return next(messages)

    with left_with(RunEnded, match="CLIENT_DISCONNECTED"):
        async with (
            harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
            stop_on_disconnect(run, receive),
        ):
            await harness.tool(run, "hang", hang)


async def test_a_server_that_cannot_tell_harms_no_run(
    harness: Harness, journal: HandJournal, caplog: pytest.LogCaptureFixture
):
    async def receive() -> dict[str, Any]:
        raise ConnectionError("secret-17")

    async with (
        harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
        stop_on_disconnect(run, receive),
    ):
        await until(lambda: "ConnectionError" in caplog.text)
        await harness.tool(run, "say", say)
    assert journal.state("r").outcome == "SUCCESS"
    assert "secret-17" not in caplog.text
