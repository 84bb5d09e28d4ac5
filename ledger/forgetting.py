"""What an open ledger can be told to forget: the contents of a run, a session, or everything that is old enough."""

from __future__ import annotations

from collections.abc import Callable

from harness.clock import WallClock
from harness.errors import InvalidInput
from harness.events import ErasureStage
from ledger.erasing import Eraser, ErasureReport, order_for, retention_order

MAX_AGE_S = 100 * 366 * 24 * 3600


def _nothing(_: int) -> None:
    """Nobody wants to hear how far it is."""


class Forgetting:
    """Erasing, as a part of `Ledger`."""

    _eraser: Eraser
    _clock: WallClock

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
        `RunNotFound`, `SessionNotFound` or `ContentNotFound`. `dry_run` only says how much there is to erase;
        `on_progress` hears how many runs are done.
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
        if isinstance(age_s, bool) or not 0 <= age_s <= MAX_AGE_S:
            raise InvalidInput("age_s", f"must be from 0 to {MAX_AGE_S} seconds, not {age_s!r}")
        before_us = self._clock.now_us() - round(age_s * 1_000_000)
        order = retention_order(before_us=before_us, actor=actor, reason=reason)
        return await (self._eraser.preview(order) if dry_run else self._eraser.erase(order, on_progress))

    async def finish_erasures(self) -> tuple[int, ErasureStage | None, str | None]:
        """Do what is left of erasures that were cut short, or that readers or the file's size were in the way of.

        How many there were, how far they have come now, and what is still in the way. The file is written anew, and
        whoever else wants to write waits meanwhile.
        """
        return await self._eraser.finish()
