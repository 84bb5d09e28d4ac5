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
        super().__init__(engine, run, operation, *named)
        self.end_on_record = stage.record.end_of(self.boundary)
        self.within: RunContext | None = None
        """The run as the operation would see it; None until it would be called."""
        self._stage = stage
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
        self._chunks.set_result(None)
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
                if self._stage.is_over or self._is_given_a_cancellation():
                    raise
                self._was_cancelled = True
                end = self.end_on_record
                if isinstance(end, e.AttemptAbandoned) and end.reason != RUN_ENDED:
                    self.abandon(end.reason)
                    raise
                if self._due.cancelled():
                    self._due = asyncio.get_running_loop().create_future()

    def _is_given_a_cancellation(self) -> bool:
        due = self._due
        is_given = due is not None and due.done() and not due.cancelled()
        return due is not None and is_given and isinstance(due.exception(), asyncio.CancelledError)

    async def _stream(self, end: e.AttemptSucceeded | e.AttemptFailed) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        self._chunks = loop.create_future()
        assert self._due is not None, "the operation was entered"
        try:
            await asyncio.wait({self._chunks, self._due}, return_when=asyncio.FIRST_COMPLETED)
            if end.output_chunks and isinstance(end, e.AttemptSucceeded):
                for chunk in chunks_of(self._stage.given.value(self.operation, end), end.output_chunks):
                    yield chunk
            await self._wait()
        finally:
            self._stage.leave(self)

    def _error(self, end: e.AttemptFailed | e.AttemptAbandoned) -> BaseException | None:
        """What to raise for the recorded end; None where somebody else has to make it."""
        if isinstance(end, e.AttemptAbandoned):
            cause = self._cause_of_abandoning() if end.reason == "NOT_AWAITED" else None
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

    def _cause_of_abandoning(self) -> Cause | None:
        """What made its caller leave a call on a thread, where that was time."""
        follows = next(self._stage.record.after_due(), None)
        is_expired = isinstance(follows, e.CancellationSignalled) and follows.reason == "DEADLINE_EXCEEDED"
        if is_expired or isinstance(follows, e.ScopeExhausted):
            return Cause(DEADLINE_PASSED, self.run.accounts.expire)
        return self._late() if self.timeout_s is not None else None

    def _late(self) -> Cause:
        late = AttemptTimedOut(self.operation.name, timeout_s=self.timeout_s or 0.0)
        if isinstance(self.end_on_record, e.AttemptFailed):
            self._stage.given.as_recorded(late, self.end_on_record)
        return Cause(late, lambda: late)
