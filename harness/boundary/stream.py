"""A model's reply that comes in chunks: one attempt, which ends once, however the stream ends (SPEC H6, CASES 9, 10).

While the consumer waits for a chunk, its task can be interrupted like that of any crossing. Between two chunks nobody
waits: a run that is told to stop then closes the stream itself, and the next chunk that is asked for is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from harness.boundary.admission import Admission
from harness.boundary.attempt import Attempt
from harness.boundary.observing import observe_end, observe_start
from harness.boundary.operation import Operation
from harness.boundary.received import Received
from harness.boundary.request import Request
from harness.concurrency.interruption import DEADLINE_PASSED, Cause, Interrupted, Interruption
from harness.content import encode_content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import AttemptTimedOut, HarnessError
from harness.retry import FailureType, TypedFailure

T = TypeVar("T")
log = logging.getLogger(__name__)

END: Any = object()
CLOSED = TypedFailure(FailureType.CANCELLED, "the stream was closed before its end")


class ModelStream(Generic[T]):
    """The chunks as they come. Iterate it once, and close it if you leave early: `async with` does both well.

    Raises what the model's function raises, and what any boundary raises: `RunEnded`, `LedgerUnavailable`,
    `AttemptTimedOut`, with the first chunk or any later one. A stream that is dropped is closed by its event loop,
    one that is still open when the run's block is left is closed by that.
    """

    def __init__(self, engine: Engine, run: RunContext, operation: Operation) -> None:
        self._passage = Passage(engine, run, operation)
        self._chunks = self._passage.chunks()
        self._passage.watch(self._chunks)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._passage.stopped is not None:
            raise self._passage.stopped.error()
        chunk: T = await anext(self._chunks)
        return chunk

    async def aclose(self) -> None:
        """End the attempt, which has failed if its end had not come; more than once does no harm."""
        if self._passage.closing is not None:
            await asyncio.wait({self._passage.closing})
        await self._chunks.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Passage:
    """Passes chunks on from attempts to one consumer; is in flight, for its run, from the first one asked for."""

    thread_id = None

    def __init__(self, engine: Engine, run: RunContext, operation: Operation) -> None:
        self.stopped: Cause | None = None
        """Why the run stopped the stream between two chunks."""
        self.closing: asyncio.Task[None] | None = None
        self._engine = engine
        self._run = run
        self._operation = operation
        self._interruptions = run.live.interruptions
        self._ends_at_s = 0.0
        """When the attempt's own time-out comes, as the loop tells time."""
        self._late: Cause | None = None
        """Of that time-out, if there is one."""
        self._chunks: Callable[[], AsyncGenerator[Any, None] | None] = lambda: None

    def watch(self, chunks: AsyncGenerator[Any, None]) -> None:
        """Know the generator, but let it be collected when its consumer drops it."""
        self._chunks = weakref.ref(chunks)

    @property
    def owner(self) -> object:
        """No task: between two chunks it belongs to none."""
        return self

    @property
    def is_lost(self) -> bool:
        return self._loop.is_closed()

    def interrupt(self, cause: Cause) -> None:
        """Close the stream if nobody waits for a chunk; who does is interrupted himself. Safe from every thread."""
        with contextlib.suppress(RuntimeError):  # The loop may have closed.
            self._loop.call_soon_threadsafe(self._stop, cause)

    async def chunks(self) -> AsyncGenerator[Any, None]:
        """Those of the first attempt that gives one: once a chunk was passed on, nothing is tried again."""
        self._loop = asyncio.get_running_loop()
        self._interruptions.add(self)
        delay_s: float | None = 0.0
        number = 0
        try:
            while delay_s is not None:
                number += 1
                attempt = await self._next_attempt(number, delay_s)
                received, opened = Received(attempt), list[Any]()
                try:
                    await self._step(partial(_open, attempt, opened))
                    while (chunk := await self._step(partial(anext, opened[0], END))) is not END:
                        if (overflow := received.take(chunk)) is not None:
                            raise Interrupted(overflow)
                        yield chunk
                    output, delay_s = received.output(), None
                    attempt.succeed(output, received.usage, **received.figures())
                    await self._tell_end(attempt, result=output)
                except BaseException as error:
                    failure = _failure(error)
                    delay_s = attempt.fail(failure, usage=received.usage, **received.figures())
                    await self._tell_end(attempt, error=failure)
                    if delay_s is None and isinstance(error, Interrupted):
                        raise error.cause.error() from error
                    if delay_s is None:
                        raise
                finally:
                    await self._close(opened)
        finally:
            self._interruptions.remove(self)

    async def _next_attempt(self, number: int, delay_s: float) -> Attempt:
        engine, operation = self._engine, self._operation
        with self._interruptions.open() as interruption:
            if delay_s:
                await engine.sleep(delay_s)
            request = Request(engine, self._run, operation, number, encode_content(operation.args))
            (attempt,) = await Admission(engine, self._run, (request,), interruption).attempts()
            await observe_start(attempt)
        if attempt.timeout_s is not None:
            late = AttemptTimedOut(operation.name, timeout_s=attempt.timeout_s)
            self._ends_at_s, self._late = self._loop.time() + attempt.timeout_s, Cause(late, lambda: late)
        return attempt

    async def _tell_end(self, attempt: Attempt, **told: Any) -> None:
        if attempt.engine.observers:
            with self._interruptions.open() as interruption:
                await observe_end(attempt, interruption, **told)

    async def _step(self, act: Callable[[], Awaitable[T]]) -> T:
        """What `act` gives; `Interrupted` if the run, a deadline or the time-out stops it."""
        with self._interruptions.open() as interruption:
            self._arm(interruption)
            try:
                return await _own(interruption, act())
            except asyncio.CancelledError as error:
                cause = interruption.take(error)
                if cause is not None:
                    raise Interrupted(cause) from error
                raise

    def _arm(self, interruption: Interruption) -> None:
        run, live = self._run, self._run.live
        if live.termination is not None:
            raise Interrupted(live.cause())
        bounds = [(run.deadline.remaining_ns(live.monotonic_clock) / 1e9, Cause(DEADLINE_PASSED, run.accounts.expire))]
        if self._late is not None:
            bounds.append((self._ends_at_s - self._loop.time(), self._late))
        left_s, cause = min(bounds, key=lambda bound: bound[0])
        if left_s <= 0:
            raise Interrupted(cause)
        interruption.arm(*bounds)

    def _stop(self, cause: Cause) -> None:
        chunks = self._chunks()
        if chunks is not None and not getattr(chunks, "ag_running", False) and self.closing is None:
            self.stopped = cause
            self.closing = self._loop.create_task(_throw(chunks, Interrupted(cause)))

    async def _close(self, opened: list[Any]) -> None:
        """Close what the attempt opened, innermost first; what that raises is no concern of the consumer's."""
        for each in opened:
            close = getattr(each, "aclose", None) or getattr(each, "close", None)
            if close is None:
                continue
            try:
                with self._interruptions.open() as interruption:
                    closing = close()
                    if inspect.isawaitable(closing):
                        await _own(interruption, closing)
            except Exception as error:  # noqa: BLE001 - it is the application's, and the attempt has ended
                log.warning("run %s: closing a stream raised %s", self._run.run_id, type(error).__name__)


async def _own(interruption: Interruption, work: Awaitable[T]) -> T:
    """What `work` gives; what it cancels within itself is a failure of its own, and cancels nobody else."""
    try:
        return await work
    except asyncio.CancelledError as error:
        if interruption.is_cancelling:
            raise
        raise TypedFailure(FailureType.CANCELLED, "the stream was cancelled from within") from error


async def _open(attempt: Attempt, opened: list[Any]) -> None:
    """Call the operation; put its iterator, and what that came from, where both will be closed."""
    made = attempt.operation.call(attempt.inside())
    made = await made if inspect.isawaitable(made) else made
    opened.append(made)
    iterator = aiter(made)
    if iterator is not made:
        opened.insert(0, iterator)


def _failure(error: BaseException) -> BaseException:
    """As what the attempt is recorded."""
    if isinstance(error, Interrupted):
        return error.cause.failure
    return CLOSED if isinstance(error, GeneratorExit) else error


async def _throw(chunks: AsyncGenerator[Any, None], interrupted: Interrupted) -> None:
    with contextlib.suppress(HarnessError, StopAsyncIteration):
        await chunks.athrow(interrupted)
