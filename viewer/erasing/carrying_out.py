"""Asking for erasures, confirming them, and carrying them out: one at a time, also when nobody waits for it any more.

Where one person suffices, what he asks for is erased; where two have the right, it waits for the other one. Which of
both it is, only the ledger says.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from harness.clock import WallClock
from ledger.erasing.erasing import ErasureReport
from ledger.erasing.errors import ErasureRequestNotFound, SecondPersonNeeded
from ledger.erasing.two_persons import ErasureRequest
from ledger.errors import LedgerError
from viewer.audit.history import SystemHistory
from viewer.erasing.known import Erasure, What, erasures_known
from viewer.http.refusals import ReadOnly

log = logging.getLogger(__name__)

ANSWERED_WITHIN_S = 5.0
"""How long an answer waits for what was decided to be gone; a large file takes longer, and goes on without it."""

Heard = Callable[[int], None]


class Eraser(Protocol):
    """The part of `ledger.Ledger` that is used here."""

    async def erase(
        self,
        *,
        run: tuple[str, str] | None = ...,
        session: str | None = ...,
        digest: str | None = ...,
        actor: str | None = ...,
        reason: str = ...,
        on_progress: Heard = ...,
    ) -> ErasureReport:
        """Erase it, on the word of one person; `SecondPersonNeeded` where that is not enough."""

    async def ask_to_erase(
        self,
        *,
        actor: str,
        run: tuple[str, str] | None = ...,
        session: str | None = ...,
        digest: str | None = ...,
        reason: str = ...,
    ) -> ErasureRequest:
        """Ask for the same."""

    async def confirm_erasure(self, request_id: str, *, actor: str, on_progress: Heard = ...) -> ErasureReport:
        """Carry out what another person asked for."""


class ErasureUnderWay(LedgerError):
    """This server carries out one erasure at a time."""

    code = "erasure_under_way"

    def __init__(self) -> None:
        super().__init__("this server is erasing something: try again once that has come to its end")


class Erasures:
    """The erasures of one server's ledger."""

    def __init__(
        self,
        eraser: Eraser | None,
        history: SystemHistory,
        clock: WallClock,
        *,
        answered_within_s: float = ANSWERED_WITHIN_S,
    ) -> None:
        self._eraser = eraser
        self._history = history
        self._clock = clock
        self._answered_within_s = answered_within_s
        self._task: asyncio.Task[ErasureReport] | None = None

    @property
    def is_possible(self) -> bool:
        """Whether anything can be erased here at all."""
        return self._eraser is not None

    async def known(self, session_prefix: str | None = None) -> list[Erasure]:
        """Those on record that are about such sessions, the newest first."""
        found = erasures_known(await self._history.read_on(), self._clock.now_us())
        return [each for each in found if each.is_in(session_prefix)]

    async def ask(self, what: What, actor: str | None) -> Erasure:
        """Erase it, or ask another person to confirm that, and say which; the ledger's errors where it may not be."""
        eraser = self._open()
        run = (what.session_id, what.run_id) if what.session_id and what.run_id else None
        session = what.session_id if run is None else None
        erase = partial(eraser.erase, run=run, session=session, digest=what.digest, reason=what.reason, actor=actor)
        try:
            await self._carry_out(lambda heard: erase(on_progress=heard))
        except SecondPersonNeeded:
            if actor is None:
                raise
            waiting = await self._waiting(what, actor)
            if waiting is not None:
                return waiting
            asked = await eraser.ask_to_erase(
                run=run, session=session, digest=what.digest, reason=what.reason, actor=actor
            )
            return await self._one(asked.request_id)
        about = (what.scope, what.session_id, what.run_id, what.digest)
        same = (each for each in await self.known() if each.erasure_id is not None and _about(each.what) == about)
        # What went together with something else leaves nothing to erase, and no decision of its own.
        return next(same, Erasure(what, "done", content_count=0, size_bytes=0))

    async def confirm(self, request_id: str, actor: str | None, session_prefix: str | None = None) -> Erasure:
        """Carry out what another person asked for."""
        eraser = self._open()
        asked = await self._one(request_id)
        if not asked.is_in(session_prefix):
            raise ErasureRequestNotFound(request_id)
        if actor is None:
            raise SecondPersonNeeded(asked.asked_by, None, ())
        await self._carry_out(lambda heard: eraser.confirm_erasure(request_id, actor=actor, on_progress=heard))
        return await self._one(request_id)

    async def _waiting(self, what: What, actor: str) -> Erasure | None:
        """What he asked for before, and nobody has confirmed yet: a form that is sent twice asks once."""
        return next(
            (each for each in await self.known() if (each.state, each.what, each.asked_by) == ("asked", what, actor)),
            None,
        )

    async def _one(self, request_id: str) -> Erasure:
        found = next((each for each in await self.known() if each.request_id == request_id), None)
        if found is None:
            raise ErasureRequestNotFound(request_id)
        return found

    async def _carry_out(self, erase: Callable[[Heard], Awaitable[ErasureReport]]) -> None:
        """Until it is refused, or done; or only decided, where it takes long: then it goes on behind the answer."""
        if self._task is not None and not self._task.done():
            raise ErasureUnderWay
        decided = asyncio.Event()

        async def carry_out() -> ErasureReport:
            return await erase(lambda _: decided.set())

        self._task = task = asyncio.create_task(carry_out())
        task.add_done_callback(_told)
        deciding = asyncio.create_task(decided.wait())
        try:
            await asyncio.wait({task, deciding}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({task}, timeout=self._answered_within_s)
        finally:
            deciding.cancel()
        if task.done():
            task.result()

    def _open(self) -> Eraser:
        if self._eraser is None:
            raise ReadOnly
        return self._eraser


def _about(what: What) -> tuple[str, str | None, str | None, str | None]:
    return what.scope, what.session_id, what.run_id, what.digest


def _told(task: asyncio.Task[ErasureReport]) -> None:
    """What is left of one that did not come to its end, `tachograph erase --finish` does later."""
    with contextlib.suppress(asyncio.CancelledError):
        error = task.exception()
        if error is not None and not isinstance(error, LedgerError):
            log.warning("an erasure did not come to its end: %s", type(error).__name__)
