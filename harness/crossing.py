"""Crossing a boundary: attempt by attempt, each recorded before it starts and after it ends (SPEC H6).

A coroutine function runs in the caller's task and is stopped at the run's deadline. A plain function runs on one of
the harness's threads; it cannot be stopped, so at the deadline or on cancellation it is recorded as abandoned, and its
end, whenever it comes, as late.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from concurrent.futures import Future
from functools import partial
from typing import Any

from harness import events as e
from harness.admission import Admission
from harness.attempt import Attempt
from harness.budget import TokenUsage
from harness.cancellation import CancelReason
from harness.content import encode_content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import RunEnded
from harness.operation import Operation
from harness.retry import FailureType, TypedFailure
from harness.waiting import result_of

DEADLINE_PASSED = TypedFailure(FailureType.DEADLINE_EXCEEDED, "stopped at the run's deadline")


async def cross(engine: Engine, run: RunContext, operation: Operation) -> Any:
    """The operation's result; its own exception after the last permitted attempt.

    Raises `RunEnded` where the run has ended or a limit refuses the work, `LedgerUnavailable` where it cannot be
    recorded.
    """
    given = encode_content(operation.args)
    number = 1
    while True:
        attempt = await Admission(engine, run, operation, number, given).attempt()
        try:
            result = await _result(attempt)
            usage = reported_usage(result)
        except BaseException as error:
            delay_s = attempt.fail(error)
            if delay_s is None:
                raise
        else:
            attempt.succeed(result, usage)
            return result
        await _pause(engine, run, delay_s)
        number += 1


def reported_usage(result: object) -> TokenUsage | None:
    """The `TokenUsage` that a reply carries as its `usage`, or None: unknown."""
    usage = getattr(result, "usage", None)
    return usage if isinstance(usage, TokenUsage) else None


async def _result(attempt: Attempt) -> Any:
    """The operation's result, unless the run's deadline comes first: then the run ends."""
    live = attempt.live
    remaining_s = live.deadline.remaining_ns(live.monotonic_clock) / 1e9
    try:
        async with asyncio.timeout(remaining_s) as at_deadline:
            return await _invoke(attempt)
    except TimeoutError as error:
        if not at_deadline.expired():
            raise
        attempt.fail(DEADLINE_PASSED)
        live.stop(CancelReason.DEADLINE_EXCEEDED)
        raise live.ended() from error


async def _invoke(attempt: Attempt) -> Any:
    """The operation's result. What it cancels within itself is its own failure, not a cancellation of the run."""
    call = partial(attempt.operation.call, attempt.inside())
    try:
        result = call() if attempt.operation.is_async else await _on_thread(attempt, call)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError as error:
        if _is_being_cancelled():
            raise
        raise TypedFailure(FailureType.CANCELLED, "the operation was cancelled from within") from error


async def _on_thread(attempt: Attempt, call: partial[Any]) -> Any:
    future = attempt.engine.threads.submit(partial(_call_if_running, attempt, call))
    try:
        return await result_of(future)
    except asyncio.CancelledError:
        if future.cancel():
            attempt.abandon(e.NOT_INVOKED)
        elif _is_being_cancelled():
            attempt.abandon("NOT_AWAITED")
            future.add_done_callback(partial(_finish_late, attempt))
        raise


def _call_if_running(attempt: Attempt, call: partial[Any]) -> Any:
    """The call, unless the run ended while it waited for a thread (SPEC H2, H3)."""
    try:
        attempt.live.check_running()
    except RunEnded:
        attempt.abandon(e.NOT_INVOKED)
        raise
    return call()


def _finish_late(attempt: Attempt, future: Future[Any]) -> None:
    error = future.exception()
    attempt.finish_late(error, reported_usage(future.result() if error is None else error))


def _is_being_cancelled() -> bool:
    """Whether the cancellation at hand was asked of this task; if not, the operation raised it of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _pause(engine: Engine, run: RunContext, delay_s: float) -> None:
    """Wait for the next attempt's turn, but no longer than until the run is told to stop."""
    loop = asyncio.get_running_loop()
    sleeping = asyncio.ensure_future(engine.sleep(delay_s))

    def wake(_: CancelReason) -> None:
        with contextlib.suppress(RuntimeError):  # The loop may have closed.
            loop.call_soon_threadsafe(sleeping.cancel)

    forget = run.cancellation.on_signal(wake)
    try:
        await asyncio.wait({sleeping})
    finally:
        forget()
        sleeping.cancel()
    if not sleeping.cancelled():
        await sleeping
