"""An attempt that calls no operation: it waits for its turn in the record, and gives what is recorded there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol

from harness import events as e
from harness.boundary.attempt import Attempt
from harness.boundary.operation import Operation
from harness.budget.usage import TokenUsage
from harness.concurrency.interruption import DEADLINE_PASSED, RUN_STOPPED, Cause, Interrupted
from harness.content import Content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import AttemptTimedOut
from harness.redaction import Captured
from harness.replay.given import Given, NotOnRecord
from harness.replay.record import Record
from harness.replay.results import chunks_of, usage_of
from harness.retry import FailureType

RUN_ENDED = "RUN_ENDED"
"""Why an attempt was abandoned that did not stop while its run was waiting for it."""

LEFT = (e.NOT_INVOKED, "NOT_AWAITED")
"""Why an attempt was abandoned that its caller left, before its operation was called or while it ran on a thread."""


class Stage(Protocol):
    """Where the attempts of a run stand in for their operations."""

    @property
    def record(self) -> Record: ...

    @property
    def is_over(self) -> bool:
        """Whether nothing more is given to anybody."""

    def enter(self, attempt: ReplayedAttempt) -> None:
        """The operation would be called now."""

    def leave(self, attempt: ReplayedAttempt) -> None:
        """It would have come to its end."""

    @property
    def given(self) -> Given:
        """What operations give."""

    def cannot(self, missing: NotOnRecord) -> None:
        """The re-execution ends here."""


class ReplayedAttempt(Attempt):
    """Records what any attempt records, of an operation that is not called."""

    def __init__(self, stage: Stage, engine: Engine, run: RunContext, operation: Operation, *named: Any) -> None:
        """`named` are number, boundary and id."""
        self._stage = stage
        super().__init__(engine, run, operation, *named)
        self.end_on_record = stage.record.end_of(self.boundary)
        self.within: RunContext | None = None
        """The run as the operation would see it; None until it would be called."""
        self._due: asyncio.Future[Any] | None = None
        self._chunks: asyncio.Future[None] | None = None
        self._was_cancelled = False
        self.operation = operation._replace(call=self._stand_in, is_async=True)

    def give(self, end: e.AttemptSucceeded | e.AttemptFailed | e.AttemptAbandoned | e.AttemptFinishedLate) -> bool:
        """Let the operation come to this end; False if something else has to make it."""
        if self._due is None or self._due.done():
            return False
        try:
            return self._give(self._due, end)
        except NotOnRecord as missing:
            self._stage.cannot(missing)
            return True

    def give_chunks(self) -> bool:
        """Let a stream begin before its end is due, as something between the two waits for that."""
        if self._chunks is None or self._chunks.done():
            return False
        try:
            if isinstance(self.end_on_record, e.AttemptFailed):
                self._stage.given.need_no_chunks(self.end_on_record, is_over=False)
            self._chunks.set_result(None)
        except NotOnRecord as missing:
            self._stage.cannot(missing)
        return True

    def request_again(self, detected: e.HiddenRetryDetected, *, ends_run: bool) -> bool:
        """Let the operation send a request that was not recorded as an attempt (SPEC H7)."""
        sent = None if self.within is None else self.within.sent
        if sent is None:
            return False
        sent.pass_over(detected.request - 1)
        try:
            sent.add(ends_run=ends_run)
        except Interrupted as stopped:
            if self._due is not None and not self._due.done():
                self._due.set_exception(stopped)
        return True

    def succeed(self, result: object, usage: TokenUsage | None, **stream: int) -> None:
        super().succeed(result, usage_of(self._stage.record.only(e.UsageSettled, self.boundary)), **stream)

    def fail(self, error: BaseException, *, usage: TokenUsage | None = None, **stream: int) -> float | None:
        end = self.end_on_record
        if isinstance(end, e.AttemptFailed) and end.output_chunks:
            # It gave nothing here, as its chunks are not on record.
            stream["output_chunks"] = end.output_chunks
            usage = usage_of(self._stage.record.only(e.UsageSettled, self.boundary))
        return super().fail(error, usage=usage, **stream)

    def _own_timeout_s(self) -> float | None:
        # The deadline is as near as it was at the start's own time, which is a moment later.
        started = self._stage.record.only(e.AttemptStarted, self.boundary)
        is_own = started is not None and started.timeout_us is not None
        return self.operation.timeout_s if is_own else super()._own_timeout_s()

    def _is_too_long(self, delay_s: float) -> bool:
        was_scheduled = self._stage.record.only(e.RetryScheduled, self.boundary) is not None
        return not was_scheduled and super()._is_too_long(delay_s)

    def _captured(self, role: str, content: Content) -> Captured:
        """What is on record of it, byte by byte; of what did not fit, as many bytes."""
        digest, size_bytes = (getattr(self.end_on_record, f"{role}_{name}", None) for name in ("digest", "bytes"))
        if digest is None:
            return super()._captured(role, content)
        kept = self._stage.record.content(digest)
        data = kept.data if kept is not None and kept.data is not None else bytes(size_bytes or 0)
        content = Content(data, kept.media_type if kept is not None else content.media_type)
        redaction = getattr(self.end_on_record, f"{role}_redaction", None)
        if redaction is not None:
            return Captured(content, redaction == "APPLIED", redaction)
        return super()._captured(role, content)

    def _give(
        self,
        due: asyncio.Future[Any],
        end: e.AttemptSucceeded | e.AttemptFailed | e.AttemptAbandoned | e.AttemptFinishedLate,
    ) -> bool:
        if isinstance(end, e.AttemptSucceeded):
            due.set_result(self._stage.given.value(self.operation, end))
            return True
        if isinstance(end, e.AttemptFinishedLate):
            due.set_result(None)
            return True
        error = self._error(end)
        if error is None:
            return False
        due.set_exception(error)
        return True

    async def _stand_in(self, within: RunContext) -> Any:
        self.within = within
        end = self.end_on_record
        self._due = asyncio.get_running_loop().create_future()
        self._stage.enter(self)
        if isinstance(end, e.AttemptSucceeded | e.AttemptFailed) and end.output_chunks is not None:
            return self._stream(end)
        try:
            return await self._wait()
        finally:
            self._stage.leave(self)

    async def _wait(self) -> Any:
        """What is given. Whoever cancels it meanwhile, it ends when and as the record says."""
        while True:
            assert self._due is not None, "the operation was entered"
            try:
                return await self._due
            except asyncio.CancelledError:
                if self._is_to_end_cancelled():
                    raise
                if self._due.cancelled():
                    self._due = asyncio.get_running_loop().create_future()

    def _is_to_end_cancelled(self) -> bool:
        """Whether a cancellation that came is its end, for if it did not end so, it waits on."""
        if self._stage.is_over or self._is_given_a_cancellation():
            return True
        self._was_cancelled = True
        end = self.end_on_record
        if not isinstance(end, e.AttemptAbandoned) or end.reason == RUN_ENDED:
            return False
        self.abandon(end.reason)
        return True

    def _is_given_a_cancellation(self) -> bool:
        due = self._due
        is_given = due is not None and due.done() and not due.cancelled()
        return due is not None and is_given and isinstance(due.exception(), asyncio.CancelledError)

    async def _stream(self, end: e.AttemptSucceeded | e.AttemptFailed) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        self._chunks = loop.create_future()
        assert self._due is not None, "the operation was entered"
        try:
            while not (self._chunks.done() or self._due.done()):
                try:
                    await asyncio.wait({self._chunks, self._due}, return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError:
                    if self._is_to_end_cancelled():
                        raise
            if end.output_chunks and isinstance(end, e.AttemptSucceeded):
                for chunk in chunks_of(self._stage.given.value(self.operation, end), end.output_chunks):
                    yield chunk
            await self._wait()
        finally:
            self._stage.leave(self)

    def _error(self, end: e.AttemptFailed | e.AttemptAbandoned) -> BaseException | None:
        """What to raise for the recorded end; None where somebody else has to make it."""
        if isinstance(end, e.AttemptFailed):
            self._stage.given.need_no_chunks(end, is_over=True)
        if isinstance(end, e.AttemptAbandoned):
            cause = self._cause_of_abandoning(end) if end.reason in LEFT else None
            if cause is not None:
                self.abandon(end.reason)
            return None if cause is None else Interrupted(cause)
        if end.error_type == "CancelledError":
            return asyncio.CancelledError() if self._was_cancelled else None
        if end.error_type == "AttemptTimedOut":
            return Interrupted(self._late())
        if end.error_type == "TypedFailure" and end.failure == FailureType.DEADLINE_EXCEEDED.value:
            return Interrupted(Cause(DEADLINE_PASSED, self.run.accounts.expire))
        if end.error_type == "TypedFailure" and end.failure == FailureType.CANCELLED.value and self._was_cancelled:
            return Interrupted(Cause(RUN_STOPPED, self.live.ended)) if self.live.termination is not None else None
        return self._stage.given.error(end)

    def _cause_of_abandoning(self, end: e.AttemptAbandoned) -> Cause | None:
        """What made its caller leave a call, where that was time."""
        record, follows = self._stage.record, self._stage.record.next_but_ends()
        told = follows.reason if isinstance(follows, e.CancellationSignalled) else None
        is_late = (end.elapsed_us or 0) >= record.recording.started.timeout_us or told == "DEADLINE_EXCEEDED"
        # Where its run was told to stop at once, its scope's deadline is not on record.
        is_in_scope = told not in (None, "TASK_CANCELLED") and self.run.deadline != self.live.deadline
        if is_late or is_in_scope or isinstance(follows, e.ScopeExhausted):
            return Cause(DEADLINE_PASSED, self.run.accounts.expire)
        return self._late() if self.timeout_s is not None else None

    def _late(self) -> Cause:
        late = AttemptTimedOut(self.operation.name, timeout_s=self.timeout_s or 0.0)
        if isinstance(self.end_on_record, e.AttemptFailed):
            self._stage.given.as_recorded(late, self.end_on_record)
        return Cause(late, lambda: late)
