"""A ledger in an SQLite file: its writer, its readers, and the lock that says its owner lives."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.clock import WallClock
from harness.errors import LedgerUnavailable
from harness.ids import IdSource
from ledger.append.deciding import Setting, numbered
from ledger.append.front import WriterLimits
from ledger.append.writer import Writer
from ledger.errors import LedgerUnreadable
from ledger.failpoints import reached
from ledger.following.bell import Bell
from ledger.migrate import OPEN_TIMEOUT_S, ensure_current, lock_of
from ledger.reading.reader import LedgerReader
from ledger.rebuild import RebuildReport, rebuild_all
from ledger.recovery import Recovery
from ledger.store.batch import Batch
from ledger.store.erasing import SqliteErasing
from ledger.store.followers import SqliteFollowers
from ledger.store.identity import require_live
from ledger.store.lock import FileLock
from ledger.store.owners import Owners
from ledger.store.probe import identify
from ledger.store.reads import SqliteReads
from ledger.store.rebuilding import SqliteSource
from ledger.store.recovering import recover
from ledger.store.requests import SqliteRequests
from ledger.store.sqlite import SqliteStore
from ledger.store.tokens import SqliteTokens
from ledger.store.tree import SqliteTree


@dataclass(frozen=True, slots=True)
class SqliteEngine:
    """A `ledger.engine.Engine`."""

    path: Path
    clock: WallClock
    lock: FileLock
    owners: Owners
    owner: FileLock
    store: SqliteStore
    requests: SqliteRequests
    writer: Writer
    reader: LedgerReader
    bell: Bell

    @property
    def follower_places(self) -> SqliteFollowers:
        return SqliteFollowers(self._run)

    @property
    def tree(self) -> SqliteTree:
        return SqliteTree(self._run)

    @property
    def tokens(self) -> SqliteTokens:
        return SqliteTokens(self._run, self.clock)

    @property
    def erasing(self) -> SqliteErasing:
        return SqliteErasing(self.store, self._run, self._call, self.clock)

    def recover(self) -> Recovery:
        return recover(lambda job, run_ids: self.writer.run(job, run_ids).result(), self.owners, self.clock)

    async def rebuild(self) -> RebuildReport:
        return await rebuild_all(SqliteSource(self.path, self._run))

    def close(self) -> None:
        self.writer.close()
        if not self.lock.is_open:
            return  # This is a forked child, and all of it is the parent's.
        self.requests.close()
        try:
            with self.lock.held(OPEN_TIMEOUT_S):
                reached("before leaving")
                self.owners.leave(self.owner)
        finally:
            self.owner.close()
            self.lock.close()

    async def _run(self, job: Callable[[Batch], Any], *run_ids: str) -> Any:
        # Whoever waits may be cancelled; the job is done all the same, or not at all.
        return await asyncio.shield(asyncio.wrap_future(self.writer.run(job, run_ids)))

    async def _call(self, action: Callable[[], Any]) -> Any:
        return await asyncio.shield(asyncio.wrap_future(self.writer.call(action)))


def open_sqlite(
    path: Path,
    clock: WallClock,
    ids: IdSource,
    session_ttl_us: int | None,
    limits: WriterLimits,
    lock_timeout_s: float,
) -> SqliteEngine:
    """Open the file, made or migrated where needed, and end the runs whose processes have died."""
    try:
        with contextlib.ExitStack() as undo:
            lock = lock_of(path)
            undo.callback(lock.close)
            _, identity = ensure_current(path, lock, ids=ids)
            owners, owner_id = Owners(Path(f"{path}.owners")), ids.writer_id()
            with lock.held(OPEN_TIMEOUT_S):
                require_live(path, identify(path))  # it may just have been copied elsewhere
                owner = owners.register(owner_id)
            reached("owner registered")
            undo.callback(owner.close)
            setting = Setting(identity.ledger_id, owner_id, numbered(ids.writer_id()), session_ttl_us)
            store = SqliteStore(path, lock, setting, clock, lock_timeout_s=lock_timeout_s)
            bell = Bell()
            requests = SqliteRequests(path)
            writer = Writer(store, limits, requests, bell.ring)
            reader = LedgerReader(SqliteReads(path, bell), clock)
            engine = SqliteEngine(path, clock, lock, owners, owner, store, requests, writer, reader, bell)
            undo.pop_all()
            undo.callback(engine.close)
            engine.recover()
            undo.pop_all()
    except LedgerUnavailable as error:
        raise LedgerUnreadable(path, f"cannot be opened ({error.problem})") from error
    except OSError as error:
        raise LedgerUnreadable(path, f"cannot be opened ({error.strerror})") from error
    return engine
