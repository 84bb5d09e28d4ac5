"""`tachograph serve`: the viewer over one ledger, on loopback."""

import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator

import click
import uvicorn
from starlette.types import ASGIApp

from ledger.cli.common import open_existing
from viewer.app import create_app
from viewer.cli import NotTried, OneLine
from viewer.metrics import Metrics

PORT_DEFAULT = 8321
GRACEFUL_SHUTDOWN_S = 3


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


@click.command()
@click.option(
    "--db", envvar="TACHOGRAPH_DB", required=True, show_envvar=True, help="The ledger: sqlite:///FILE or a path."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option(
    "--port", default=PORT_DEFAULT, show_default=True, type=click.IntRange(0, 65535), help="0 for a free one."
)
@click.option("--writable", is_flag=True, help="Take feedback and cancelling, too; else the ledger is only read.")
def serve(db: str, host: str, port: int, writable: bool) -> None:
    """Serve the pages and the API of a ledger."""
    check_loopback(host)
    asyncio.run(_serve_writable(db, host, port) if writable else _serve_read_only(db, host, port))


def check_loopback(host: str) -> None:
    """Refuse what other machines could reach."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        problem = "is not a loopback address, and there are no access tokens yet to serve others with"
        raise NotTried(f"{host} {problem}")


async def _serve_read_only(db: str, host: str, port: int) -> None:
    from ledger import LedgerReader  # the database driver is loaded only to serve

    async with await LedgerReader.open(db) as reader:
        await _serve(create_app(reader, metrics=Metrics(reader)), db, host, port)


async def _serve_writable(db: str, host: str, port: int) -> None:
    async with await open_existing(db) as ledger:
        metrics = Metrics(ledger.reader, ledger.measures)
        await _serve(create_app(ledger.reader, writer=ledger, metrics=metrics), db, host, port)


async def _serve(app: ASGIApp, db: str, host: str, port: int) -> None:
    with listen(host, port) as listener:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
        server = Server(config_of(app), lambda: click.echo(f"Serving {db} at {url} (Ctrl-C stops)"))
        await server.serve(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; its port is known before the server starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise OneLine(f"cannot listen on {host} port {port}: {why}") from error


def config_of(app: ASGIApp) -> uvicorn.Config:
    """uvicorn's settings: quiet, logged as everything else is, and without its name in the answers."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
    )
