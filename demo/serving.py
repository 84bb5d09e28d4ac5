"""Applications served by uvicorn on loopback, each on a thread of its own: ready when entered, stopped when left.

The port is bound before the server starts, so a free one is really free; the thread ends with its block, whatever ends
the block, and with the process in any case.
"""

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final

import httpx2
import uvicorn
from starlette.types import ASGIApp

from demo.errors import DemoError

HOST: Final = "127.0.0.1"
READY_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 15.0
GRACEFUL_SHUTDOWN_S: Final = 5
KEEP_ALIVE_S: Final = 60
"""Longer than clients keep an idle connection: one that its server closes first may be just about to be used again."""
READY_POLL_S: Final = 0.02

OpenApp = Callable[[], AbstractAsyncContextManager[ASGIApp]]


class NotServing(DemoError):
    """A server did not start, or does not answer."""

    code = "not_serving"


class _Served(threading.Thread):
    """One application in a loop of its own."""

    def __init__(self, name: str, open_app: OpenApp, listener: socket.socket) -> None:
        super().__init__(name=name, daemon=True)
        self.failure: BaseException | None = None
        self._open_app = open_app
        self._listener = listener
        self._server: uvicorn.Server | None = None
        self._stopping = threading.Event()

    @property
    def is_started(self) -> bool:
        return self._server is not None and self._server.started

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 -- handed over to the thread that waits for the server
            self.failure = error

    def stop(self) -> None:
        """Let requests under way end, then close everything."""
        self._stopping.set()
        if self._server is not None:
            self._server.should_exit = True
        if self.is_alive():
            self.join(STOP_TIMEOUT_S)

    async def _serve(self) -> None:
        async with self._open_app() as app:
            config = uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                lifespan="off",
                ws="none",
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
            )
            self._server = uvicorn.Server(config)
            self._server.should_exit = self._stopping.is_set()
            await self._server.serve(sockets=[self._listener])


@contextmanager
def serving(name: str, open_app: OpenApp, *, port: int = 0) -> Iterator[str]:
    """Serve until the block is left; the URL it is served at. `NotServing` if it does not come up."""
    with _listen(port) as listener:
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        thread = _Served(name, open_app, listener)
        try:
            thread.start()
            _wait_until_ready(thread, url)
            yield url
        finally:
            thread.stop()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = "is in use; name another one, or none to get a free one"
        else:
            why = f"cannot be listened on: {os.strerror(error.errno or 0)}"
        raise NotServing(f"port {port} of {HOST} {why}") from error


def _wait_until_ready(thread: _Served, url: str) -> None:
    waited_s = 0.0
    while not thread.is_started:
        if not thread.is_alive():
            raise NotServing(f"{thread.name} did not start: {thread.failure}") from thread.failure
        if waited_s >= READY_TIMEOUT_S:
            raise NotServing(f"{thread.name} did not start within {READY_TIMEOUT_S:.0f} s")
        thread.join(READY_POLL_S)
        waited_s += READY_POLL_S
    answer = httpx2.get(f"{url}/healthz", timeout=READY_TIMEOUT_S)
    if answer.status_code != 200:
        raise NotServing(f"{thread.name} is not healthy: it answers {answer.status_code}")
