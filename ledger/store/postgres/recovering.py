"""Recovery on PostgreSQL: at opening, on demand, and from then on whenever an owner falls silent."""

from __future__ import annotations

import asyncio
import logging
import math
from functools import partial

import asyncpg

from harness.clock import WallClock
from harness.errors import IllegalEvent, LedgerUnavailable
from harness.ids import run_stream
from ledger.loop_thread import cancelled
from ledger.recovery import RUNS_AT_ONCE, Recovery, end
from ledger.store.postgres import statements
from ledger.store.postgres.appends import Appends
from ledger.store.postgres.faults import FAULTS, unavailable
from ledger.store.postgres.link import Link
from ledger.store.postgres.owners import BEATS_PER_LEASE, Watch
from ledger.store.postgres.place import PostgresPlace

log = logging.getLogger(__name__)


class Recoverer:
    """Ends the runs of owners that are dead; one pass at a time."""

    def __init__(self, place: PostgresPlace, appends: Appends, clock: WallClock, lease_s: float) -> None:
        self._link = Link(place)
        self._appends = appends
        self._clock = clock
        self._watch = Watch(appends.setting.owner_id, lease_s)
        self._pause_s = lease_s / BEATS_PER_LEASE
        self._turn = asyncio.Lock()
        self._named: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Recovery:
        """End what is known to be dead already, and go on watching."""
        recovery, _ = await self._pass(_now_s())
        self._task = asyncio.get_running_loop().create_task(self._go_on())
        return recovery

    async def stop(self) -> None:
        """Watch no longer."""
        await cancelled(self._task)
        await self._link.close()

    async def recover(self) -> Recovery:
        """End the runs of the dead, once it is known of every owner whether it lives, which can take the lease time."""
        recovery, is_unsure = await self._pass(math.inf)
        # Whoever is heard of from now on lives now.
        began_s, ended = _now_s(), recovery.ended
        while is_unsure:
            await asyncio.sleep(self._pause_s)
            recovery, is_unsure = await self._pass(began_s)
            ended += recovery.ended
        return Recovery(ended, recovery.unreadable)

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            try:
                recovery, _ = await self._pass(_now_s())
            except LedgerUnavailable as error:
                log.warning("the ledger could not look after the runs of others: %s", error)
            else:
                for run_id in recovery.ended:
                    log.info("run %s, whose process died, was ended", run_id)

    async def _pass(self, since_s: float) -> tuple[Recovery, bool]:
        async with self._turn:
            ended: list[str] = []
            unreadable: list[str] = []
            try:
                dead, is_unsure = await self._watch.look(self._link, since_s)
                for owner_id in dead:
                    await self._end_all(owner_id, ended, unreadable)
            except FAULTS as error:
                self._link.drop()
                raise unavailable(error) from error
            return Recovery(tuple(ended), tuple(unreadable)), is_unsure

    async def _end_all(self, owner_id: str, ended: list[str], unreadable: list[str]) -> None:
        last = ""
        while True:
            connection = await self._link.connection()
            rows = await connection.fetch(statements.RUNS_OF_OWNER, owner_id, run_stream(last), RUNS_AT_ONCE)
            for row in rows:
                last = row["run_id"]
                job = partial(end, owner_id=owner_id, run_id=last, now_us=self._clock.now_us())
                try:
                    is_ended = await self._appends.decide(self._link, job)
                except (IllegalEvent, ValueError, asyncpg.IntegrityConstraintViolationError) as error:
                    unreadable.append(last)
                    if last not in self._named:
                        self._named.add(last)
                        log.warning("run %s, whose process died, cannot be ended and stays open: %s", last, error)
                else:
                    ended += [last] if is_ended else []
            if len(rows) < RUNS_AT_ONCE:
                return


def _now_s() -> float:
    return asyncio.get_running_loop().time()
