"""Crossing a boundary: attempt by attempt, each recorded before it starts and after it ends (SPEC H6).

A coroutine function runs in the caller's task and is stopped at the run's deadline. A plain function runs on one of
the harness's threads; it cannot be stopped, so at the deadline or on cancellation it is recorded as abandoned, and its
end, whenever it comes, as late.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from harness.attempt import Attempt, Operation
from harness.budget import TokenUsage
from harness.cancellation import CancelReason
from harness.content import encode_content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import RunEnded
from harness.retry import FailureType, TypedFailure
from harness.waiting import result_of


async def cross(engine: Engine, run: RunContext, operation: Operation) -> Any:
    """The operation's result; its own exception after the last permitted attempt.

    Raises `RunEnded` where the run has ended or a limit refuses the work, `LedgerUnavailable` where it cannot be
    recorded.
    """
    given = encode_content(dict(operation.args))
    number = 1
    while True:
        attempt = Attempt(engine, run, operation, number)
        inside = await attempt.start(given)
        try:
            result = await _invoke(attempt, inside)
        except RunEnded:
            raise
        except BaseException as error:
            delay_s = attempt.fail(error)
            if delay_s is None:
                raise
        else:
            attempt.succeed(result, reported_usage(result))
            return result
        await engine.sleep(delay_s)
        number += 1


def reported_usage(result: object) -> TokenUsage | None:
    """The `TokenUsage` that a reply carries as its `usage`, or None: unknown."""
    usage = getattr(result, "usage", None)
    return usage if isinstance(usage, TokenUsage) else None


async def _invoke(attempt: Attempt, inside: RunContext) -> Any:
    remaining_s = inside.deadline.remaining_ns(attempt.engine.monotonic_clock) / 1e9
    call = partial(attempt.operation.fn, inside, **attempt.operation.args)
    try:
        async with asyncio.timeout(remaining_s) as at_deadline:
            if _is_async(attempt.operation.fn):
                return await call()
            result = await _on_thread(attempt, call)
            return await result if inspect.isawaitable(result) else result
    except TimeoutError as error:
        if not at_deadline.expired():
            raise
        attempt.fail(TypedFailure(FailureType.DEADLINE_EXCEEDED, "stopped at the run's deadline"))
        attempt.live.stop(CancelReason.DEADLINE_EXCEEDED)
        raise attempt.live.ended() from error
    except RunEnded as error:
        attempt.fail(error)
        raise


async def _on_thread(attempt: Attempt, call: Callable[[], Any]) -> Any:
    future = attempt.engine.threads.submit(call)
    try:
        return await result_of(future)
    except asyncio.CancelledError:
        if not future.cancel():
            attempt.abandon("NOT_AWAITED")
            future.add_done_callback(partial(_finish_late, attempt))
        raise


def _finish_late(attempt: Attempt, future: Future[Any]) -> None:
    error = future.exception()
    if error is not None:
        attempt.fail(error)
    else:
        attempt.succeed(future.result(), reported_usage(future.result()))


def _is_async(fn: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004
