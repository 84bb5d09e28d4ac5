"""Whether an attempt may start: a permit, the run, its deadline, its limits, a durable record, in this order (D12).

Nothing may happen without a record (SPEC E3), so a start is awaited until it is durable. What came meanwhile still
counts: if the run was told to stop by then, the operation is not invoked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from harness import events as e
from harness.boundary.attempt import Attempt
from harness.boundary.request import Request
from harness.budget.usage import DEADLINE, Excess, total
from harness.cancellation import CancelReason
from harness.concurrency.interruption import DEADLINE_PASSED, Cause, Interruption
from harness.concurrency.waiting import result_of
from harness.content import SealedContent
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import HarnessError, LedgerUnavailable
from harness.journal import Permit, Recorded

BATCH = "batch"
BATCH_NAME = "tools"


class Admission:
    """Attempts ask to be let through, all or none of them; those that a policy denied are not counted among them.

    Several are a batch, with a boundary of its own at which they are charged together (SPEC D6).
    """

    def __init__(
        self,
        engine: Engine,
        run: RunContext,
        requests: Sequence[Request],
        interruption: Interruption,
        batch: str | None = None,
    ) -> None:
        self.refusal: HarnessError | None = None
        """What was raised because a limit refused these attempts, once it was."""
        self._engine = engine
        self._run = run
        self._requests = requests
        self._wanted = [request for request in requests if request.denial is None]
        self._amounts = total(request.amounts for request in self._wanted)
        self._calls = [request.call for request in self._wanted if request.call is not None]
        self._interruption = interruption
        self._batch = batch

    async def attempts(self) -> list[Attempt]:
        """Those that no policy denied, recorded as started.

        Raises `RunEnded` or `ScopeExhausted` if the run or a scope has ended or they would pass a limit of it,
        `LedgerUnavailable` if it cannot be recorded; no operation must be invoked then.
        """
        permit = await self._permit()
        try:
            return await self._admitted()
        finally:
            # Only until the start is durable: an operation that crosses boundaries itself must not wait for itself.
            permit.release()

    async def _admitted(self) -> list[Attempt]:
        live, accounts = self._run.live, self._run.accounts
        attempts: list[Attempt] = []
        with live.lock:
            accounts.check_not_ended()
            excess = self._excess()
            if excess is None:
                attempts, recorded = self._start()
            else:
                recorded = self._refuse(excess)
        if excess is not None:
            refused = accounts.error(excess)
            self.refusal = None if excess.resource == DEADLINE else refused
            self._interruption.arm((self._engine.close_timeout_s, Cause(refused, lambda: refused)))
            await self._durable(recorded)
            raise refused
        try:
            arm_deadline(self._engine, self._run, self._interruption)
            await self._durable(recorded)
            with live.lock:
                accounts.check_granted()
        except BaseException:
            for attempt in attempts:
                attempt.abandon(e.NOT_INVOKED)
            raise
        return attempts

    async def _permit(self) -> Permit:
        live = self._run.live
        if live.termination is not None:
            raise live.ended()
        if self._engine.script is not None:
            given = {request.boundary: request.given.content for request in self._requests}
            await self._engine.script.turn(self._batch or self._requests[0].boundary, given)
        try:
            return await self._engine.permit(live.deadline.remaining_ns(live.monotonic_clock) / 1e9)
        except LedgerUnavailable:
            live.check_running()
            live.stop(CancelReason.LEDGER_UNAVAILABLE)
            raise

    def _excess(self) -> Excess | None:
        """What does not let all of them through; where none is left to let through, a deadline may still raise."""
        if self._wanted:
            return self._run.accounts.find_refusal(self._amounts, self._calls)
        self._run.accounts.check_open()
        return None

    def _start(self) -> tuple[list[Attempt], Future[Recorded]]:
        """Charge the attempts and record their start, with what policies decided, in one append; lock held."""
        decided: list[e.RunEvent] = []
        let_through: list[tuple[Request, Attempt, SealedContent]] = []
        contents: list[SealedContent] = []
        for request in self._requests:
            sealed, is_new = request.sealed()
            contents += [sealed] if is_new else []
            decided += request.decided(sealed.digest)
            if request.denial is None:
                let_through.append((request, request.attempt(), sealed))
        attempts = [attempt for _, attempt, _ in let_through]
        # Events are made in the order in which they are recorded, so that their times and ids are in it too.
        charged = self._charged(attempts[0]) if attempts else []
        starts = [request.started(attempt, sealed) for request, attempt, sealed in let_through]
        return attempts, self._run.live.record(*decided, *charged, *starts, contents=tuple(contents))

    def _charged(self, first: Attempt) -> list[e.RunEvent]:
        """The reservation, and the observed limits that would have refused it; lock held."""
        live, accounts = self._run.live, self._run.accounts
        fields = self._stamp if self._batch is not None else self._stamp | {"attempt_id": first.attempt_id}
        granted = live.event(e.ReservationGranted, usage=self._amounts, scope_id=accounts.scope_id, **fields)
        would = accounts.would_reject(self._amounts, self._calls, **fields)
        for call in self._calls:
            accounts.remember(call)
        return [granted, *would]

    def _refuse(self, excess: Excess) -> Future[Recorded]:
        """End the run or scope at the limit that they would pass, and record that with the refusal; lock held."""
        decided = [event for request in self._requests for event in request.decided()]
        rejected = self._run.live.event(e.ReservationRejected, **self._stamp, **excess.as_fields())
        return self._run.accounts.refuse(excess, *decided, rejected)

    @property
    def _stamp(self) -> dict[str, Any]:
        """Of the boundary at which they are charged."""
        if self._batch is None:
            return self._wanted[0].stamp
        parent = self._run.attempt_id
        return {"boundary": self._batch, "parent_attempt_id": parent, "kind": BATCH, "name": BATCH_NAME}

    async def _durable(self, recorded: Future[Recorded]) -> None:
        live = self._run.live
        try:
            await result_of(recorded)
        except LedgerUnavailable:
            raise
        except asyncio.CancelledError as error:
            lost = live.failure
            if isinstance(lost, LedgerUnavailable) and self._interruption.take(error) is not None:
                raise LedgerUnavailable(lost.problem) from error
            raise
        except Exception as error:
            # The run was ended or fenced by someone else, whose record is the outcome.
            raise live.ended() from error


def arm_deadline(engine: Engine, run: RunContext, interruption: Interruption, *bounds: tuple[float, Cause]) -> None:
    """Interrupt what is in flight when the deadline of its run or nested scope comes, and at other `bounds`."""
    remaining_s = run.deadline.remaining_ns(engine.monotonic_clock) / 1e9
    interruption.arm((remaining_s, Cause(DEADLINE_PASSED, run.accounts.expire)), *bounds)
