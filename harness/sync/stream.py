"""A streamed reply for plain threads: each chunk is waited for, one attempt holds them all."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from harness.boundary.stream import ModelStream
from harness.sync.loop_thread import LoopThread, refuse_in_a_loop

T = TypeVar("T")

END: Any = object()


class SyncModelStream(Generic[T]):
    """The chunks as they come. Iterate it once, and `close` it if you leave early: `with` does both well.

    Raises what `ModelStream` raises. It is one thread's at a time.
    """

    def __init__(self, loop_thread: LoopThread, stream: ModelStream[T]) -> None:
        self._loop_thread = loop_thread
        self._stream = stream

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        refuse_in_a_loop()
        chunk = self._loop_thread.wait(self._next)
        if chunk is END:
            raise StopIteration
        return chunk

    def close(self) -> None:
        """End the attempt, which has failed if its end had not come; more than once does no harm."""
        self._loop_thread.wait(self._stream.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _next(self) -> T:
        try:
            return await anext(self._stream)
        except StopAsyncIteration:
            return END  # type: ignore[no-any-return]
