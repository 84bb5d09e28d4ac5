"""What the record gives in place of an operation: its output, or what it raised."""

from __future__ import annotations

from typing import Any, TypeVar

from harness import events as e
from harness.boundary.operation import Operation
from harness.replay.outcome import Unavailable
from harness.replay.record import Record
from harness.replay.results import Decoders, Errors, exception_of, failure_type, usage_of, value_of
from harness.retry import FailureType, TypedFailure

B = TypeVar("B", bound=BaseException)

FOR_EVER_S = 1e9
"""A delay before the next attempt that no deadline allows."""


class NotOnRecord(Exception):
    """The code cannot be executed any further."""

    def __init__(self, unavailable: Unavailable) -> None:
        self.unavailable = unavailable
        super().__init__(str(unavailable))


class Given:
    """Values and exceptions, made of recorded ends; `NotOnRecord` where their content is not there."""

    def __init__(self, record: Record, decode: Decoders, errors: Errors) -> None:
        self._record = record
        self._decode = decode
        self._errors = errors
        self._told: dict[int, tuple[BaseException, TypedFailure]] = {}

    def value(self, operation: Operation, end: e.AttemptSucceeded) -> Any:
        """What the operation returned."""
        content = self._record.content(end.output_digest)
        if content is None or content.data is None or end.output_redaction is not None:
            self._need(end, "output", is_erased=content is None or content.salt is None)
            return None
        decode = self._decode.get(operation.name) or self._decode.get(operation.kind)
        return value_of(content.data, content.media_type) if decode is None else decode(content.data)

    def error(self, end: e.AttemptFailed) -> BaseException:
        """What the operation raised; the classifier tells the rest of it."""
        content, text = self._record.content(end.error_digest), ""
        if content is None or content.data is None or end.error_redaction is not None:
            self._need(end, "error", is_erased=content is None or content.salt is None)
        else:
            text = content.data.decode("utf-8", "replace")
        error = exception_of(end.error_type or "Exception", self._failure(end, text), self._errors)
        return self.as_recorded(error, end)

    def as_recorded(self, error: B, end: e.AttemptFailed) -> B:
        """`error`, of which the classifier will tell what is on record."""
        self._told[id(error)] = error, self._failure(end, "")
        return error

    def _failure(self, end: e.AttemptFailed, text: str) -> TypedFailure:
        usage = usage_of(self._record.only(e.UsageSettled, end.boundary))
        return TypedFailure(failure_type(end.failure), text, usage=usage, retry_after_s=self._delay_s(end.boundary))

    def need_no_chunks(self, end: e.AttemptFailed, *, is_over: bool) -> None:
        """What a stream gave before it broke is missing, unless the run `is_over` with it."""
        if end.output_chunks and not (is_over and self._is_run_over(end.boundary)):
            self._refuse(end, "what a stream gave before it broke is not on record")

    def late_error(self, end: e.AttemptFinishedLate) -> BaseException | None:
        """What an abandoned operation raised: its type is on record, and nothing else."""
        if end.succeeded:
            return None
        return exception_of(end.error_type or "Exception", TypedFailure(FailureType.UNKNOWN, ""), self._errors)

    def tell(self, error: BaseException) -> TypedFailure | None:
        """A classifier of what was given here."""
        told = self._told.get(id(error))
        return None if told is None else told[1]

    def _delay_s(self, boundary: str) -> float | None:
        if (scheduled := self._record.only(e.RetryScheduled, boundary)) is not None:
            return scheduled.delay_us / 1e6
        refused = self._record.only(e.RetryRefused, boundary)
        return FOR_EVER_S if refused is not None and refused.reason == FailureType.DEADLINE_EXCEEDED.value else None

    def _need(self, end: e.AttemptEvent, what: str, *, is_erased: bool) -> None:
        """The content is missing; that is no matter where the run was over with it, as nothing more was let through."""
        if self._is_run_over(end.boundary):
            return
        gone = "was erased" if is_erased else "was withheld: only a digest or a redacted form of it is on record"
        self._refuse(end, f"the content of the {what} {gone}")

    def _is_run_over(self, boundary: str) -> bool:
        """Whether the run was told to stop by then, or before whoever is at this boundary did anything more."""
        is_next = isinstance(self._record.next_but_ends(), e.CancellationSignalled | e.RunTerminated)
        return is_next or self._record.is_signalled or self._record.is_last(boundary)

    def _refuse(self, end: e.AttemptEvent, problem: str) -> None:
        raise NotOnRecord(Unavailable(self._record.seq_of(end), end.boundary, problem))
