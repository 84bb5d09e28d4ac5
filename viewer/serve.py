"""`tachograph serve`: the viewer over one ledger, on loopback or on a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from starlette.applications import Starlette
from starlette.types import ASGIApp

from harness.clock import SystemWallClock
from ledger.cli.common import open_existing
from viewer import words
from viewer.access.guard import Guard
from viewer.app import create_app
from viewer.audit.source import LedgerAddress
from viewer.cli import NotTried
from viewer.http.forwarded import TrustedProxies
from viewer.http.root_path import check_root_path
from viewer.http.security import ANY_HOST, LOOPBACK_HOSTS, host_name
from viewer.metrics import Metrics
from viewer.reading import Reader
from viewer.serving.server import Server, config_of
from viewer.serving.sockets import on_file, on_port

if TYPE_CHECKING:
    from ledger import Ledger

PORT_DEFAULT = 8321
HOST_DEFAULT = "127.0.0.1"
LANGUAGE_VARIABLE = "TACHOGRAPH_LANGUAGE"
"""In the environment: the language of the pages, English unless it is given."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the viewer is served, and who stands before it."""

    host: str
    port: int
    uds: Path | None
    uds_group: str | None
    root_path: str
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]

    def check(self) -> None:
        """Refuse what other machines could reach, and what cannot be meant."""
        if self.uds is None:
            if not self.is_local and self.allowed_hosts == LOOPBACK_HOSTS:
                raise NotTried(f"{self.host} is not a loopback address: name its host, too (--allow-host)")
            if self.uds_group is not None:
                raise NotTried("--uds-group says who may open the socket of --uds, which is not given")
        for name in self.allowed_hosts:
            if name.lower() != host_name(name) or "/" in name:
                raise NotTried(f"--allow-host {name}: a host is named without scheme and port, as ledger.example")
        check_root_path(self.root_path)
        TrustedProxies(self.trusted_proxies)

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        if self.uds is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check_tokens(self, *, are_any: bool, writable: bool) -> None:
        """Refuse what would let everybody in, and what could not put on record who looks."""
        made = "make an access token first (tachograph token create)"
        if not are_any and not self.is_local:
            raise NotTried(f"{self.host} is not a loopback address, and the ledger has no tokens: {made}")
        if not are_any and ANY_HOST in self.allowed_hosts:
            raise NotTried(
                f"under any host name ({ANY_HOST}) a page elsewhere could read the ledger, which has no tokens: {made}"
            )
        if are_any and not writable:
            raise NotTried("the ledger has access tokens, so who looks is put on record: serve it with --writable")

    def app(
        self, reader: Reader, address: LedgerAddress, metrics: Metrics, guard: Guard, ledger: Ledger | None = None
    ) -> Starlette:
        """The viewer, as it is served here; with the open ledger it writes."""
        return create_app(
            reader,
            address=address,
            writer=ledger,
            eraser=ledger,
            metrics=metrics,
            guard=guard,
            root_path=self.root_path,
            allowed_hosts=self.allowed_hosts,
            trusted_proxies=self.trusted_proxies,
        )

    @contextlib.contextmanager
    def listen(self) -> Iterator[tuple[socket.socket, str]]:
        """The socket, and its address in words."""
        if self.uds is not None:
            with on_file(self.uds, self.uds_group) as listener:
                yield listener, f"unix:{self.uds}"
            return
        with on_port(self.host, self.port) as listener:
            host = f"[{self.host}]" if ":" in self.host else self.host
            yield listener, f"http://{host}:{listener.getsockname()[1]}{self.root_path}/"


@click.command()
@click.option(
    "--db", envvar="TACHOGRAPH_DB", required=True, show_envvar=True, help="The ledger: sqlite:///FILE or a path."
)
@click.option(
    "--host", default=HOST_DEFAULT, show_default=True, help="A loopback address; with tokens any, and --allow-host."
)
@click.option(
    "--port", default=PORT_DEFAULT, show_default=True, type=click.IntRange(0, 65535), help="0 for a free one."
)
@click.option(
    "--uds",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Listen on a Unix socket instead, which its owner may open.",
)
@click.option("--uds-group", metavar="GROUP", help="A group whose members may open the Unix socket, too.")
@click.option("--root-path", default="", metavar="PATH", help="The sub-path that a proxy serves it at, as /ledger.")
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="A host name to answer to beside loopback's; repeatable."
)
@click.option(
    "--trusted-proxy",
    multiple=True,
    metavar="ADDRESS",
    help="A proxy whose X-Forwarded-For, -Proto and -Host are believed: an address, a network, "
    "or unix for whoever may open the Unix socket; repeatable.",
)
@click.option(
    "--writable", is_flag=True, help="Take feedback, cancelling and erasing, too; else the ledger is only read."
)
def serve(
    db: str,
    host: str,
    port: int,
    uds: Path | None,
    uds_group: str | None,
    root_path: str,
    allow_host: tuple[str, ...],
    trusted_proxy: tuple[str, ...],
    writable: bool,
) -> None:
    """Serve the pages and the API of a ledger."""
    allowed_hosts = (*LOOPBACK_HOSTS, *allow_host)
    place = Place(host, port, uds, uds_group, root_path.rstrip("/"), allowed_hosts, trusted_proxy)
    place.check()
    _speak(os.environ.get(LANGUAGE_VARIABLE))
    asyncio.run(_serve_writable(db, place) if writable else _serve_read_only(db, place))


def _speak(language: str | None) -> None:
    """Take the catalogue of a language for every page."""
    try:
        words.choose(language)
    except FileNotFoundError as error:
        raise NotTried(f"{LANGUAGE_VARIABLE}: the viewer has no catalogue of the language {language}") from error


async def _serve_read_only(db: str, place: Place) -> None:
    # The database driver is loaded only to serve.
    from ledger import LedgerReader
    from ledger.tokens.reading import TokenReading

    async with await LedgerReader.open(db) as reader:
        tokens = TokenReading(reader, SystemWallClock())
        place.check_tokens(are_any=await tokens.are_any(), writable=False)
        await _serve(place.app(reader, LedgerAddress(db), Metrics(reader), Guard(tokens)), db, place)


async def _serve_writable(db: str, place: Place) -> None:
    async with await open_existing(db) as ledger:
        place.check_tokens(are_any=await ledger.tokens.are_any(), writable=True)
        metrics = Metrics(ledger.reader, ledger.measures)
        await _serve(place.app(ledger.reader, LedgerAddress(db), metrics, Guard.of(ledger), ledger), db, place)


async def _serve(app: ASGIApp, db: str, place: Place) -> None:
    with place.listen() as (listener, address):
        server = Server(config_of(app), lambda: click.echo(f"Serving {db} at {address} (Ctrl-C stops)"))
        await server.serve(sockets=[listener])
