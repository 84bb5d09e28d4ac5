"""A ledger in a database: its writer, its readers, and the beat that says its owner lives."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass

from harness.clock import WallClock
from harness.errors import InvalidInput, LedgerUnavailable
from harness.ids import IdSource
from ledger.append.deciding import Setting, numbered
from ledger.append.front import WriterLimits
from ledger.errors import LedgerUnreadable
from ledger.following.bell import Bell
from ledger.loop_thread import LoopThread
from ledger.reading.reader import LedgerReader
from ledger.rebuild import RebuildReport
from ledger.recovery import Recovery
from ledger.store.postgres.appends import Appends
from ledger.store.postgres.erasing import PostgresErasing
from ledger.store.postgres.faults import FAULTS, unusable
from ledger.store.postgres.followers import PostgresFollowers
from ledger.store.postgres.migrating import ensure_current
from ledger.store.postgres.owners import Heart
from ledger.store.postgres.place import PostgresPlace, place_at
from ledger.store.postgres.reads import PostgresReads
from ledger.store.postgres.rebuilding import rebuild
from ledger.store.postgres.recovering import Recoverer
from ledger.store.postgres.requests import PostgresRequests
from ledger.store.postgres.sequencing import Sequencer
from ledger.store.postgres.tokens import PostgresTokens
from ledger.store.postgres.tree import PostgresTree
from ledger.store.postgres.writer import PostgresWriter

LEASE_MAX_S = 3600.0


@dataclass(frozen=True, slots=True)
class PostgresEngine:
    """A `ledger.engine.Engine`."""

    place: PostgresPlace
    thread: LoopThread
    heart: Heart
    recoverer: Recoverer
    requests: PostgresRequests
    sequencer: Sequencer
    writer: PostgresWriter
    reader: LedgerReader
    erasing: PostgresErasing
    follower_places: PostgresFollowers
    tree: PostgresTree
    tokens: PostgresTokens
    process_id: int

    def recover(self) -> Recovery:
        return self.thread.call(self.recoverer.recover()).result()

    async def rebuild(self) -> RebuildReport:
        # In a thread and a loop of its own: it computes a lot, and others would wait for it.
        return await asyncio.shield(asyncio.to_thread(asyncio.run, rebuild(self.place)))

    def close(self) -> None:
        if os.getpid() != self.process_id:
            return  # This is a forked child, and all of it is the parent's.
        self.writer.close()
        self.thread.call(self._stop()).result()
        self.thread.stop()

    async def _stop(self) -> None:
        await self.erasing.stop()
        await self.requests.stop()
        await self.follower_places.stop()
        await self.tree.stop()
        await self.tokens.stop()
        await self.recoverer.stop()
        await self.sequencer.stop()
        await self.heart.stop()


def open_postgres(
    url: str,
    clock: WallClock,
    ids: IdSource,
    session_ttl_us: int | None,
    limits: WriterLimits,
    lease_s: float,
    adopts: bool,
) -> PostgresEngine:
    """Open the database, with the ledger made or migrated where needed, and end the runs whose owners have left."""
    if isinstance(lease_s, bool) or not 0 < lease_s <= LEASE_MAX_S:
        raise InvalidInput("lease_s", f"must be above 0 and at most {LEASE_MAX_S:g} seconds, not {lease_s!r}")
    place = place_at(url)
    _, identity = asyncio.run(ensure_current(place, ids=ids, adopts=adopts))
    setting = Setting(identity.ledger_id, ids.writer_id(), numbered(ids.writer_id()), session_ttl_us)
    appends = Appends(setting, clock)
    with contextlib.ExitStack() as undo:
        thread = LoopThread("ledger-postgres")
        undo.callback(thread.stop)
        heart = Heart(place, setting.owner_id, lease_s)
        try:
            thread.call(heart.start()).result()
        except FAULTS as error:
            raise unusable(place, error) from error
        recoverer = Recoverer(place, appends, clock, lease_s)
        requests, bell = PostgresRequests(place, thread), Bell()
        writer = PostgresWriter(place, appends, thread, requests, limits, bell.ring)
        sequencer, followers = Sequencer(place, bell), PostgresFollowers(place, thread)
        reader = LedgerReader(PostgresReads(place), clock)
        erasing = PostgresErasing(place, appends, thread, clock)
        parts = (place, thread, heart, recoverer, requests, sequencer, writer, reader, erasing, followers)
        tree, tokens = PostgresTree(place, thread), PostgresTokens(place, appends, thread, clock)
        engine = PostgresEngine(*parts, tree, tokens, os.getpid())
        undo.pop_all()
        undo.callback(engine.close)
        try:
            thread.loop.call_soon_threadsafe(sequencer.start)
            thread.call(recoverer.start()).result()
        except LedgerUnavailable as error:
            raise LedgerUnreadable(place, f"cannot be opened ({error.problem})") from error
        undo.pop_all()
    return engine
