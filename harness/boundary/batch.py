"""A batch of tool calls, as one reply of a model asks for them: started all or none, then side by side (SPEC D6).

Each call has a path of its own, named by its index in the list, so that its identity does not depend on which of
them is faster (SPEC D7). What becomes of one call does not disturb the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness import events as e
from harness.boundary.admission import BATCH, BATCH_NAME, Admission, arm_deadline
from harness.boundary.attempt import Attempt
from harness.boundary.crossing import carry_out
from harness.boundary.deciding import ask_policies
from harness.boundary.operation import Operation
from harness.boundary.request import Request
from harness.boundary.tool_calls import ToolResult, ToolStatus
from harness.content import encode_content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import HarnessError, ToolDenied
from harness.ids import boundary_id
from harness.live.ordinals import Ordinals
from harness.retry import FailureType, tell


async def cross_together(
    engine: Engine, run: RunContext, ordinal: int, operations: Sequence[Operation]
) -> list[ToolResult]:
    """One result for each operation, in their order.

    Raises `RunEnded` or `ScopeExhausted` where the run or a scope ended before, or its deadline comes before the start;
    `LedgerUnavailable` where the start cannot be recorded. A cancellation of the task goes on as soon as all operations
    have ended, or `drain_timeout_s` has passed.
    """
    if not operations:
        return []
    requests, admitted = await _begin(engine, run, ordinal, operations)
    if isinstance(admitted, HarnessError):
        fields = {"error": admitted, "failure": FailureType.RUN_ENDED}
        return [ToolResult.of(operation, ToolStatus.NOT_EXECUTED, **fields) for operation in operations]
    results = iter(await _side_by_side(engine, admitted))
    return [
        next(results) if request.denial is None else _denied(operation, request.denial)
        for operation, request in zip(operations, requests, strict=True)
    ]


async def _begin(
    engine: Engine, run: RunContext, ordinal: int, operations: Sequence[Operation]
) -> tuple[list[Request], list[Attempt] | HarnessError]:
    """The requests, and the attempts of those that no policy denied, or why a limit let none of them through."""
    inner = [_within_batch(run, ordinal, index) for index in range(len(operations))]
    with run.live.interruptions.open() as interruption:
        asked = [ask_policies(engine, *each) for each in zip(inner, operations, strict=True)]
        verdicts = await asyncio.gather(*asked)
        requests = [
            Request(engine, within, operation, 1, encode_content(operation.args), said)
            for within, operation, said in zip(inner, operations, verdicts, strict=True)
        ]
        boundary = boundary_id(run.path, BATCH, BATCH_NAME, ordinal, 1)
        admission = Admission(engine, run, requests, interruption, boundary)
        try:
            return requests, await admission.attempts()
        except HarnessError as error:
            if error is not admission.refusal:
                raise
            return requests, error


async def _side_by_side(engine: Engine, attempts: Sequence[Attempt]) -> list[ToolResult]:
    tasks = [asyncio.create_task(_result(engine, attempt)) for attempt in attempts]
    try:
        if tasks:
            await asyncio.wait(tasks)
    except BaseException as error:
        for task in tasks:
            task.cancel()
        if not isinstance(error, GeneratorExit):
            await _drain(tasks, engine.drain_timeout_s)
        for attempt, task in zip(attempts, tasks, strict=True):
            attempt.abandon(e.NOT_INVOKED if task.done() else "NOT_AWAITED")
        raise
    return [_taken(*each) for each in zip(attempts, tasks, strict=True)]


async def _drain(tasks: Sequence[asyncio.Task[Any]], timeout_s: float) -> None:
    """Wait until all tasks have ended, but no longer than `timeout_s`, whatever cancels the waiting one meanwhile."""
    now_s = asyncio.get_running_loop().time
    until_s = now_s() + timeout_s
    while (left := [task for task in tasks if not task.done()]) and (left_s := until_s - now_s()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(left, timeout=left_s)


async def _result(engine: Engine, attempt: Attempt) -> ToolResult:
    try:
        value = await _carried_out(engine, attempt)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this call's result
        return _failed(attempt, error, tell(error, engine.classifiers).failure)
    return ToolResult.of(attempt.operation, ToolStatus.SUCCEEDED, value=value)


async def _carried_out(engine: Engine, attempt: Attempt) -> Any:
    live, run = attempt.live, attempt.run
    with live.interruptions.open() as interruption:
        arm_deadline(engine, run, interruption)
        try:
            with live.lock:
                run.accounts.check_granted()
        except BaseException:
            attempt.abandon(e.NOT_INVOKED)
            raise
        # The policy of tools has one attempt, so there is no delay until another.
        value, _ = await carry_out(attempt, interruption)
        return value


def _taken(attempt: Attempt, task: asyncio.Task[ToolResult]) -> ToolResult:
    """The result of a task that has ended; one that its own operation cancelled has failed."""
    if not task.cancelled():
        return task.result()
    attempt.abandon(e.NOT_INVOKED)
    return _failed(attempt, asyncio.CancelledError(), FailureType.CANCELLED)


def _failed(attempt: Attempt, error: BaseException, failure: FailureType) -> ToolResult:
    return ToolResult.of(attempt.operation, ToolStatus.FAILED, error=error, failure=failure)


def _denied(operation: Operation, denial: ToolDenied) -> ToolResult:
    return ToolResult.of(operation, ToolStatus.DENIED, error=denial, failure=FailureType.DENIED)


def _within_batch(run: RunContext, ordinal: int, index: int) -> RunContext:
    """The run as one call of a batch sees it."""
    return replace(run, path=(*run.path, BATCH, BATCH_NAME, str(ordinal), "1", str(index)), ordinals=Ordinals())
