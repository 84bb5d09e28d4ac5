"""The viewer behind a real socket, in a thread and an event loop of its own."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from ledger import Ledger, LedgerReader
from viewer.app import create_app
from viewer.reading import Reader
from viewer.serving.server import Server, config_of


@contextmanager
def served(
    source: Reader | Path, *, writable: bool = False, writer: Any = None, send_bytes: int | None = None, **settings: Any
) -> Iterator[str]:
    """Serve a reader or a ledger's file until the block is left; the base address. `writer` is one beside a reader.

    Of what a client does not read the system keeps as much as it likes, or about `send_bytes`.
    The socket listens before the thread starts, so nobody has to wait for the server.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        if send_bytes is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
        servers: list[Server] = []
        ready = threading.Event()

        async def serve() -> None:
            async with _opened(source, writable) as (reader, ledger):
                servers.append(
                    Server(config_of(create_app(reader, writer=ledger or writer, **{"eraser": ledger} | settings)))
                )
                ready.set()
                await servers[0].serve(sockets=[listener])

        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        try:
            assert ready.wait(20)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for server in servers:
                server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()


@contextmanager
def client_of(source: Reader | Path, **settings: Any) -> Iterator[httpx2.Client]:
    """A client of the served viewer."""
    with served(source, **settings) as base_url, httpx2.Client(base_url=base_url, timeout=30) as client:
        yield client


@asynccontextmanager
async def _opened(source: Reader | Path, writable: bool) -> AsyncIterator[tuple[Reader, Ledger | None]]:
    if not isinstance(source, Path):
        yield source, None
    elif writable:
        async with await Ledger.open(source) as ledger:
            yield ledger.reader, ledger
    else:
        async with await LedgerReader.open(source) as reader:
            yield reader, None
