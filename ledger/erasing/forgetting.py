"""What an open ledger can be told to forget: the contents of a run, a session, or everything that is old enough."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.clock import WallClock
from harness.errors import InvalidInput
from harness.events import ErasureRequested, ErasureStage, SystemEvent
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import IdSource, check_code, check_id, check_name
from harness.journal import Recorded
from ledger.erasing.erasing import Eraser, ErasureReport, Order
from ledger.erasing.erasures import ErasureList, decisions
from ledger.erasing.two_persons import REQUEST_TTL_S, ErasureRequest, TwoPersons
from ledger.reading.reader import LedgerReader

_DIGEST = re.compile("[0-9a-f]{64}")

MAX_AGE_S = 100 * 366 * 24 * 3600


def _nothing(_: int) -> None:
    """Nobody wants to hear how far it is."""


class Forgetting:
    """Erasing, as a part of `Ledger`."""

    _eraser: Eraser
    _persons: TwoPersons
    _clock: WallClock
    _ids: IdSource

    async def record_system(self, model: type[SystemEvent], **fields: Any) -> Recorded:
        """Record a decision about the ledger itself."""
        raise NotImplementedError

    @property
    def reader(self) -> LedgerReader:
        """Reads of the same ledger."""
        raise NotImplementedError

    async def erase(
        self,
        *,
        run: tuple[str, str] | None = None,
        session: str | None = None,
        digest: str | None = None,
        actor: str | None = None,
        reason: str = "REQUESTED",
        dry_run: bool = False,
        on_progress: Callable[[int], None] = _nothing,
    ) -> ErasureReport:
        """Erase what is stored of a run (session and run id), a session, or one content, for good (SPEC E10, D19).

        Of a run that goes on, what it stores later stays. Erasing again what was erased changes nothing. Raises
        `RunNotFound`, `SessionNotFound` or `ContentNotFound`, and `SecondPersonNeeded` where two persons may erase:
        then one asks (`ask_to_erase`) and the other confirms. `dry_run` only says how much there is to erase;
        `on_progress` hears how many runs are done, and 0 as soon as it is decided.
        """
        order = order_for(run=run, session=session, digest=digest, actor=actor, reason=reason)
        return await (self._eraser.preview(order) if dry_run else self._eraser.erase(order, on_progress))

    async def erase_older_than(
        self,
        age_s: float,
        *,
        actor: str | None = None,
        reason: str = "RETENTION",
        dry_run: bool = False,
        on_progress: Callable[[int], None] = _nothing,
    ) -> ErasureReport:
        """Erase the contents of all runs that ended longer ago than `age_s`; the events stay."""
        order = retention_order(before_us=self._before_us(age_s), actor=actor, reason=reason)
        return await (self._eraser.preview(order) if dry_run else self._eraser.erase(order, on_progress))

    async def ask_to_erase(
        self,
        *,
        actor: str,
        run: tuple[str, str] | None = None,
        session: str | None = None,
        digest: str | None = None,
        older_than_s: float | None = None,
        reason: str = "REQUESTED",
    ) -> ErasureRequest:
        """Ask for what `erase` or, with `older_than_s`, `erase_older_than` does; another person confirms it.

        It has `REQUEST_TTL_S` for that.
        """
        check_name("actor", actor)
        if older_than_s is None:
            order = order_for(run=run, session=session, digest=digest, actor=actor, reason=reason)
        else:
            order = retention_order(before_us=self._before_us(older_than_s), actor=actor, reason=reason)
        await self._eraser.preview(order)
        request_id, now_us = f"request-{self._ids.writer_id()}", self._clock.now_us()
        request = ErasureRequest(request_id, order, now_us, now_us + REQUEST_TTL_S * 1_000_000)
        about = {"of_session_id": order.of_session_id, "of_run_id": order.of_run_id, "digest": order.digest}
        said = {"scope": order.scope, "reason": order.reason, "actor": actor, "before_us": order.before_us} | about
        await self.record_system(ErasureRequested, request_id=request_id, expires_us=request.expires_us, **said)
        return request

    async def confirm_erasure(
        self, request_id: str, *, actor: str, on_progress: Callable[[int], None] = _nothing
    ) -> ErasureReport:
        """Carry out what another person asked for.

        Raises `SecondPersonNeeded` for that person himself and for whoever has not the right, and
        `ErasureRequestNotFound`, `ErasureRequestExpired` or `ErasureAlreadyConfirmed`.
        """
        return await self._eraser.erase(await self._persons.confirmed(request_id, actor), on_progress)

    async def erasure_requests(self) -> list[ErasureRequest]:
        """Every erasure that somebody asked another one to confirm, the oldest first."""
        return await self._persons.requests()

    async def repeat_erasures(self, erasures: ErasureList) -> int:
        """Erase what was erased in another copy of this ledger, as far as that is not done here; how often.

        It may be repeated where it was cut short.
        """
        decided = {str(fields["erasure_id"]) async for fields in decisions(self.reader)}
        return len(await self._eraser.repeat([*erasures.orders()], erasures.told(), decided))

    async def finish_erasures(self) -> tuple[int, ErasureStage | None, str | None]:
        """Do what is left of erasures that were cut short, or that readers or the file's size were in the way of.

        How many there were, how far they have come now, and what is still in the way. The file is written anew, and
        whoever else wants to write waits meanwhile.
        """
        return await self._eraser.finish()

    def _before_us(self, age_s: float) -> int:
        if isinstance(age_s, bool) or not 0 <= age_s <= MAX_AGE_S:
            raise InvalidInput("age_s", f"must be from 0 to {MAX_AGE_S} seconds, not {age_s!r}")
        return self._clock.now_us() - round(age_s * 1_000_000)


def order_for(
    *, run: tuple[str, str] | None, session: str | None, digest: str | None, actor: str | None, reason: str
) -> Order:
    """An order that may be given: a run, a session, or one content, wherever it is or in that run."""
    if (run is None and session is None and digest is None) or (session is not None and (run or digest)):
        raise InvalidInput("erase", "needs one of run, session and digest; of these, run and digest go together")
    said = Order("RUN", check_code("reason", reason), None if actor is None else check_name("actor", actor))
    if session is not None:
        return replace(said, scope="SESSION", of_session_id=check_id("session_id", session))
    if run is not None:
        session_id, run_id = run
        said = replace(said, of_session_id=check_id("session_id", session_id), of_run_id=check_id("run_id", run_id))
    if digest is not None:
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise InvalidInput("digest", "must be 64 digits from 0 to f")
        said = replace(said, scope="DIGEST", digest=digest)
    return said


def retention_order(*, before_us: int, actor: str | None, reason: str) -> Order:
    """An order for the contents of all runs that ended before a moment."""
    if not -MAX_SAFE_INTEGER <= before_us <= MAX_SAFE_INTEGER:
        raise InvalidInput("older_than_s", "leads to a moment beyond all time")
    actor = None if actor is None else check_name("actor", actor)
    return Order("RETENTION", check_code("reason", reason), actor, before_us=before_us)
