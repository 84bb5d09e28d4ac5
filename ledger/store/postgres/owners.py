"""Who still lives: each open ledger has a row whose beat counts up, and whoever recovers watches the beats of others.

An owner is taken for dead when its beat has stood still for the lease time on the watcher's own clock, or when it has
runs and no row, since it left. Its row is then deleted, which fences it: what it did not append by then, it never will
to a run that recovery has ended.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from ledger.errors import LedgerNotLive
from ledger.loop_thread import cancelled
from ledger.store.identity import LIVE
from ledger.store.postgres import statements
from ledger.store.postgres.faults import FAULTS
from ledger.store.postgres.link import Link
from ledger.store.postgres.place import PostgresPlace

log = logging.getLogger(__name__)

BEATS_PER_LEASE = 5


class _Beat(NamedTuple):
    """The last beat seen of an owner."""

    beat: int
    since_s: float
    moved: bool
    """Whether it was seen to change."""


class Heart:
    """This ledger's own beat."""

    def __init__(self, place: PostgresPlace, owner_id: str, lease_s: float) -> None:
        self._place = place
        self._link = Link(place)
        self._owner_id = owner_id
        self._pause_s = lease_s / BEATS_PER_LEASE
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Register the owner; raises what the driver raises, and `LedgerNotLive` where another ledger goes on."""
        await self._beat()
        # Who copies a ledger elsewhere lets nobody register, and has marked it before that goes on.
        standing = await (await self._link.connection()).fetchval(statements.STANDING)
        if standing not in (None, LIVE):
            await self.stop()
            raise LedgerNotLive(self._place, standing)
        self._task = asyncio.get_running_loop().create_task(self._go_on())

    async def stop(self) -> None:
        """The owner goes; runs that it leaves behind may be recovered at once."""
        await cancelled(self._task)
        try:
            await (await self._link.connection()).execute(statements.LEAVE, self._owner_id)
        except FAULTS as error:
            log.warning("the ledger could not say that it was closed: %s", error)
        await self._link.close()

    async def _beat(self) -> None:
        await (await self._link.connection()).execute(statements.BEAT, self._owner_id)

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            try:
                await self._beat()
            except FAULTS as error:
                self._link.drop()
                log.warning("the ledger could not say that it lives: %s", error)


class Watch:
    """What is seen of the other owners' beats."""

    def __init__(self, owner_id: str, lease_s: float) -> None:
        self._owner_id = owner_id
        self._lease_s = lease_s
        self._seen: dict[str, _Beat] = {}

    async def look(self, link: Link, since_s: float) -> tuple[list[str], bool]:
        """Owners that are dead, and fenced now; whether of others nothing has been heard since then."""
        connection = await link.connection()
        rows = await connection.fetch(statements.OTHER_OWNERS, self._owner_id)
        now_s = asyncio.get_running_loop().time()
        seen: dict[str, _Beat] = {}
        dead: list[str] = []
        for owner_id, beat in rows:
            if beat is None:
                dead.append(owner_id)
                continue
            last = self._seen.get(owner_id)
            if last is None or last.beat != beat:
                last = _Beat(beat, now_s, moved=last is not None)
            if now_s - last.since_s < self._lease_s:
                seen[owner_id] = last
            elif await connection.fetchval(statements.FENCE, owner_id, beat) is not None:
                dead.append(owner_id)
        self._seen = seen
        return dead, not all(last.moved and last.since_s > since_s for last in seen.values())
