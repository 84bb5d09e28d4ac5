"""Pages that are left open on running runs, as if by people at machines of their own.

They are in a process of their own that gives way to everything else (`NICENESS`): on two cores, what clients work would
else be taken from the writer that is measured, and be laid at the server's door.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.bench.serving import Connection

NICENESS = 19
REST_S = 0.25
"""From being told of something until the page is asked for, as in `live-run.js`."""


class Watch(NamedTuple):
    """What a page follows, and what it asks for when it is told of something; None where it only listens."""

    stream: str
    page: str | None = None


class Watchers:
    """The process, as seen by who measures."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-m", "tests.bench.watching", str(port)]
        self._process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    async def open(self, watches: Sequence[Watch]) -> None:
        """Return once each of them follows."""
        await self._ask(watches)

    async def leave(self) -> int:
        """Close all pages; how often one of them was drawn anew."""
        return int(await self._ask(None))

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    async def _ask(self, order: object) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        return json.loads(await asyncio.to_thread(stdout.readline))


class _OpenPage:
    """One page, from its opening until it is left."""

    def __init__(self, port: int, watch: Watch) -> None:
        self._port = port
        self._watch = watch
        self._told = asyncio.Event()
        self.drawn = 0

    async def open(self) -> None:
        self._stream = await Connection.open(self._port)
        await self._stream.ask(self._watch.stream)
        while await self._stream.line() != b": following\n":
            pass
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._draw())]

    async def leave(self) -> int:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._stream.close()
        return self.drawn

    async def _listen(self) -> None:
        while line := await self._stream.line():
            if line.startswith(b"data:"):
                self._told.set()

    async def _draw(self) -> None:
        while self._watch.page is not None:
            await self._told.wait()
            await asyncio.sleep(REST_S)
            self._told.clear()
            answers = await Connection.open(self._port)
            await answers.get(self._watch.page)
            await answers.close()
            self.drawn += 1


@contextmanager
def never_at_rest() -> Iterator[None]:
    """Something in this session works all the time, and gives way to everything else in it.

    A busy machine that is shared out by session (autogroup) serves a session sooner that has never been asleep: without
    this, whoever appends would be served sooner while pages are open than while nobody looks.
    """
    command = [sys.executable, "-c", f"import os\nos.nice({NICENESS})\nwhile True: pass"]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


async def _watch(port: int) -> None:
    pages: list[_OpenPage] = []
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        if order is not None:
            pages = [_OpenPage(port, Watch(*watch)) for watch in order]
            for page in pages:
                await page.open()
            print("null", flush=True)
        else:
            print(sum(await asyncio.gather(*(page.leave() for page in pages))), flush=True)


if __name__ == "__main__":
    os.nice(NICENESS)
    asyncio.run(_watch(int(sys.argv[1])))
