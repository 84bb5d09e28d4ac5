"""Hearing of requests in a database: a task looks at the watched runs' rows, while there are any."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from ledger.loop_thread import LoopThread, cancelled
from ledger.requests import POLL_S, Requests
from ledger.store.postgres import statements
from ledger.store.postgres.faults import FAULTS
from ledger.store.postgres.link import Link
from ledger.store.postgres.place import PostgresPlace

log = logging.getLogger(__name__)


class PostgresRequests(Requests):
    """Its task lives in the ledger's own loop."""

    def __init__(self, place: PostgresPlace, thread: LoopThread) -> None:
        super().__init__()
        self._link = Link(place)
        self._thread = thread
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        with contextlib.suppress(RuntimeError):  # The ledger has been closed.
            self._thread.loop.call_soon_threadsafe(self._start)

    async def stop(self) -> None:
        """Tell nobody any more."""
        await cancelled(self._task)
        await self._link.close()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._thread.loop.create_task(self._work())

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            with self.changed:
                run_ids, _ = self.watched()
            if not run_ids:
                return
            try:
                rows = await (await self._link.connection()).fetch(statements.REQUESTS, run_ids)
            except FAULTS as error:
                self._link.drop()
                log.warning("the ledger could not look for requests: %s", error)
                continue
            if rows:
                # Applications' callbacks may be among those that are told.
                await asyncio.to_thread(self.tell, [(row["run_id"], row["cancel_reason"]) for row in rows])
