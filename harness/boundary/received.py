"""What a stream has given so far: its text or chunks for the record, its usage, and when it began (CASES 9, 10)."""

from __future__ import annotations

from functools import partial
from typing import Any

from harness.boundary.attempt import Attempt
from harness.boundary.operation import reported_usage
from harness.budget.usage import Excess, TokenUsage
from harness.concurrency.interruption import Cause
from harness.content import MAX_CONTENT_BYTES, Capture, encode_content
from harness.errors import HarnessError
from harness.retry import FailureType, TypedFailure

TEXT_ATTRIBUTES = ("text", "content")
"""Where a chunk that is no string may have its text; None there is none."""


class Received:
    """The chunks of one attempt, bounded by `MAX_CONTENT_BYTES` and by the bytes that the run has left."""

    def __init__(self, attempt: Attempt) -> None:
        self.usage: TokenUsage | None = None
        """The last that a chunk carried; each reports the whole stream so far, so they are not added up."""
        self._attempt = attempt
        self._chunks: list[Any] = []
        self._size_bytes = 0
        self._first_us: int | None = None

    def take(self, chunk: object) -> Cause | None:
        """Take one more chunk in; why the stream has to end, if it has passed a bound."""
        if self._first_us is None:
            self._first_us = self._attempt.elapsed_us()
        self.usage = reported_usage(chunk) or self.usage
        self._chunks.append(chunk)
        text = _text(chunk)
        self._size_bytes += len(encode_content(chunk if text is None else text).data)
        if self._size_bytes > MAX_CONTENT_BYTES:
            large = TypedFailure(FailureType.MALFORMED_REPLY, f"the stream has passed {MAX_CONTENT_BYTES} bytes")
            return Cause(large, lambda: large)
        excess = self._find_excess()
        if excess is None:
            return None
        told = f"the stream has {self._size_bytes} bytes, which would pass the limit of {excess.limit}"
        return Cause(TypedFailure(FailureType.RUN_ENDED, told), partial(self._overrun, excess))

    def figures(self) -> dict[str, int]:
        """What the attempt's end says of its chunks."""
        first = {} if self._first_us is None else {"first_output_us": self._first_us}
        return {**first, "output_chunks": len(self._chunks)}

    def output(self) -> str | list[Any]:
        """The text of all chunks, or the chunks as a list where one of them has none."""
        texts = [_text(chunk) for chunk in self._chunks]
        known = [text for text in texts if text is not None]
        return "".join(known) if len(known) == len(texts) else self._chunks

    def _find_excess(self) -> Excess | None:
        attempt = self._attempt
        if attempt.operation.capture(attempt.engine.capture, "output") is not Capture.FULL:
            return None
        with attempt.live.lock:
            return attempt.run.accounts.find_excess({"run_bytes": self._size_bytes})

    def _overrun(self, excess: Excess) -> HarnessError:
        accounts = self._attempt.run.accounts
        with self._attempt.live.lock:
            accounts.end_if_overrun(excess)
        return accounts.error(excess)


def _text(chunk: object) -> str | None:
    """The text of a chunk, as far as it has any."""
    if isinstance(chunk, str):
        return chunk
    for name in TEXT_ATTRIBUTES:
        text = getattr(chunk, name, chunk)
        if text is None or isinstance(text, str):
            return text or ""
    return None
