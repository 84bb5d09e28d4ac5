"""Whether an attempt may start: a permit, the run, its deadline, its limits, a durable record, in this order (D12).

Nothing may happen without a record (SPEC E3), so a start is awaited until it is durable. What came meanwhile still
counts: if the run was told to stop by then, the operation is not invoked.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass

from harness import events as e
from harness.accounts import Call
from harness.attempt import Attempt
from harness.budget import Excess
from harness.cancellation import CancelReason
from harness.content import Content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import LedgerUnavailable
from harness.ids import boundary_path
from harness.interruption import Cause, Interruption
from harness.journal import Permit, Recorded
from harness.live import DEADLINE_PASSED
from harness.operation import Operation
from harness.state import scope_of
from harness.waiting import result_of

MIN_PERMIT_TIMEOUT_S = 0.001
"""At the deadline a permit is still asked for, since the refusal is recorded too."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Attempt `number` of an operation asks to be let through."""

    engine: Engine
    run: RunContext
    operation: Operation
    number: int
    given: Content
    interruption: Interruption

    async def attempt(self) -> Attempt:
        """The attempt, recorded as started.

        Raises `RunEnded` or `ScopeExhausted` if the run or a scope has ended or this attempt would pass a limit of
        it, `LedgerUnavailable` if it cannot be recorded; the operation must not be invoked then.
        """
        permit = await self._permit()
        try:
            return await self._admitted()
        finally:
            # Only until the start is durable: an operation that crosses boundaries itself must not wait for itself.
            permit.release()

    async def _admitted(self) -> Attempt:
        live, accounts = self.run.live, self.run.accounts
        with live.lock:
            accounts.check_not_ended()
            if (excess := accounts.find_refusal(self._amounts, self._call)) is None:
                attempt, recorded = self._start()
            else:
                recorded = self._refuse(excess)
        if excess is not None:
            refused = accounts.error(excess)
            self.interruption.arm(self.engine.close_timeout_s, Cause(refused, lambda: refused))
            await self._durable(recorded)
            raise refused
        try:
            self.interruption.arm(self._remaining_s(), Cause(DEADLINE_PASSED, accounts.expire))
            await self._durable(recorded)
            with live.lock:
                accounts.check_open()
        except BaseException:
            attempt.abandon(e.NOT_INVOKED)
            raise
        return attempt

    @property
    def _boundary(self) -> str:
        operation = self.operation
        return boundary_path(self.run.scope, operation.kind, operation.name, operation.ordinal, self.number)

    @property
    def _amounts(self) -> dict[str, int]:
        return self.operation.amounts(len(self.given.data) if self._keeps_input else 0)

    @property
    def _call(self) -> Call | None:
        """What counts as a repetition; another attempt at the same call is none."""
        operation = self.operation
        return (operation.name, self.given.fingerprint) if operation.kind == "tool" and self.number == 1 else None

    @property
    def _keeps_input(self) -> bool:
        return self.given.is_kept(self.operation.capture(self.engine.capture, "input"))

    def _remaining_s(self) -> float:
        return self.run.live.deadline.remaining_ns(self.engine.monotonic_clock) / 1e9

    async def _permit(self) -> Permit:
        live = self.run.live
        if live.termination is not None:
            raise live.ended()
        try:
            return await self.engine.permit(max(self._remaining_s(), MIN_PERMIT_TIMEOUT_S))
        except LedgerUnavailable:
            live.check_running()
            live.stop(CancelReason.LEDGER_UNAVAILABLE)
            raise

    def _start(self) -> tuple[Attempt, Future[Recorded]]:
        """Charge the attempt and record its start, in one append; lock held."""
        live, operation, engine = self.run.live, self.operation, self.engine
        attempt = Attempt(engine, self.run, operation, self.number, live.next_attempt_id())
        sealed, is_new = live.sealer.seal(self.given, keep=self._keeps_input)
        is_ambiguous = any(other.scope == scope_of(attempt.boundary) for other in live.state.open_attempts.values())
        accounts, call, amounts = self.run.accounts, self._call, self._amounts
        named = {"kind": operation.kind, "name": operation.name}
        granted = attempt.event(e.ReservationGranted, usage=amounts, scope_id=accounts.scope_id, **named)
        would = accounts.would_reject(amounts, call, **attempt.stamp, **named)
        if call is not None:
            accounts.remember(call)
        started = attempt.event(
            e.AttemptStarted,
            **named,
            scope_id=accounts.scope_id,
            operation=str(operation.operation),
            attempt=self.number,
            max_attempts=operation.policy.max_attempts,
            model=operation.model,
            call_id=operation.call_id,
            tool_key=operation.tool_key,
            effect=operation.effect,
            timeout_us=None if attempt.timeout_s is None else round(attempt.timeout_s * 1_000_000),
            ambiguous=True if is_ambiguous else None,
            input_digest=sealed.digest,
            input_bytes=sealed.size_bytes,
            input_stored=self._keeps_input,
        )
        return attempt, live.record(granted, *would, started, contents=(sealed,) if is_new else ())

    def _refuse(self, excess: Excess) -> Future[Recorded]:
        """End the run or scope at the limit that this attempt would pass, and record both; lock held."""
        live, operation = self.run.live, self.operation
        rejected = live.event(
            e.ReservationRejected,
            boundary=self._boundary,
            parent_attempt_id=self.run.attempt_id,
            kind=operation.kind,
            name=operation.name,
            **excess.as_fields(),
        )
        return self.run.accounts.refuse(excess, rejected)

    async def _durable(self, recorded: Future[Recorded]) -> None:
        live = self.run.live
        try:
            await result_of(recorded)
        except LedgerUnavailable:
            raise
        except asyncio.CancelledError as error:
            lost = live.failure
            if isinstance(lost, LedgerUnavailable) and self.interruption.take(error) is not None:
                raise LedgerUnavailable(str(lost)) from error
            raise
        except Exception as error:
            # The run was ended or fenced by someone else, whose record is the outcome.
            raise live.ended() from error
