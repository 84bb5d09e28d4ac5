"""uvicorn, as the viewer wants it: quiet, ended in peace by signals, and without trust in anybody's headers."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from viewer.serving.connection import HEAD_BYTES_MAX, KEEP_ALIVE_S, BoundedConnection

GRACEFUL_SHUTDOWN_S = 3
"""How long answers under way may still take once the server was asked to end."""


class Server(uvicorn.Server):
    """Says when it is ready and when it stops, and ends in peace on signals instead of raising them again.

    `request.state.stopping` is set when it stops, so that an answer without an end of its own comes to one.
    """

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._stopping = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        self.lifespan.state["stopping"] = self._stopping
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell, then stop."""
        self._stopping.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Both signals ask the server to end; a second one ends it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def config_of(app: ASGIApp) -> uvicorn.Config:
    """uvicorn's settings: logged as everything else is, and without its name in the answers."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        # Else it would believe whoever connects from this machine; the application knows whom to believe.
        proxy_headers=False,
        http=BoundedConnection,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        timeout_keep_alive=KEEP_ALIVE_S,
        ws="none",
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
    )
