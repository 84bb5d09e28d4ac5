"""The ledger as a program sees it: opened once, given to a harness as its journal, and closed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from harness.clock import SystemWallClock, WallClock
from harness.errors import InvalidInput, LedgerUnavailable
from harness.events import SystemEvent
from harness.ids import IdSource, RandomIds, check_id
from harness.journal import Recorded
from ledger.annotations import evaluation, feedback
from ledger.deciding import Setting
from ledger.erasing import Eraser, ErasureLimits
from ledger.errors import LedgerUnreadable
from ledger.forgetting import Forgetting
from ledger.migrate import OPEN_TIMEOUT_S, ensure_current, lock_of
from ledger.reader import LedgerReader
from ledger.rebuild import RebuildReport, rebuild_all
from ledger.recovery import Recovery, recover
from ledger.store.batch import Batch
from ledger.store.erasing import SqliteErasing
from ledger.store.lock import FileLock
from ledger.store.owners import Owners
from ledger.store.place import path_of
from ledger.store.sqlite import LOCK_TIMEOUT_S, SqliteStore
from ledger.unfolded import Statement, clear_context
from ledger.writer import Writer, WriterLimits

T = TypeVar("T")

MAX_TTL_S = 100 * 366 * 24 * 3600


@dataclass(frozen=True, slots=True)
class _Parts:
    """What an open ledger consists of."""

    lock: FileLock
    owners: Owners
    owner: FileLock
    store: SqliteStore
    writer: Writer

    def recover(self, clock: WallClock) -> Recovery:
        return recover(lambda job, run_ids: self.writer.run(job, run_ids).result(), self.owners, clock)

    def close(self) -> None:
        self.writer.close()
        if not self.lock.is_open:
            return  # This is a forked child, and all of it is the parent's.
        try:
            with self.lock.held(OPEN_TIMEOUT_S):
                self.owners.leave(self.owner)
        finally:
            self.owner.close()
            self.lock.close()


class Ledger(Forgetting):
    """An open ledger: one file, which any number of processes may have open at the same time."""

    def __init__(
        self, path: Path, parts: _Parts, clock: WallClock, ids: IdSource, erasure_limits: ErasureLimits
    ) -> None:
        self._path = path
        self._parts = parts
        self._reader = LedgerReader(path, clock)
        self._clock = clock
        self._ids = ids
        self._eraser = Eraser(
            SqliteErasing(parts.store, self._run, self._call, clock),
            lambda: f"erasure-{ids.writer_id()}",
            erasure_limits,
        )
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        url: str | Path,
        *,
        wall_clock: WallClock | None = None,
        ids: IdSource | None = None,
        session_ttl_s: float | None = None,
        limits: WriterLimits | None = None,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
        erasure_limits: ErasureLimits | None = None,
    ) -> Ledger:
        """Open `sqlite:///FILE`, made or migrated where needed, and end the runs whose processes have died.

        `session_ttl_s` is how long a new session lives after its last activity. Raises a `LedgerError` for a file that
        cannot be a ledger, and then nothing was changed.
        """
        path = path_of(url)
        clock, ids = wall_clock or SystemWallClock(), ids or RandomIds()
        opening = asyncio.ensure_future(
            asyncio.to_thread(_open, path, clock, ids, _ttl_us(session_ttl_s), limits or WriterLimits(), lock_timeout_s)
        )
        try:
            parts = await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The thread cannot be stopped; what it opens must not stay open.
            opening.add_done_callback(_close_unwanted)
            raise
        return cls(path, parts, clock, ids, erasure_limits or ErasureLimits())

    @property
    def journal(self) -> Writer:
        """Where a harness records its runs: `Harness(journal=ledger.journal)`."""
        return self._parts.writer

    @property
    def reader(self) -> LedgerReader:
        """Reads of the same ledger."""
        return self._reader

    async def open_session(self, session_id: str) -> None:
        """See to it that the session exists."""
        check_id("session_id", session_id)
        now_us = self._clock.now_us()
        await self._run(lambda batch: batch.open_session(session_id, now_us))

    async def recover(self) -> Recovery:
        """End the runs whose processes have died, as opening a ledger has done once."""
        return await asyncio.to_thread(self._parts.recover, self._clock)

    async def record_evaluation(
        self,
        session_id: str,
        run_id: str,
        *,
        evaluator: str,
        verdict: str,
        usage: Mapping[str, int] | None = None,
        rationale: str | None = None,
    ) -> None:
        """Record what an evaluator says of the run; `RunNotFound` for an unknown run and another session's alike."""
        _check_keys(session_id, run_id)
        said = evaluation(self._ids, evaluator=evaluator, verdict=verdict, usage=usage, rationale=rationale)
        now_us = self._clock.now_us()
        await self._run(lambda batch: said.record(batch, session_id, run_id, now_us), run_id)

    async def record_feedback(
        self,
        session_id: str,
        run_id: str,
        *,
        useful: bool,
        actor: str | None = None,
        comment: str | None = None,
        verdict: str = "NOT_REVIEWED",
    ) -> str | None:
        """Record a person's feedback, of which the last counts; the id of the run's case, which useful feedback makes.

        `verdict` is the gatekeeper's, kept on the case and never in its way. `RunNotFound` as above.
        """
        _check_keys(session_id, run_id)
        said = feedback(self._ids, useful=useful, actor=actor, comment=comment, verdict=verdict)
        now_us = self._clock.now_us()
        return await self._run(lambda batch: said.record(batch, session_id, run_id, now_us), run_id)

    async def clear_context(self, session_id: str, *, actor: str | None = None) -> None:
        """Record that later runs of the session hear nothing of earlier ones; `SessionNotFound` if there is none."""
        check_id("session_id", session_id)
        record = clear_context(session_id, actor)
        now_us = self._clock.now_us()
        await self._run(lambda batch: record(batch, now_us))

    async def record_system(
        self, model: type[SystemEvent], *, event_id: str | None = None, seq_expected: int | None = None, **fields: Any
    ) -> Recorded:
        """Record a decision about the ledger itself, such as `TokenCreated`, in the stream `sys` (SPEC D2).

        Said twice with one `event_id` it is recorded once. With `seq_expected`, `AppendConflict` unless the stream is
        at that position. `ValueError` for fields that such an event does not have.
        """
        said = Statement(model, fields, event_id, seq_expected)
        now_us = self._clock.now_us()
        return await self._run(lambda batch: said.record(batch, now_us))

    async def rebuild(self) -> RebuildReport:
        """Make every projection anew from events, run by run, while others go on appending."""
        return await rebuild_all(self._path, self._run)

    async def close(self) -> None:
        """Write what was submitted, then let go of the file; whoever opens it next ends the runs still open.

        Whoever waits may be cancelled: closing goes on to its end, which a later call waits for.
        """
        if self._closing is None or self._closing.cancelled():
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._reader.close()
            await self._eraser.tidy()
        finally:
            await asyncio.to_thread(self._parts.close)

    async def __aenter__(self) -> Ledger:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, job: Callable[[Batch], T], *run_ids: str) -> T:
        # Whoever waits may be cancelled; the job is done all the same, or not at all.
        return await asyncio.shield(asyncio.wrap_future(self._parts.writer.run(job, run_ids)))

    async def _call(self, action: Callable[[], T]) -> T:
        return await asyncio.shield(asyncio.wrap_future(self._parts.writer.call(action)))


def _open(
    path: Path,
    clock: WallClock,
    ids: IdSource,
    session_ttl_us: int | None,
    limits: WriterLimits,
    lock_timeout_s: float,
) -> _Parts:
    try:
        with contextlib.ExitStack() as undo:
            lock = lock_of(path)
            undo.callback(lock.close)
            _, identity = ensure_current(path, lock, ids=ids)
            owners, owner_id = Owners(Path(f"{path}.owners")), ids.writer_id()
            with lock.held(OPEN_TIMEOUT_S):
                owner = owners.register(owner_id)
            undo.callback(owner.close)
            setting = Setting(identity.ledger_id, owner_id, _event_ids(ids.writer_id()), session_ttl_us)
            store = SqliteStore(path, lock, setting, clock, lock_timeout_s=lock_timeout_s)
            parts = _Parts(lock, owners, owner, store, Writer(store, limits))
            undo.pop_all()
            undo.callback(parts.close)
            parts.recover(clock)
            undo.pop_all()
    except LedgerUnavailable as error:
        raise LedgerUnreadable(path, f"cannot be opened ({error.problem})") from error
    except OSError as error:
        raise LedgerUnreadable(path, f"cannot be opened ({error.strerror})") from error
    return parts


def _event_ids(writer_id: str) -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"{writer_id}:{next(numbers)}"


def _check_keys(session_id: str, run_id: str) -> None:
    check_id("session_id", session_id)
    check_id("run_id", run_id)


def _close_unwanted(opening: asyncio.Future[_Parts]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        asyncio.get_running_loop().run_in_executor(None, opening.result().close)


def _ttl_us(session_ttl_s: float | None) -> int | None:
    if session_ttl_s is None:
        return None
    if isinstance(session_ttl_s, bool) or not 0 < session_ttl_s <= MAX_TTL_S:
        raise InvalidInput("session_ttl_s", f"must be above 0 and at most {MAX_TTL_S} seconds, not {session_ttl_s!r}")
    return round(session_ttl_s * 1_000_000)
