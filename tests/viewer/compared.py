"""Two runs of one agent that take the same course or part, in a real ledger."""

from dataclasses import replace
from pathlib import Path

from harness import ManualClock, TokenUsage
from ledger import Ledger
from tests.viewer.example_runs import HOSTILE
from tests.viewer.real_runs import LIMITS, Agent, Reply

LONG = 300
"""Boundaries of the long run, more than a page has."""


async def record_compared(path: Path) -> None:
    """`r-again` only uses more than `r-first`, of `r-unreported` nobody knows, and `r-erased` lost its words.

    `r-other` parts from them.
    """
    clock = ManualClock()
    async with await Ledger.open(path, wall_clock=clock) as ledger:
        agent = Agent(ledger, clock)
        await ledger.open_session("s-1")
        await ledger.open_session("s-2")
        await _course(agent, "r-first", "The disk is full.", TokenUsage(100, 20))
        await _course(agent, "r-again", "The disk is full.", TokenUsage(350, 80), slower_s=1.2)
        await _course(agent, "r-unreported", "The disk is full.", None)
        await _course(agent, "r-erased", "The disk is fine.", TokenUsage(100, 20))
        async with agent.run("s-1", "r-other", "Why is it slow?") as run:
            await agent.ask(run.branch("router"), "router", Reply("AI_OPS"))
            await agent.use(run.branch("executor.1"), "<i>restart</i>", {"what": HOSTILE[0]}, {}, effect="write")
            agent.harness.answer(run, "Restarted.")
        limits = replace(LIMITS, tool_calls=1_000, per_tool_default=200)
        async with agent.run("s-2", "r-long", "Why is it slow?", limits=limits, timeout_s=600.0) as run:
            for number in range(LONG):
                await agent.use(run.branch("executor.1"), f"look_{number % 7}", {"page": number}, {"rows": number})
        await ledger.erase(run=("s-1", "r-erased"))


async def _course(agent: Agent, run_id: str, answer: str, usage: TokenUsage | None, slower_s: float = 0.0) -> None:
    async with agent.run("s-1", run_id, "Why is it slow?") as run:
        await agent.ask(run.branch("router"), "router", Reply("CHAT_GRAPH"))
        agent.clock.advance(slower_s)
        for disk in range(6):
            await agent.use(run.branch("executor.1"), "query_metrics", {"disk": disk}, {"used_percent": 100})
        await agent.ask(run.branch("composer.2"), "composer", Reply(answer, usage))
        agent.harness.answer(run, answer)
