"""A proxy before a server, which can cut connections at the worst moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.servers.postgres import Loop

Cut = Callable[[bytes], bool]


class Proxy:
    """Forwards to a port, and cuts both sides off when it is told to.

    `before` looks at what a client sends and cuts before it is forwarded; `after` forwards it and swallows the answer.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = Loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self.before: Cut = lambda _: False
        self.after: Cut = lambda _: False
        self.is_down = False
        self.cuts = 0
        self._server = self._loop.run(self._listen())
        self.port = int(self._server.sockets[0].getsockname()[1])

    def cut_all(self) -> None:
        """Cut every connection there is."""
        self._loop.run(self._abort_all())

    def close(self) -> None:
        self._loop.run(self._stop())
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _stop(self) -> None:
        self._server.close()
        await self._abort_all()
        await asyncio.sleep(0.05)

    async def _abort_all(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        both = (writer, there_writer)
        self._writers.update(both)
        is_mute = asyncio.Event()
        try:
            await asyncio.gather(
                self._to_server(reader, there_writer, both, is_mute),
                self._to_client(there_reader, writer, both, is_mute),
                return_exceptions=True,
            )
        finally:
            for one in both:
                self._writers.discard(one)
                one.transport.abort()

    async def _to_server(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, ...],
        is_mute: asyncio.Event,
    ) -> None:
        while data := await reader.read(65_536):
            if self.before(data):
                self._cut(both)
                return
            if self.after(data):
                is_mute.set()
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _to_client(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, ...],
        is_mute: asyncio.Event,
    ) -> None:
        while data := await reader.read(65_536):
            if is_mute.is_set():
                self._cut(both)
                return
            writer.write(data)
            await writer.drain()
        writer.close()

    def _cut(self, both: tuple[asyncio.StreamWriter, ...]) -> None:
        self.cuts += 1
        for one in both:
            one.transport.abort()
