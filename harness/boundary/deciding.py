"""Policies are asked whether a tool may be called. They fail closed, and what each decides is on record.

Every policy must allow a call; the first that denies it is the last that is asked. Whatever is no `Decision` given in
time - an exception, another type, silence - denies it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from types import MappingProxyType

from harness.boundary.operation import Operation
from harness.context import RunContext
from harness.engine import Engine
from harness.hooks.calling import call_hook, hook_name
from harness.hooks.policies import POLICY_FAILED, Decision, Policy, ToolRequest
from harness.ids import boundary_id

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One policy's decision, under its name."""

    policy: str
    decision: Decision


async def ask_policies(engine: Engine, run: RunContext, operation: Operation) -> tuple[Verdict, ...]:
    """What the policies decide of the operation, in their order, up to the first that denies it.

    `RunEnded` or `ScopeExhausted` if nothing may be let through in any case.
    """
    if operation.kind != "tool":
        return ()
    if engine.script is not None:
        boundary = boundary_id(run.path, operation.kind, operation.name, operation.ordinal, 1)
        return tuple(Verdict(*said) for said in engine.script.verdicts(boundary))
    if not engine.policies:
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
