"""The viewer in a process of its own, and a client that costs little beside it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Served:
    """Where it is served, and by which process."""

    port: int
    process: psutil.Process

    def processor_s(self) -> float:
        """What the process has worked so far."""
        used = self.process.cpu_times()
        return float(used.user + used.system)


@contextmanager
def serving(path: Path) -> Iterator[Served]:
    """Serve a ledger's file, as anybody would, until the block is left."""
    command = [str(Path(sys.executable).parent / "tachograph"), "serve", "--db", str(path), "--port", "0"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready = re.search(r":(\d+)/", process.stdout.readline())
        assert ready is not None
        try:
            yield Served(int(ready[1]), psutil.Process(process.pid))
        finally:
            process.terminate()


class Connection:
    """One that is kept open, and asks for one thing after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def get(self, path: str, *headers: str) -> bytes:
        """The body of an answer that says how long it is."""
        await self.ask(path, *headers)
        head = await self._reader.readuntil(HEAD_END)
        assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")), head
        length = re.search(rb"content-length: (\d+)", head)
        return await self._reader.readexactly(int(length[1])) if length is not None else b""

    async def ask(self, path: str, *headers: str) -> None:
        """Ask, and leave the answer to be read."""
        lines = (f"GET {path} HTTP/1.1", "Host: localhost", *headers)
        self._writer.write("\r\n".join((*lines, "", "")).encode())
        await self._writer.drain()

    async def line(self) -> bytes:
        """The next line of an answer that has no end."""
        return await self._reader.readline()

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()
