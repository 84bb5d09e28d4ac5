"""One attempt at an operation, from its start to the record of its end.

Ends are submitted in the order of the run and not awaited: they are durable before the next boundary is crossed or the
run's block is left (SPEC D12).
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from harness import events as e
from harness.boundary.capture import error_content, error_type, keep_content
from harness.boundary.operation import Operation
from harness.budget.prices import usage_map
from harness.budget.usage import Excess, TokenUsage
from harness.content import Content, SealedContent, encode_content
from harness.context import RunContext
from harness.engine import Engine
from harness.journal import Recorded
from harness.live.run import LiveRun
from harness.live.sent import SentRequests
from harness.redaction import Captured, captured
from harness.retry import FailureType, TypedFailure, tell

E = TypeVar("E", bound=e.RunEvent)


class Attempt:
    """An attempt that was let through. Its methods may be called from any thread.

    Whoever waits for the operation says how that ended: `succeed`, `fail` or `abandon`, of which the first counts.
    As it may be a garbage collection that ends it, in the middle of a decision, these act when the run's lock is free.
    An abandoned operation that comes to its end after all ends with `finish_late`.
    """

    def __init__(
        self, engine: Engine, run: RunContext, operation: Operation, number: int, boundary: str, attempt_id: str
    ) -> None:
        self.engine = engine
        self.operation = operation
        self.number = number
        self.attempt_id = attempt_id
        self.boundary = boundary
        self.live: LiveRun = run.live
        self.run = run
        self._started_ns = engine.monotonic_clock.now_ns()
        self._was_left = False
        self.stamp = {
            "boundary": boundary,
            "parent_attempt_id": run.attempt_id,
            "attempt_id": attempt_id,
        }
        """What every event of this attempt says of it."""
        self.timeout_s = self._own_timeout_s()
        """Its own time-out, where that comes before the run's deadline."""
        self.start: e.AttemptStarted | None = None
        self.end: tuple[e.AttemptEvent, Future[Recorded]] | None = None
        """The event of its end, once there is one, and its record."""

    def inside(self) -> RunContext:
        """The run as the operation sees it."""
        sent = SentRequests(self.run.accounts, self.stamp, self.operation.calls)
        return self.run.inside(self.operation.segments(self.number), self.attempt_id, sent)

    def event(self, model: type[E], /, **fields: Any) -> E:
        """A new event of this attempt; call with the run's lock held."""
        return self.live.event(model, **self.stamp, **fields)

    def succeed(self, result: object, usage: TokenUsage | None, **stream: int) -> None:
        """Record that the operation returned `result`; above a limit, the run ends and later work is refused.

        `stream` are the event's figures of a stream.
        """
        duration_us = self.elapsed_us()
        output = self._captured("output", encode_content(result))

        def record() -> None:
            with self.live.lock:
                if self._leave(usage, error=None):
                    fields, contents, overflow = keep_content(self.run.accounts, "output", output)
                    end = self.event(e.AttemptSucceeded, duration_us=duration_us, **fields, **stream)
                    self._record(end, *self._settlement(usage), contents=contents, overflow=overflow)

        self.live.lock.when_free(record)

    def fail(self, error: BaseException, *, usage: TokenUsage | None = None, **stream: int) -> float | None:
        """Record that the operation raised; the seconds after which to try again, or None if it is final.

        `usage` is what it had used so far, unless the error says. A stream that gave a chunk is not tried again.
        """
        duration_us = self.elapsed_us()
        told = tell(error, self.engine.classifiers)
        told_error = self._captured("error", error_content(error))
        end = partial(self._fail, error, told, told_error, told.usage or usage, duration_us=duration_us, **stream)
        return self.live.lock.when_free(end)

    def _fail(
        self, error: BaseException, told: TypedFailure, told_error: Captured, usage: TokenUsage | None, **figures: int
    ) -> float | None:
        with self.live.lock:
            if not self._leave(usage, error):
                return None
            delay_s, refused = self._next_delay_s(told, was_passed_on=bool(figures.get("output_chunks")))
            fields, contents, overflow = keep_content(self.run.accounts, "error", told_error)
            end = self.event(
                e.AttemptFailed,
                failure=told.failure.value,
                will_retry=delay_s is not None,
                error_type=error_type(error),
                **fields,
                **figures,
            )
            retry = self._retry(told.failure, delay_s, refused)
            self._record(end, *self._settlement(usage), *retry, contents=contents, overflow=overflow)
            return delay_s

    def abandon(self, reason: str) -> None:
        """Record that nobody waits for the operation any more."""

        def record() -> None:
            with self.live.lock:
                was_left, self._was_left = self._was_left, True
                if not was_left and self._is_open():
                    self._record(self.event(e.AttemptAbandoned, reason=reason))

        self.live.lock.when_free(record)

    def finish_late(self, error: BaseException | None, usage: TokenUsage | None) -> None:
        """Record that the operation came to its end after it was abandoned; that changes nothing but its usage."""
        name = None if error is None else error_type(error)
        with self.live.lock:
            if self.attempt_id in self.live.state.abandoned_attempts:
                fields = {"duration_us": self.elapsed_us(), "succeeded": error is None, "error_type": name}
                self._record(self.event(e.AttemptFinishedLate, **fields), *self._settlement(usage))

    def _leave(self, usage: TokenUsage | None, error: BaseException | None) -> bool:
        """Whether the end that follows is to be recorded as such: it is the first, and the run did not end before."""
        was_left, self._was_left = self._was_left, True
        if was_left or self._is_open():
            return not was_left
        self.finish_late(error, usage)
        return False

    def _is_open(self) -> bool:
        return self.attempt_id in self.live.state.open_attempts

    def _record(
        self,
        end: e.AttemptEvent,
        *events: e.RunEvent,
        contents: tuple[SealedContent, ...] = (),
        overflow: Excess | None = None,
    ) -> None:
        """Submit an end, unless the journal failed: then the next boundary or the exit says so (SPEC D1)."""
        if self.live.failure is None:
            recorded = self.live.record(end, *events, contents=contents, is_awaited=bool(self.engine.observers))
            self.end = self.end or (end, recorded)
            self.run.accounts.end_if_overrun(overflow)

    def _captured(self, role: str, content: Content) -> Captured:
        """What may be recorded of what the operation gave; what does not fit is kept as size and digest (SPEC H9)."""
        return captured(content, self.operation.capture(self.engine.capture, role))

    def _settlement(self, usage: TokenUsage | None) -> tuple[e.RunEvent, ...]:
        if self.operation.kind != "model":
            return ()
        known = usage or TokenUsage()
        amounts = usage_map(self.engine.prices, self.operation.model, known)
        return (self.event(e.UsageSettled, usage=amounts or None, complete=known.is_complete),)

    def _retry(self, failure: FailureType, delay_s: float | None, refused: str | None) -> tuple[e.RunEvent, ...]:
        if delay_s is not None:
            delay_us = round(delay_s * 1_000_000)
            fields = {"failure": failure.value, "next_attempt": self.number + 1, "delay_us": delay_us}
            return (self.event(e.RetryScheduled, **fields),)
        if refused is not None:
            return (self.event(e.RetryRefused, failure=failure.value, reason=refused),)
        return ()

    def _next_delay_s(self, told: TypedFailure, *, was_passed_on: bool) -> tuple[float | None, str | None]:
        """Seconds until the next attempt, or None and, where only the run or its output forbids it, why."""
        policy = self.operation.policy
        if not policy.permits(told.failure, self.number):
            return None, None
        if self.live.termination is not None:
            return None, self.live.termination.reason
        if was_passed_on:
            return None, "OUTPUT_PASSED_ON"
        delay_s = max(policy.delay_s(self.number, self.engine.ids.fraction()), told.retry_after_s or 0.0)
        if self._is_too_long(delay_s):
            return None, FailureType.DEADLINE_EXCEEDED.value
        return delay_s, None

    def _is_too_long(self, delay_s: float) -> bool:
        """Whether the deadline comes before another attempt could begin."""
        return delay_s >= self.run.deadline.remaining_ns(self.engine.monotonic_clock) / 1e9

    def _own_timeout_s(self) -> float | None:
        own_s = self.operation.timeout_s
        if own_s is None or own_s * 1e9 >= self.run.deadline.remaining_ns(self.engine.monotonic_clock):
            return None
        return own_s

    def elapsed_us(self) -> int:
        """Monotonic microseconds since its start."""
        return max(0, self.engine.monotonic_clock.now_ns() - self._started_ns) // 1_000
