"""Crossing a boundary: attempt by attempt, each recorded before it starts and after it ends (SPEC H6).

A coroutine function runs in the caller's task, and is interrupted at its time-out, at the run's deadline, or when the
run is told to stop. A plain function runs on one of the harness's threads, which nothing can stop: it is then recorded
as abandoned, and its end, whenever it comes, as late.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

from harness import events as e
from harness.boundary.admission import Admission, arm_deadline
from harness.boundary.attempt import Attempt
from harness.boundary.deciding import ask_policies
from harness.boundary.observing import observe_end, observe_start
from harness.boundary.operation import Operation, reported_usage
from harness.boundary.request import Request
from harness.concurrency.interruption import Cause, Interruption
from harness.concurrency.waiting import result_of
from harness.content import encode_content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import AttemptTimedOut, HarnessError
from harness.retry import FailureType, TypedFailure


def cross(engine: Engine, run: RunContext, operation: Operation) -> Coroutine[Any, Any, Any]:
    """The operation's result, to be awaited; its own exception after the last permitted attempt.

    Raises `RunEnded` where the run has ended, or ends before the operation, or a limit refuses the work; `ToolDenied`
    where a policy does; `LedgerUnavailable` where it cannot be recorded; `AttemptTimedOut` where the last attempt took
    too long.
    """
    crossing = _cross(engine, run, operation)
    # What Python names where nobody awaits it.
    crossing.__qualname__ = f"{operation.kind} {operation.name}"  # type: ignore[attr-defined]
    return crossing


async def _cross(engine: Engine, run: RunContext, operation: Operation) -> Any:
    given = encode_content(operation.args)
    number = 1
    with run.live.interruptions.open() as interruption:
        verdicts = await ask_policies(engine, run, operation)
        while True:
            request = Request(engine, run, operation, number, given, verdicts)
            attempts = await Admission(engine, run, (request,), interruption).attempts()
            if (denial := request.denial) is not None:
                raise denial
            result, delay_s = await carry_out(attempts[0], interruption)
            if delay_s is None:
                return result
            interruption.disarm()
            await engine.sleep(delay_s)
            number += 1


async def carry_out(attempt: Attempt, interruption: Interruption) -> tuple[Any, float | None]:
    """The result of an operation that was let through, or the seconds after which to try again.

    Its own exception where it failed for good, or what interrupted it.
    """
    await observe_start(attempt)
    try:
        result = await _invoke(attempt, interruption)
        usage = reported_usage(result)
    except BaseException as error:
        cause = interruption.take(error)
        delay_s = attempt.fail(error if cause is None else cause.failure)
        await observe_end(attempt, interruption, error=error if cause is None else cause.failure)
        if delay_s is not None:
            return None, delay_s
        if cause is None:
            raise
        raise cause.error() from error
    attempt.succeed(result, usage)
    await observe_end(attempt, interruption, result=result)
    return result, None


async def _invoke(attempt: Attempt, interruption: Interruption) -> Any:
    """The operation's result. What it cancels within itself is its own failure, not a cancellation of the run."""
    if attempt.timeout_s is not None:
        late = AttemptTimedOut(attempt.operation.name, timeout_s=attempt.timeout_s)
        arm_deadline(attempt.engine, attempt.run, interruption, (attempt.timeout_s, Cause(late, lambda: late)))
    call = partial(attempt.operation.call, attempt.inside())
    try:
        result = call() if attempt.operation.is_async else await _on_thread(attempt, interruption, call)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError as error:
        if interruption.is_cancelling:
            raise
        raise TypedFailure(FailureType.CANCELLED, "the operation was cancelled from within") from error


async def _on_thread(attempt: Attempt, interruption: Interruption, call: partial[Any]) -> Any:
    future = attempt.engine.threads.submit(partial(_call_if_running, attempt, interruption, call))
    try:
        return await result_of(future)
    except (asyncio.CancelledError, GeneratorExit) as error:
        if future.cancel():
            attempt.abandon(e.NOT_INVOKED)
        elif interruption.is_cancelling or (isinstance(error, GeneratorExit) and not future.done()):
            attempt.abandon("NOT_AWAITED")
            future.add_done_callback(partial(_finish_late, attempt))
        raise


def _call_if_running(attempt: Attempt, interruption: Interruption, call: partial[Any]) -> Any:
    """The call, unless its run or nested scope ended while it waited for a thread (SPEC H2, H3)."""
    interruption.thread_id = threading.get_ident()
    try:
        with attempt.live.lock:
            attempt.run.accounts.check_granted()
    except HarnessError:
        attempt.abandon(e.NOT_INVOKED)
        raise
    else:
        return call()
    finally:
        interruption.thread_id = None


def _finish_late(attempt: Attempt, future: Future[Any]) -> None:
    error = future.exception()
    attempt.finish_late(error, reported_usage(future.result() if error is None else error))
