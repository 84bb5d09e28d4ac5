"""Policies say whether a tool may be called. They fail closed, and what each decides is on record.

Every policy must allow a call; the first that denies it is the last that is asked. Whatever is no `Decision` given in
time - an exception, another type, silence - denies it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from harness.boundary.operation import Operation
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import InvalidInput
from harness.hooks.ports import call_hook, hook_name
from harness.ids import check_code

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that asks to be let through."""

    session_id: str
    run_id: str
    name: str
    effect: str | None
    """`read` or `write`, as the caller declares it; None is unknown, which is not `read`."""
    arguments: Mapping[str, Any]
    """By name, the very objects that the tool gets: look, and change nothing."""
    call_id: str | None
    tool_key: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy says of a call."""

    allowed: bool
    reason: str
    """A code for the record, never a text, which could hold what the arguments hold."""

    def __post_init__(self) -> None:
        if not isinstance(self.allowed, bool):
            raise InvalidInput("allowed", f"must be True or False, not {type(self.allowed).__name__}")
        check_code("reason", self.reason)

    @classmethod
    def allow(cls, reason: str = "ALLOWED") -> Decision:
        return cls(True, reason)

    @classmethod
    def deny(cls, reason: str) -> Decision:
        return cls(False, reason)


POLICY_FAILED = Decision.deny("POLICY_FAILED")
"""What a policy decides that raises, answers with anything but a `Decision`, or not in time."""

Policy: TypeAlias = Callable[[ToolRequest], Decision | Awaitable[Decision]]
"""Asked before each tool call, before anything of it is charged."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One policy's decision, under its name."""

    policy: str
    decision: Decision


async def ask_policies(engine: Engine, run: RunContext, operation: Operation) -> tuple[Verdict, ...]:
    """What the policies decide of the operation, in their order, up to the first that denies it.

    `RunEnded` or `ScopeExhausted` if nothing may be let through in any case.
    """
    if operation.kind != "tool" or not engine.policies:
        return ()
    with run.live.lock:
        run.accounts.check_open()
    request = ToolRequest(
        session_id=run.session_id,
        run_id=run.run_id,
        name=operation.name,
        effect=operation.effect,
        arguments=MappingProxyType(dict(operation.args)),
        call_id=operation.call_id,
        tool_key=operation.tool_key,
    )
    verdicts: list[Verdict] = []
    for policy in engine.policies:
        verdicts.append(Verdict(hook_name(policy), await _decide(engine, policy, request)))
        if not verdicts[-1].decision.allowed:
            break
    return tuple(verdicts)


async def _decide(engine: Engine, policy: Policy, request: ToolRequest) -> Decision:
    try:
        decision = await call_hook(engine.threads, policy, request, engine.hook_timeout_s)
    except Exception as error:  # noqa: BLE001 - whatever it raises, it has not allowed the call
        problem = type(error).__name__
    else:
        if isinstance(decision, Decision):
            return decision
        problem = f"an answer of type {type(decision).__name__}"
    log.warning("run %s: policy %s denied %s by %s", request.run_id, hook_name(policy), request.name, problem)
    return POLICY_FAILED
