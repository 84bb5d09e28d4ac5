"""Where reads take place: as many at once as the engine does, none after closing, each to its end whoever waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from ledger.errors import LedgerUnreadable
from ledger.reading.reads import Reads
from ledger.store.place import is_postgres, path_of
from ledger.store.probe import require_current
from ledger.store.reads import SqliteReads

P = ParamSpec("P")
T = TypeVar("T")

WAIT_S = 30.0
"""So long a read waits at most for those that are under way."""


class ReadingRoom:
    """Does reads, each in a transaction of its own."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self._is_closed = False
        self._under_way: set[asyncio.Task[Any]] = set()
        self._seats = asyncio.Semaphore(reads.at_once)

    async def read(self, read: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What it reads; `LedgerUnreadable` if it cannot."""
        if self._is_closed:
            raise LedgerUnreadable(self.reads.place, "was closed")
        self.reads.check()
        # Whoever asked may be cancelled: the read goes on to its end, or its connection would be lost in mid-air.
        task = asyncio.create_task(self._in_transaction(read, *args, **kwargs))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    def shut(self) -> None:
        """Let nobody begin a read any more."""
        self._is_closed = True

    async def close(self) -> None:
        """Let go of the ledger, once the reads under way have ended."""
        self.shut()
        if self._under_way:
            await asyncio.wait(self._under_way)
        await self.reads.close()

    async def _in_transaction(
        self, read: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._seats.acquire()
        except TimeoutError as error:
            raise LedgerUnreadable(self.reads.place, "is read by too many at once") from error
        try:
            return await self.reads.read(lambda connection: read(connection, *args, **kwargs))
        except sa.exc.DBAPIError as error:
            raise LedgerUnreadable(self.reads.place, f"cannot be read ({error.orig})") from error
        except OSError as error:
            raise LedgerUnreadable(self.reads.place, f"cannot be reached ({error})") from error
        finally:
            self._seats.release()


async def reads_of(url: str | Path) -> Reads:
    """Where the ledger at that address is read, once it is known to be one."""
    # An engine is imported only where it is used: its driver may not be installed.
    if is_postgres(url):
        from ledger.store.postgres.reads import open_reads

        return await open_reads(str(url))
    path = path_of(url)
    await asyncio.to_thread(require_current, path)
    return SqliteReads(path)
