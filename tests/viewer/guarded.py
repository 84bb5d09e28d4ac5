"""A viewer over a real ledger with tokens, behind a real socket, and what is on record there."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from ledger import Ledger, LedgerReader
from ledger.tokens.accesses import accesses
from ledger.tokens.records import RIGHTS
from tests.ledger.scripted import ScriptedRun
from viewer.access.guard import Guard
from viewer.app import create_app
from viewer.metrics import Metrics
from viewer.serving.server import config_of
from viewer.serving.sockets import on_port


@dataclass
class Guarded:
    """A served ledger, with the runs `s-1/run-1` and `s-2/run-2`."""

    url: str
    file: Path
    app: Any
    clients: ExitStack = field(default_factory=ExitStack)

    def client(self, bearer: str | None = None, **settings: Any) -> httpx2.Client:
        """A program with a token, or with none."""
        headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        return self.clients.enter_context(httpx2.Client(base_url=self.url, headers=headers, timeout=30, **settings))

    def holder(self, *rights: str, owner: str = "ops-1", sessions: str | None = None) -> httpx2.Client:
        """A program with a new token, good for some rights or for all."""
        return self.client(self.token(*rights, owner=owner, sessions=sessions)[1])

    def token(self, *rights: str, owner: str = "ops-1", sessions: str | None = None) -> tuple[str, str]:
        """A new token's id, and what its holder presents."""

        async def make(ledger: Ledger) -> tuple[str, str]:
            made, bearer = await ledger.tokens.make(owner, rights or RIGHTS, session_prefix=sessions)
            return made.token_id, bearer

        return self.do(make)

    def do(self, act: Callable[[Ledger], Any]) -> Any:
        """What another process does meanwhile."""

        async def open_and_act() -> Any:
            async with await Ledger.open(self.file) as ledger:
                return await act(ledger)

        return asyncio.run(open_and_act())

    def recorded(self) -> list[dict[str, Any]]:
        """The accesses on record, the oldest first, without what every event has."""

        async def look() -> list[dict[str, Any]]:
            async with await LedgerReader.open(self.file) as reader:
                found = reversed(await accesses(reader, limit=500))
                envelope = {"event_id", "type", "version", "stream_id", "occurred_us"}
                return [{name: value for name, value in one.fields.items() if name not in envelope} for one in found]

        return asyncio.run(look())


@contextmanager
def guarded(file: Path, **settings: Any) -> Iterator[Guarded]:
    """Serve a ledger in that file until the block is left."""
    ready, viewers = threading.Event(), []

    async def serve() -> None:
        async with await Ledger.open(file) as ledger:
            for number in (1, 2):
                if await _is_new(ledger, f"s-{number}"):
                    for submission in ScriptedRun(f"run-{number}", f"s-{number}").whole():
                        await asyncio.wrap_future(ledger.journal.submit(submission))
            app = create_app(
                ledger.reader,
                writer=ledger,
                eraser=ledger,
                guard=Guard.of(ledger),
                metrics=Metrics(ledger.reader),
                **settings,
            )
            with on_port("127.0.0.1", 0) as listener:
                server = uvicorn.Server(config_of(app))
                viewers.append((Guarded(f"http://127.0.0.1:{listener.getsockname()[1]}", file, app), server))
                ready.set()
                await server.serve(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    viewer, server = viewers[0]
    try:
        with viewer.clients:
            yield viewer
    finally:
        server.should_exit = True
        thread.join(30)
    assert not thread.is_alive()


async def _is_new(ledger: Ledger, session_id: str) -> bool:
    return all(run.session_id != session_id for run in (await ledger.reader.recent_runs()).rows)
