"""Calls of tools, what a batch of them is given and gives back: one result for each, whatever became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from harness.boundary.operation import Operation, prepare
from harness.budget.usage import check_tool_name, is_limited, tool_resource
from harness.concurrency.functions import is_async
from harness.context import RunContext, check_run
from harness.errors import InvalidInput
from harness.hooks.policies import check_effect
from harness.ids import check_name
from harness.retry import FailureType, OperationKind

MAX_BATCH_CALLS = 50
"""Calls of one batch: they are charged in one event, and started in one append."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a batch, with what `Harness.tool` takes."""

    fn: Callable[..., Any]
    """Called as `fn(run, **args)`; asynchronous or not."""
    args: Mapping[str, Any] | None = None
    name: str | None = None
    """The tool's name; None takes the function's."""
    call_id: str | None = None
    """The framework's id of the call, kept exactly as a label; it need not be unique (CASES 24)."""
    tool_key: str | None = None
    effect: str | None = None
    """`read` or `write`."""
    timeout_s: float | None = None


class ToolStatus(Enum):
    """What became of one call of a batch."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DENIED = "DENIED"
    """A policy denied it; the others were let through without it."""
    NOT_EXECUTED = "NOT_EXECUTED"
    """A limit refused the batch, so that none of its calls was started or charged."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of the call at the same index."""

    name: str
    call_id: str | None
    status: ToolStatus
    value: Any = field(default=None, repr=False)
    """What the tool returned, if it succeeded."""
    error: BaseException | None = field(default=None, repr=False)
    """What `Harness.tool` would have raised, if it did not."""
    failure: FailureType | None = None
    """The type of that failure."""

    @classmethod
    def of(cls, operation: Operation, status: ToolStatus, **fields: Any) -> ToolResult:
        """The result of an operation, under its name and call id."""
        return cls(operation.name, operation.call_id, status, **fields)


def check_calls(calls: object) -> Sequence[ToolCall]:
    """The calls of a batch, or `InvalidInput`."""
    if not isinstance(calls, list | tuple):
        raise InvalidInput("calls", f"must be a list of ToolCall, not {type(calls).__name__}")
    if len(calls) > MAX_BATCH_CALLS:
        raise InvalidInput("calls", f"must be at most {MAX_BATCH_CALLS}, not {len(calls)}")
    for index, call in enumerate(calls):
        if not isinstance(call, ToolCall):
            raise InvalidInput(f"calls[{index}]", f"must be a ToolCall, not {type(call).__name__}")
    return calls


def name_of(fn: Callable[..., Any]) -> str:
    """The name of a tool that is given none."""
    name = getattr(fn, "__name__", None)
    return name if isinstance(name, str) else type(fn).__name__


def tool_operation(
    run: RunContext,
    name: str,
    fn: Callable[..., Any],
    args: Mapping[str, Any] | None,
    *,
    call_id: str | None,
    tool_key: str | None,
    effect: str | None,
    timeout_s: float | None,
) -> Operation:
    """A call of a tool as an operation; `InvalidInput` also where the tool has no limit (SPEC H4)."""
    name = check_tool_name("tool", name)
    if not is_limited(check_run(run).live.state, tool_resource(name)):
        raise InvalidInput("tool", f"{name} has no limit: give limits.per_tool[{name!r}] or per_tool_default")
    call_id = None if call_id is None else check_name("call_id", call_id)
    tool_key = None if tool_key is None else check_name("tool_key", tool_key)
    effect = None if effect is None else check_effect(effect)
    purpose = OperationKind.TOOL_CALL
    operation = prepare(run, "tool", name, fn, is_async(fn), args=args, purpose=purpose, timeout_s=timeout_s)
    return operation._replace(call_id=call_id, tool_key=tool_key, effect=effect)
