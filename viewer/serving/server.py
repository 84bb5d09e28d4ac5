"""uvicorn, as the viewer wants it: quiet, ended in peace by signals, and without trust in anybody's headers."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

GRACEFUL_SHUTDOWN_S = 3
"""How long answers under way may still take once the server was asked to end."""


class Server(uvicorn.Server):
    """Says when it is ready, and ends in peace on Ctrl-C and SIGTERM instead of raising the signal again."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Both signals ask the server to end; a second one ends it at once."""
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
        ws="none",
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
    )
