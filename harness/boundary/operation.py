"""A call at a boundary, with everything that its record says of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, NamedTuple

from harness.budget.usage import TokenUsage, tool_resource
from harness.content import Capture, CapturePolicy, Redactor
from harness.context import RunContext
from harness.errors import InvalidInput
from harness.retry import RetryPolicy
from harness.state import NOTHING

EFFECTS = frozenset({"read", "write"})
"""What a tool may be declared to do to the world."""


class Operation(NamedTuple):
    """What is called, as which kind of boundary, and under which policy."""

    kind: str
    """`model`, `tool` or `guard`."""
    name: str
    operation: str
    policy: RetryPolicy
    ordinal: int
    args: Mapping[str, Any]
    """The arguments by name, for the record."""
    call: Callable[[RunContext], Any]
    is_async: bool
    """Whether `call` gives an awaitable at once; if not, it runs on a thread."""
    estimate: Mapping[str, int] = NOTHING
    """Tokens and cost that each attempt reserves before it starts."""
    model: str | None = None
    call_id: str | None = None
    tool_key: str | None = None
    effect: str | None = None
    timeout_s: float | None = None
    """How long one attempt may take; None: as long as the run."""

    def segments(self, number: int) -> tuple[str, str, str, str]:
        """The end of the identity of attempt `number`."""
        return self.kind, self.name, str(self.ordinal), str(number)

    def capture(self, policy: CapturePolicy, role: str) -> Capture | Redactor:
        """How much to keep of what it is given or gives: `input`, `output` or `error`."""
        capture: Capture | Redactor = getattr(policy, role if role == "error" else f"{self.kind}_{role}")
        return capture

    @property
    def calls(self) -> dict[str, int]:
        """What one attempt counts as."""
        if self.kind == "model":
            return {"model_calls": 1}
        return {"tool_calls": 1, tool_resource(self.name): 1} if self.kind == "tool" else {}

    def amounts(self, input_bytes: int) -> dict[str, int]:
        """What one attempt is charged before it starts: its call, the bytes that are kept of its input, an estimate."""
        kept = {"run_bytes": input_bytes} if input_bytes else {}
        return {**self.calls, **kept, **self.estimate}


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling `fn` gives an awaitable without running anything; `InvalidInput` if it can be no operation."""
    called = getattr(fn, "__call__", None)  # noqa: B004 - what it is like is asked next
    if called is None:
        raise InvalidInput("fn", f"must be callable, and {type(fn).__name__} is not")
    # How a plain function is called says nothing more of it.
    candidates = (fn,) if isinstance(fn, FunctionType) else (fn, called)
    if any(inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each) for each in candidates):
        raise InvalidInput("fn", "is a generator function: what it does would happen after the boundary")
    return any(map(inspect.iscoroutinefunction, candidates))


def check_effect(effect: object) -> str:
    """`effect` if it is one that policies know, else `InvalidInput`."""
    if not isinstance(effect, str) or effect not in EFFECTS:
        raise InvalidInput("effect", f"must be read or write, not {effect!r}")
    return effect


def is_streaming(fn: Callable[..., Any]) -> bool:
    """Whether calling `fn` can give a stream; `InvalidInput` if it cannot be called, or gives a plain generator."""
    called = getattr(fn, "__call__", None)  # noqa: B004 - what it is like is asked next
    if called is None:
        raise InvalidInput("fn", f"must be callable, and {type(fn).__name__} is not")
    if inspect.isgeneratorfunction(fn) or inspect.isgeneratorfunction(called):
        raise InvalidInput("fn", "is a plain generator function: a stream is asynchronous")
    return True


def reported_usage(result: object) -> TokenUsage | None:
    """The `TokenUsage` that a reply carries as its `usage`, or None: unknown."""
    try:
        usage = getattr(result, "usage", None)
    except Exception:  # noqa: BLE001 - the reply is the application's, and so is what its properties raise
        return None
    return usage if isinstance(usage, TokenUsage) else None
