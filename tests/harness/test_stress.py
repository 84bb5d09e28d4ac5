"""Many threads, let go by one signal, on one run: nothing is lost, and nothing is counted twice (CASES 2, 12)."""

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

from harness import (
    BudgetSnapshot,
    CancelReason,
    CapacityExceeded,
    Price,
    PriceTable,
    RunContext,
    RunEnded,
    ScopeExhausted,
    ScopeLimits,
    TokenUsage,
    evolve,
)
from tests.harness.fakes import HandJournal, Reply, each, harness_over, left_with, limits, race, say, types

THREADS = 64
ROOMY = limits(model_calls=1000, tool_calls=1000, per_tool_default=1000, input_tokens=10**6, total_tokens=10**6)
PRICES = PriceTable("v1", "USD", {"m": Price(input_micros_per_million=10**6, output_micros_per_million=3 * 10**6)})


async def ask(run: RunContext, tokens: int) -> Reply:
    return Reply(TokenUsage(tokens, 1))


def is_consistent(snapshot: BudgetSnapshot) -> bool:
    usage = snapshot.usage
    per_tool = sum(used for name, used in usage.items() if name.startswith("tool:"))
    both = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    return (usage.get("tool_calls", 0), usage.get("total_tokens", 0)) == (per_tool, both)


def watched(runs: list[RunContext], act: Any) -> tuple[list[Any], list[BudgetSnapshot]]:
    """The results of all threads, and the views that a further thread had meanwhile."""
    snapshots: list[BudgetSnapshot] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            snapshots.extend(run.budget.snapshot() for run in runs)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        return race([partial(_run, act, number) for number in range(THREADS)]), snapshots
    finally:
        is_over.set()
        watching.join(timeout=30)


def _run(act: Any, number: int) -> Any:
    return asyncio.run(act(number))


async def test_every_figure_is_the_exact_sum_and_every_view_of_it_agrees_with_itself(journal: HandJournal):
    harness = harness_over(journal, prices=PRICES)
    async with harness.run(session_id="s", run_id="r", limits=ROOMY, timeout_s=60) as run:
        with harness.scope(run, "even", limits=ScopeLimits(tool_calls=999)) as even:

            async def act(number: int) -> None:
                place = (run if number % 2 else even).branch(f"{number}")
                reserve = TokenUsage(number + 7, 3)
                await harness.model(place, "ask", ask, args={"tokens": number}, model="m", reserve=reserve)
                await harness.tool(place, f"tool{number % 3}", say)
                place.capacity.reserve(number + 1)

            results, snapshots = await asyncio.to_thread(watched, [run, even], act)
            scope = even.budget.snapshot()
    assert results == [None] * THREADS
    assert [snapshot for snapshot in snapshots if not is_consistent(snapshot)] == []
    usage, tokens = journal.state("r").usage, sum(range(THREADS))
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (tokens, 64, tokens + 64)
    assert (usage["cost_micros"], usage["model_calls"], usage["tool_calls"]) == (tokens + 3 * 64, 64, 64)
    assert [usage[f"tool:tool{number}"] for number in range(3)] == [22, 21, 21]
    assert (scope.usage["input_tokens"], scope.usage["model_calls"]) == (sum(range(0, THREADS, 2)), 32)
    assert journal.state("r").reserved == {}


@pytest.mark.parametrize("is_scoped", [False, True])
async def test_of_all_that_race_as_many_get_through_as_may(journal: HandJournal, is_scoped: bool):
    harness = harness_over(journal)
    refusal = ScopeExhausted if is_scoped else RunEnded
    allowed = limits(tool_calls=20 if not is_scoped else 1000, per_tool_default=1000)
    with left_with(refusal):
        async with harness.run(session_id="s", run_id="r", limits=allowed, timeout_s=60) as run:
            with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=20 if is_scoped else 1000)) as child:

                async def act(number: int) -> Any:
                    return await harness.tool(child.branch(f"{number}"), f"tool{number % 5}", say)

                results, snapshots = await asyncio.to_thread(watched, [run, child], act)
                await act(THREADS)
    got_through = [type(result) for result in results].count(dict)
    assert [type(result) for result in results].count(refusal) == THREADS - got_through
    # The end of a run stops even what was let through; the end of a scope does not.
    assert got_through == 20 if is_scoped else got_through <= 20
    assert types(journal.events("r")).count("attempt.started") == 20
    assert [snapshot for snapshot in snapshots if not is_consistent(snapshot)] == []
    assert journal.state("r").usage["tool_calls"] == 20
    assert types(journal.events("r")).count("reservation.rejected") == 1


async def test_bytes_raced_for_through_the_counter_never_pass_the_narrowest_limit(journal: HandJournal):  # H9
    harness = harness_over(journal)
    async with harness.run(session_id="s", run_id="r", limits=limits(run_bytes=1000), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(run_bytes=100)) as child:

            async def act(number: int) -> None:
                child.capacity.reserve(7)

            results, snapshots = await asyncio.to_thread(watched, [run, child], act)
            assert child.capacity.used_bytes == 98
    assert [type(result) for result in results].count(CapacityExceeded) == THREADS - 14
    assert max(snapshot.usage.get("run_bytes", 0) for snapshot in snapshots) <= 98
    assert journal.state("r").outcome == "SUCCESS"


async def test_scopes_come_and_go_on_every_thread_while_the_run_is_told_to_stop(journal: HandJournal):  # D5, H3
    harness = harness_over(journal)
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=ROOMY, timeout_s=60) as run:

            async def act(number: int) -> None:
                if number == THREADS // 2:
                    run.cancellation.signal(CancelReason.USER_REQUESTED)
                branch = run.branch(f"{number}")
                with (
                    harness.scope(branch, "outer", limits=ScopeLimits(tool_calls=2)) as outer,
                    harness.scope(outer, "inner", limits=ScopeLimits(tool_calls=1)) as inner,
                ):
                    await harness.tool(inner, "say", say)
                    with pytest.raises(ScopeExhausted):
                        await harness.tool(inner, "say", say)
                    await harness.tool(outer, "say", say)

            results, _ = await asyncio.to_thread(watched, [run], act)
    assert {type(result) for result in results} <= {type(None), RunEnded}
    events, state = journal.events("r"), None
    for event in events:
        state = evolve(state, event)
    assert state == journal.state("r")
    started = len(each(events, "attempt.started"))
    assert journal.state("r").usage.get("tool_calls", 0) == started
    assert types(events).count("run.terminated") == 1
