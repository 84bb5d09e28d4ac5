"""A call at a boundary, with everything that its record says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harness.budget.usage import TokenUsage, tool_resource
from harness.content import Capture, CapturePolicy, Redactor
from harness.context import RunContext, check_run
from harness.deadline import check_timeout
from harness.errors import InvalidInput
from harness.ids import boundary_id, check_code, check_name
from harness.retry import RetryPolicy
from harness.state import NOTHING


class Operation(NamedTuple):
    """What is called, as which kind of boundary, and under which policy."""

    kind: str
    """`model`, `tool` or `guard`."""
    name: str
    policy: RetryPolicy
    """Its `kind` is what the operation is for."""
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


def prepare(
    run: RunContext,
    kind: str,
    name: str,
    fn: Callable[..., Any],
    starts_in_loop: bool,
    *,
    args: Mapping[str, Any] | None,
    purpose: str,
    timeout_s: float | None,
) -> Operation:
    """`fn(run, **args)` as an operation, with its ordinal; `InvalidInput` before that is given.

    `purpose` is the kind that decides the retry policy.
    """
    policy = check_run(run).retry_policies.of(check_code("kind", purpose))
    timeout_s = None if timeout_s is None else check_timeout("timeout_s", timeout_s)
    if args is not None and not isinstance(args, Mapping):
        raise InvalidInput("args", f"must be a mapping, not {type(args).__name__}")
    named = dict(args or {})
    name = check_name("name", name)
    ordinal = run.next_ordinal(kind, name)
    # A place in the record that no retry can outgrow.
    boundary_id(run.path, kind, name, ordinal, policy.max_attempts)

    def call(inside: RunContext) -> Any:
        return fn(inside, **named)

    return Operation(kind, name, policy, ordinal, named, call, starts_in_loop, timeout_s=timeout_s)


def reported_usage(result: object) -> TokenUsage | None:
    """The `TokenUsage` that a reply carries as its `usage`, or None: unknown."""
    try:
        usage = getattr(result, "usage", None)
    except Exception:  # noqa: BLE001 - the reply is the application's, and so is what its properties raise
        return None
    return usage if isinstance(usage, TokenUsage) else None
