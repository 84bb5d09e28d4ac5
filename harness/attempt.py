"""One attempt at an operation, from the decision to let it through to the record of its end.

Starting is awaited until it is durable, because nothing may happen without a record (SPEC E3). Ends are submitted in
the same order and not awaited: they are durable before the next boundary is crossed or the run's block is left (D12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from harness import events as e
from harness.budget import Excess, TokenUsage, find_excess, find_overrun, tool_resource
from harness.cancellation import CancelReason
from harness.capture import error_type, keep_content
from harness.content import Capture, Content, SealedContent, encode_content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import LedgerUnavailable
from harness.ids import boundary_path
from harness.journal import Permit, Recorded
from harness.live import LiveRun
from harness.retry import FailureType, OperationKind, RetryPolicy, classify
from harness.waiting import result_of


@dataclass(frozen=True, slots=True)
class Operation:
    """A call at a boundary, with everything that its record says of it."""

    kind: str
    """`model`, `tool` or `guard`."""
    name: str
    operation: OperationKind
    policy: RetryPolicy
    ordinal: int
    fn: Callable[..., Any]
    args: Mapping[str, Any]
    model: str | None = None
    call_id: str | None = None
    tool_key: str | None = None
    effect: str | None = None

    @property
    def charges(self) -> dict[str, int]:
        """The calls that one attempt is charged before it starts."""
        if self.kind == "model":
            return {"model_calls": 1}
        return {"tool_calls": 1, tool_resource(self.name): 1} if self.kind == "tool" else {}


class Attempt:
    """One attempt of `operation`. Its methods may be called from any thread."""

    def __init__(self, engine: Engine, run: RunContext, operation: Operation, number: int) -> None:
        self.engine = engine
        self.run = run
        self.operation = operation
        self.number = number
        self.live: LiveRun = run.live
        path = (operation.kind, operation.name, str(operation.ordinal), str(number))
        self.boundary = boundary_path(run.scope, operation.kind, operation.name, operation.ordinal, number)
        self._segments = path
        self._permit: Permit | None = None
        self._started_ns = 0
        self.attempt_id = ""

    async def start(self, given: Content) -> RunContext:
        """Decide, record, and wait until the record is durable; returns the context for the operation.

        Raises `RunEnded` if the run has ended or this attempt would pass a limit, `LedgerUnavailable` if it cannot
        be recorded; in both cases the operation must not be invoked.
        """
        self._permit = await self._take_permit()
        try:
            with self.live.lock:
                self.live.check_running()
                excess = self._excess(given)
                recorded = self._record_start(given) if excess is None else self._record_refusal(excess)
            if recorded is not None:
                await self._durable(recorded, started=excess is None)
        except BaseException:
            self._permit.release()
            raise
        if excess is not None:
            self._permit.release()
            raise self.live.ended(excess)
        return self.run.inside(self._segments, self.attempt_id)

    def succeed(self, result: object, usage: TokenUsage | None) -> None:
        """Record that the operation returned `result`; above a limit, the run ends and later work is refused."""
        duration_us = self._duration_us()
        content = encode_content(result)
        with self.live.lock:
            if self._is_late():
                self._finish_late(duration_us, usage, error=None)
                return
            fields, contents, overflow = self.keep("output", content)
            end = self._event(e.AttemptSucceeded, duration_us=duration_us, **fields)
            self._end((end, *self._settlement(usage)), contents, overflow)

    def fail(self, error: BaseException) -> float | None:
        """Record that the operation raised; the seconds after which to try again, or None if it is final."""
        duration_us = self._duration_us()
        failure = self._failure_of(error)
        usage = getattr(error, "usage", None)
        usage = usage if isinstance(usage, TokenUsage) else None
        with self.live.lock:
            if self._is_late():
                self._finish_late(duration_us, usage, error=error)
                return None
            delay_s, refused = self._next_delay_s(failure, error)
            fields, contents, overflow = self.keep("error", encode_content(str(error)))
            end = self._event(
                e.AttemptFailed,
                duration_us=duration_us,
                failure=failure.value,
                will_retry=delay_s is not None,
                error_type=error_type(error),
                **fields,
            )
            self._end((end, *self._settlement(usage), *self._retry(failure, delay_s, refused)), contents, overflow)
            return delay_s

    def abandon(self, reason: str) -> None:
        """Record that nobody waits for the operation any more."""
        with self.live.lock:
            if not self._is_late():
                self._end((self._event(e.AttemptAbandoned, reason=reason),))

    def keep(self, role: str, content: Content) -> tuple[dict[str, Any], tuple[SealedContent, ...], Excess | None]:
        """Event fields and contents for what the operation gave; what does not fit is kept as size and digest (H9)."""
        key = role if role == "error" else f"{self.operation.kind}_{role}"
        return keep_content(self.live, role, content, getattr(self.engine.capture, key))

    async def _take_permit(self) -> Permit:
        remaining_s = self.run.deadline.remaining_ns(self.engine.monotonic_clock) / 1e9
        try:
            return await self.engine.permit(max(remaining_s, 0.001))
        except LedgerUnavailable:
            if self.run.deadline.has_passed(self.engine.monotonic_clock):
                self.live.stop(CancelReason.DEADLINE_EXCEEDED)
                raise self.live.ended() from None
            self.live.stop(CancelReason.LEDGER_UNAVAILABLE)
            raise

    def _excess(self, given: Content) -> Excess | None:
        if self.run.deadline.has_passed(self.engine.monotonic_clock):
            return Excess("deadline_us", self.live.elapsed_us(), self.live.state.timeout_us)
        return find_excess(self.live.state.limits, self.live.state.usage, self._amounts(given))

    def _amounts(self, given: Content) -> dict[str, int]:
        stored = self._captures_input() and len(given.data) > 0
        return {**self.operation.charges, **({"run_bytes": len(given.data)} if stored else {})}

    def _captures_input(self) -> bool:
        return getattr(self.engine.capture, f"{self.operation.kind}_input") is Capture.FULL

    def _record_start(self, given: Content) -> Future[Recorded]:
        live, operation = self.live, self.operation
        self.attempt_id = live.next_attempt_id()
        sealed, is_new = live.sealer.seal(given, keep=self._captures_input())
        scope = "/".join(self.boundary.rsplit("/", 4)[:-4])
        is_ambiguous = any(attempt.scope == scope for attempt in live.state.open_attempts.values())
        granted = self._event(
            e.ReservationGranted, kind=operation.kind, name=operation.name, usage=self._amounts(given)
        )
        started = self._event(
            e.AttemptStarted,
            kind=operation.kind,
            name=operation.name,
            operation=operation.operation.value,
            attempt=self.number,
            max_attempts=operation.policy.max_attempts,
            model=operation.model,
            call_id=operation.call_id,
            tool_key=operation.tool_key,
            effect=operation.effect,
            ambiguous=True if is_ambiguous else None,
            input_digest=sealed.digest,
            input_bytes=sealed.size_bytes,
            input_stored=self._captures_input(),
        )
        recorded = live.record(granted, started, contents=(sealed,) if is_new else ())
        self._started_ns = self.engine.monotonic_clock.now_ns()
        return recorded

    def _record_refusal(self, excess: Excess) -> Future[Recorded] | None:
        is_late = excess.resource == "deadline_us"
        rejected = self.live.event(
            e.ReservationRejected,
            boundary=self.boundary,
            parent_attempt_id=self.run.attempt_id,
            kind=self.operation.kind,
            name=self.operation.name,
            resource=excess.resource,
            amount=excess.amount,
            used=excess.used,
            limit=excess.limit,
        )
        reason = CancelReason.DEADLINE_EXCEEDED if is_late else CancelReason.BUDGET_EXHAUSTED
        return self.live.stop(reason, excess=excess, before=(rejected,)).recorded

    async def _durable(self, recorded: Future[Recorded], *, started: bool) -> None:
        try:
            await result_of(recorded)
        except asyncio.CancelledError:
            if started:
                self.abandon("NOT_INVOKED")
            raise
        except LedgerUnavailable:
            raise
        except Exception as error:
            # The run was ended or fenced by someone else, whose record is the outcome.
            raise self.live.ended() from error

    def _event(self, model: type[e.RunEvent], /, **fields: Any) -> e.RunEvent:
        stamp = {
            "boundary": self.boundary,
            "parent_attempt_id": self.run.attempt_id,
            "attempt_id": self.attempt_id,
        }
        return self.live.event(model, **(stamp | fields))

    def _end(
        self, events: tuple[e.RunEvent, ...], contents: tuple[SealedContent, ...] = (), overflow: Excess | None = None
    ) -> None:
        """Submit the end of the attempt, unless the journal failed: then the next boundary or the exit says so (D1)."""
        permit = self._permit
        assert permit is not None, "an attempt that ends was started"
        if self.live.failure is not None:
            permit.release()
            return
        recorded = self.live.record(*events, contents=contents)
        recorded.add_done_callback(lambda _: permit.release())
        overrun = overflow or find_overrun(self.live.state.limits, self.live.state.usage)
        if overrun is not None:
            self.live.stop(CancelReason.BUDGET_EXHAUSTED, excess=overrun)

    def _settlement(self, usage: TokenUsage | None) -> tuple[e.RunEvent, ...]:
        if self.operation.kind != "model":
            return ()
        known = usage or TokenUsage()
        return (self._event(e.UsageSettled, usage=known.as_map() or None, complete=known.is_complete),)

    def _retry(self, failure: FailureType, delay_s: float | None, refused: str | None) -> tuple[e.RunEvent, ...]:
        if delay_s is not None:
            delay_us = round(delay_s * 1_000_000)
            fields = {"failure": failure.value, "next_attempt": self.number + 1, "delay_us": delay_us}
            return (self._event(e.RetryScheduled, **fields),)
        if refused is not None:
            return (self._event(e.RetryRefused, failure=failure.value, reason=refused),)
        return ()

    def _next_delay_s(self, failure: FailureType, error: BaseException) -> tuple[float | None, str | None]:
        """Seconds until the next attempt, or None and, where only the run forbids it, why."""
        if not self.operation.policy.permits(failure, self.number):
            return None, None
        if self.live.termination is not None:
            return None, self.live.termination.reason
        delay_s = self.operation.policy.delay_s(self.number, self.engine.ids.fraction())
        delay_s = max(delay_s, getattr(error, "retry_after_s", None) or 0.0)
        if delay_s * 1e9 >= self.run.deadline.remaining_ns(self.engine.monotonic_clock):
            return None, FailureType.DEADLINE_EXCEEDED.value
        return delay_s, None

    def _failure_of(self, error: BaseException) -> FailureType:
        if isinstance(error, asyncio.CancelledError):
            return FailureType.CANCELLED
        return classify(error, self.engine.classifiers)

    def _is_late(self) -> bool:
        return self.attempt_id not in self.live.state.open_attempts

    def _finish_late(self, duration_us: int, usage: TokenUsage | None, error: BaseException | None) -> None:
        if self.live.failure is not None or self.attempt_id not in self.live.state.abandoned_attempts:
            return
        name = error_type(error) if error is not None else None
        fields = {"duration_us": duration_us, "succeeded": error is None, "error_type": name}
        self.live.record(self._event(e.AttemptFinishedLate, **fields), *self._settlement(usage))

    def _duration_us(self) -> int:
        return max(0, self.engine.monotonic_clock.now_ns() - self._started_ns) // 1_000
