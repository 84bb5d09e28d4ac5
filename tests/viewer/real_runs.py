"""Runs that a real harness made, in a real ledger; the clock is moved by hand, so that every time is known."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness import (
    CancelReason,
    FailureType,
    Harness,
    Limits,
    ManualClock,
    OperationKind,
    Price,
    PriceTable,
    Run,
    RunEnded,
    ScopeExhausted,
    ScopeLimits,
    TokenUsage,
    ToolDenied,
    ToolRules,
    TypedFailure,
)
from ledger import Ledger
from tests.viewer.example_runs import HOSTILE

LIMITS = Limits(
    model_calls=8,
    tool_calls=40,
    input_tokens=8_000,
    output_tokens=2_000,
    total_tokens=10_000,
    run_bytes=16_000_000,
    per_tool={"query_logs": 2},
    per_tool_default=12,
)


PRICES = PriceTable(
    "2026-11",
    "USD",
    {"offline-rules-1": Price(input_micros_per_million=2_000_000, output_micros_per_million=8_000_000)},
)


@dataclass(frozen=True)
class Reply:
    """What a model says, with what it cost."""

    text: str
    usage: TokenUsage | None = field(default_factory=lambda: TokenUsage(100, 20))


class Agent:
    """Does work that takes a known time."""

    def __init__(self, ledger: Ledger, clock: ManualClock, **settings: Any) -> None:
        async def sleep(_: float) -> None:
            clock.advance(0.08)  # without jitter

        self.clock = clock
        self.harness = Harness(ledger.journal, monotonic_clock=clock, wall_clock=clock, sleep=sleep, **settings)

    def run(self, session_id: str, run_id: str, query: str, **settings: Any) -> Any:
        own = {"limits": LIMITS, "timeout_s": 60.0, "agent": "triage@1.4", "flow": "CHAT_GRAPH", **settings}
        return self.harness.run(session_id=session_id, run_id=run_id, query=query, **own)

    async def ask(self, run: Run, name: str, reply: Reply, *, fails: int = 0, **settings: Any) -> Reply:
        left = [fails]

        def call(run: Run) -> Reply:
            self.clock.advance(0.3)
            if left[0]:
                left[0] -= 1
                raise TypedFailure(FailureType.TRANSPORT, "connection reset")
            return reply

        return await self.harness.model(run, name, call, model="offline-rules-1", **settings)

    async def use(self, run: Run, name: str, args: dict[str, Any], result: Any, *, effect: str = "read") -> Any:
        def call(run: Run, **_: Any) -> Any:
            self.clock.advance(0.2)
            if isinstance(result, Exception):
                raise result
            return result

        return await self.harness.tool(run, name, call, args=args, call_id="call_0", effect=effect)

    async def guard(self, run: Run, name: str) -> None:
        def check(run: Run) -> bool:
            self.clock.advance(0.01)
            return True

        await self.harness.guard(run, name, check, kind=OperationKind.EVIDENCE_REPAIR)


async def answered(agent: Agent) -> None:
    async with agent.run("s-1", "r-answered", "Why is it slow?", actor="on-call", labels={"team": "ops"}) as run:
        await agent.ask(run.branch("router"), "router", Reply("CHAT_GRAPH"), fails=1, kind=OperationKind.INTENT_ROUTER)
        agent.harness.transition(run, None, "executor")
        here = run.branch("executor.1")
        await agent.use(here, "query_metrics", {"what": "disk"}, {"used_percent": 100})
        with contextlib.suppress(OSError):
            await agent.use(here, "query_logs", {"pattern": "OOM"}, OSError("kern.log: permission denied"))
        agent.harness.transition(run, "executor", "composer")
        await agent.use(run.branch("composer.2"), "open_ticket", {"title": "disk"}, {"id": 7}, effect="write")
        await agent.ask(run.branch("composer.2"), "composer", Reply("The disk is full."))
        agent.harness.finish_graph(run, final_node="composer", reason="COMPOSED")
        agent.harness.answer(run, "The disk is full.")


async def over_budget(agent: Agent) -> None:
    with contextlib.suppress(RunEnded):
        async with agent.run("s-1", "r-budget", "Why did the import stop?") as run:
            agent.harness.transition(run, None, "executor")
            for pattern in ("OOM", "ENOSPC", "rotate"):
                await agent.use(run.branch("executor.1"), "query_logs", {"pattern": pattern}, {"matches": []})


async def failed(agent: Agent) -> None:
    with contextlib.suppress(ValueError):
        async with agent.run("s-2", "r-failed", "What is broken?") as run:
            await agent.guard(run, "check")
            raise ValueError("the plan was empty")


async def cancelled(agent: Agent) -> None:
    with contextlib.suppress(RunEnded):
        async with agent.run("s-2", "r-cancelled", "Are you there?") as run:
            run.cancellation.signal(CancelReason.CLIENT_DISCONNECTED)


async def timed_out(agent: Agent) -> None:
    with contextlib.suppress(RunEnded):
        async with agent.run("s-2", "r-timed-out", "How long?", timeout_s=1.0) as run:
            for _ in range(9):
                await agent.use(run, "query_metrics", {}, {})


async def hostile(agent: Agent) -> None:
    async with agent.run("s-3", "r-hostile", " ".join(HOSTILE), agent="<script>x</script>@<b>") as run:
        for number, text in enumerate(HOSTILE):
            await agent.use(run.branch(f"<b>{number}</b>.1"), "<i>tool</i>", {text: text}, text)
        await agent.use(run, "big_line", {}, "x" * 5_000_000)
        agent.harness.transition(run, None, "'\"><svg onload=alert(1)>")
        agent.harness.answer(run, " ".join(HOSTILE))


async def astray(agent: Agent) -> None:
    """Everything that a run can have beside its plain course, but hidden requests."""
    limits = replace(
        LIMITS, cost_micros=4_000, repeated_calls=1, observe=frozenset({"tool:query_logs", "repeated_calls"})
    )

    async def chunks(run: Run) -> AsyncIterator[Any]:
        agent.clock.advance(0.4)
        yield "It was "
        agent.clock.advance(0.2)
        yield Reply("deploy 4711.")

    async with agent.run("s-4", "r-astray", "Which deploy was it?", limits=limits) as run:
        here = run.branch("executor.1")
        with agent.harness.scope(here, "deploys", limits=ScopeLimits(model_calls=1), timeout_s=30.0) as scope:
            await agent.ask(scope, "planner", Reply("look"), reserve=TokenUsage(400, 90))
            for _ in range(3):
                await agent.use(scope, "query_logs", {"pattern": "deploy"}, {"matches": []})
            with contextlib.suppress(ScopeExhausted):
                await agent.ask(scope, "planner", Reply("look again"))
        with contextlib.suppress(ToolDenied):
            await agent.use(here, "rollback", {"deploy": 4711}, {}, effect="write")
        async with agent.harness.stream(
            run.branch("composer.2"), "composer", chunks, model="offline-rules-1"
        ) as stream:
            said = [chunk async for chunk in stream]
        agent.harness.answer(run, f"{said[0]}{said[1].text}")


async def record_runs(path: Path) -> None:
    """Make every run."""
    clock = ManualClock()
    async with await Ledger.open(path, wall_clock=clock) as ledger:
        agent = Agent(ledger, clock)
        for session_id in ("s-1", "s-2", "s-3", "s-empty"):
            await ledger.open_session(session_id)
        for make in (answered, over_budget, failed, cancelled, timed_out, hostile):
            clock.advance(60)
            await make(agent)
        clock.advance(60)
        await astray(Agent(ledger, clock, prices=PRICES, policies=(ToolRules(effects={"read"}),)))
        await ledger.record_feedback("s-1", "r-answered", useful=True, comment="Exactly.")
        await ledger.record_evaluation("s-1", "r-answered", evaluator="aiops_rule_evaluation", verdict="PASS")
