"""The ledger as a program sees it: opened once, given to a harness as its journal, and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from harness.clock import SystemWallClock, WallClock
from harness.errors import InvalidInput
from harness.events import SystemEvent
from harness.ids import IdSource, RandomIds, check_id
from harness.journal import Recorded
from ledger.annotations import evaluation, feedback
from ledger.append.deciding import Draft
from ledger.append.front import WriterLimits
from ledger.append.unfolded import Statement, clear_context
from ledger.cancelling import CancelRequest
from ledger.engine import Engine, LedgerJournal
from ledger.erasing.erasing import Eraser, ErasureLimits
from ledger.erasing.forgetting import Forgetting
from ledger.erasing.two_persons import TwoPersons
from ledger.following.followers import Followers
from ledger.measures import Measures
from ledger.proving import Proving
from ledger.reading.reader import LedgerReader
from ledger.rebuild import RebuildReport
from ledger.recovery import Recovery
from ledger.store.engine import open_sqlite
from ledger.store.place import is_postgres, path_of
from ledger.store.sqlite import LOCK_TIMEOUT_S
from ledger.tokens.tokens import Tokens

if TYPE_CHECKING:
    from ledger.audit.signing.signing import Signing

T = TypeVar("T")

LEASE_S = 15.0
"""How long an owner in a database may be silent before its runs are ended."""
MAX_TTL_S = 100 * 366 * 24 * 3600


class Ledger(Forgetting, Proving):
    """An open ledger, which any number of processes may have open at the same time."""

    def __init__(self, engine: Engine, clock: WallClock, ids: IdSource, erasure_limits: ErasureLimits) -> None:
        self._engine = engine
        self._clock = clock
        self._ids = ids
        self._persons = TwoPersons(engine.reader, clock)
        self._eraser = Eraser(
            engine.erasing, lambda: f"erasure-{ids.writer_id()}", erasure_limits, self._persons.permit
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
        lease_s: float = LEASE_S,
        erasure_limits: ErasureLimits | None = None,
        signing: Signing | None = None,
        adopts: bool = False,
    ) -> Ledger:
        """Open a ledger, made or migrated where needed, and end the runs whose processes have died.

        `url` is `sqlite:///FILE`, a path, or `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME`.
        `session_ttl_s` is how long a new session lives after its last activity. On a file `lock_timeout_s` is how long
        an append waits for other processes; in a database `lease_s` is how long an owner may be silent. With
        `signing`, checkpoints of the log are signed from now on. `adopts` opens what a dump was restored into, for
        `ledger.copies.adopting`. Raises a `LedgerError` for what cannot be a ledger, and then nothing was changed.
        """
        clock, ids, limits = wall_clock or SystemWallClock(), ids or RandomIds(), limits or WriterLimits()
        ttl_us = _ttl_us(session_ttl_s)
        open_it: Callable[[], Engine]
        # An engine is imported only where it is used: its driver may not be installed.
        if is_postgres(url):
            from ledger.store.postgres.engine import open_postgres

            open_it = partial(open_postgres, str(url), clock, ids, ttl_us, limits, lease_s, adopts)
        else:
            open_it = partial(open_sqlite, path_of(url), clock, ids, ttl_us, limits, lock_timeout_s)
        opening: asyncio.Task[Engine] = asyncio.create_task(asyncio.to_thread(open_it))
        try:
            engine = await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The thread cannot be stopped; what it opens must not stay open.
            opening.add_done_callback(_close_unwanted)
            raise
        ledger = cls(engine, clock, ids, erasure_limits or ErasureLimits())
        if signing is not None:
            try:
                await ledger._begin_signing(url, signing)
            except BaseException:
                await ledger.close()
                raise
        return ledger

    @property
    def journal(self) -> LedgerJournal:
        """Where a harness records its runs: `Harness(journal=ledger.journal)`."""
        return self._engine.writer

    @property
    def reader(self) -> LedgerReader:
        """Reads of the same ledger."""
        return self._engine.reader

    def measures(self) -> Measures:
        """What was counted since it was opened: latencies, batches, failures, what waits, and checkpoints."""
        signing = None if self._checkpoints is None else self._checkpoints.measures()
        return replace(self._engine.writer.measures(), signing=signing)

    @property
    def followers(self) -> Followers:
        """Named followers, which go on where they were, in whatever process (SPEC E8)."""
        return Followers(self._engine.follower_places, self._engine.reader)

    @property
    def tokens(self) -> Tokens:
        """Who may do what over the network."""
        return Tokens(self._engine.tokens, self._engine.reader, self._clock, self._ids)

    async def open_session(self, session_id: str) -> None:
        """See to it that the session exists."""
        check_id("session_id", session_id)
        now_us = self._clock.now_us()
        await self._run(lambda draft: draft.open_session(session_id, now_us))

    async def recover(self) -> Recovery:
        """End the runs whose processes have died, as opening a ledger has done once."""
        return await asyncio.to_thread(self._engine.recover)

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
        await self._run(lambda draft: said.record(draft, session_id, run_id, now_us), run_id)

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
        return await self._run(lambda draft: said.record(draft, session_id, run_id, now_us), run_id)

    async def cancel(
        self, session_id: str, run_id: str, *, reason: str = "USER_REQUESTED", actor: str | None = None
    ) -> bool:
        """Ask that the run be cancelled, whichever process it runs in, which hears it within a second (SPEC E7, D3).

        False if that was asked before. A run that succeeds before it hears has succeeded; one whose process has died
        is ended as cancelled by recovery. `AlreadyTerminated` for a run that has ended, `RunNotFound` as above.
        """
        _check_keys(session_id, run_id)
        asked = CancelRequest(reason, actor)
        now_us = self._clock.now_us()
        return await self._run(lambda draft: asked.record(draft, session_id, run_id, now_us), run_id)

    async def clear_context(self, session_id: str, *, actor: str | None = None) -> None:
        """Record that later runs of the session hear nothing of earlier ones; `SessionNotFound` if there is none."""
        check_id("session_id", session_id)
        record = clear_context(session_id, actor)
        now_us = self._clock.now_us()
        await self._run(lambda draft: record(draft, now_us))

    async def record_system(
        self, model: type[SystemEvent], *, event_id: str | None = None, seq_expected: int | None = None, **fields: Any
    ) -> Recorded:
        """Record a decision about the ledger itself, such as `TokenCreated`, in the stream `sys` (SPEC D2).

        Said twice with one `event_id` it is recorded once. With `seq_expected`, `AppendConflict` unless the stream is
        at that position. `InvalidInput` for fields that such an event does not have.
        """
        said = Statement(model, fields, event_id, seq_expected)
        now_us = self._clock.now_us()
        return await self._run(lambda draft: said.record(draft, now_us))

    async def rebuild(self) -> RebuildReport:
        """Make every projection anew from events, run by run, while others go on appending."""
        return await self._engine.rebuild()

    async def close(self) -> None:
        """Write what was submitted, then let go of the ledger; whoever opens it next ends the runs still open.

        Whoever waits may be cancelled: closing goes on to its end, which a later call waits for.
        """
        if self._closing is None or self._closing.cancelled():
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            if self._checkpoints is not None:
                await self._checkpoints.close()
            await self._engine.reader.close()
            await self._eraser.tidy()
        finally:
            await asyncio.to_thread(self._engine.close)

    async def __aenter__(self) -> Ledger:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, job: Callable[[Draft], T], *run_ids: str) -> T:
        # Whoever waits may be cancelled; the job is done all the same, or not at all.
        return await asyncio.shield(asyncio.wrap_future(self._engine.writer.run(job, run_ids)))


def _check_keys(session_id: str, run_id: str) -> None:
    check_id("session_id", session_id)
    check_id("run_id", run_id)


def _close_unwanted(opening: asyncio.Task[Engine]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        asyncio.get_running_loop().run_in_executor(None, opening.result().close)


def _ttl_us(session_ttl_s: float | None) -> int | None:
    if session_ttl_s is None:
        return None
    if isinstance(session_ttl_s, bool) or not 0 < session_ttl_s <= MAX_TTL_S:
        raise InvalidInput("session_ttl_s", f"must be above 0 and at most {MAX_TTL_S} seconds, not {session_ttl_s!r}")
    return round(session_ttl_s * 1_000_000)
