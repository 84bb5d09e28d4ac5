"""Whatever a run does, its limits hold and its figures agree (SPEC H4, H4a, H9)."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness import CapacityExceeded, RunEnded, TokenUsage
from harness.budget.usage import find_excess, limit_of
from harness.state import ScopeState, charge
from tests.harness.fakes import HandJournal, Reply, each, harness_over, limits

TOOLS = ("grep", "cat")
RESERVED = {"model_calls", "tool_calls", "tool:grep", "tool:cat", "run_bytes"}
"""What is charged before the work, and so never passes its limit."""


tokens = st.one_of(st.none(), st.integers(0, 40))
steps = st.one_of(
    st.tuples(st.just("tool"), st.sampled_from(TOOLS), st.integers(0, 30)),
    st.tuples(st.just("model"), tokens, tokens),
    st.tuples(st.just("bytes"), st.integers(1, 30), st.none()),
    st.tuples(st.just("reserve"), st.integers(1, 30), st.none()),
)
small = st.integers(1, 6)


async def take(harness: Any, run: Any, step: tuple[Any, ...]) -> None:
    kind, first, second = step
    if kind == "tool":
        await harness.tool(run, first, lambda run: "x" * second)
    elif kind == "model":
        await harness.model(run, "ask", lambda run: Reply(TokenUsage(first, second)))
    elif kind == "bytes":
        harness.reserve_bytes(run, first)
    else:
        run.capacity.reserve(first)


@given(
    st.lists(steps, max_size=14),
    st.fixed_dictionaries(
        {
            "model_calls": small,
            "tool_calls": small,
            "output_tokens": st.integers(1, 100),
            "run_bytes": st.integers(1, 150),
            "per_tool": st.fixed_dictionaries({"grep": small}),
            "per_tool_default": small,
        }
    ),
)
def test_reservations_never_pass_a_limit_and_what_is_refused_charges_nothing(
    steps: list[tuple[Any, ...]], allowed: dict[str, Any]
):
    async def live() -> None:
        journal = HandJournal()
        harness = harness_over(journal)
        refused = False
        ended: RunEnded | None = None
        try:
            async with harness.run(session_id="s", run_id="r", limits=limits(**allowed), timeout_s=60) as run:
                for step in steps:
                    before = run.budget.snapshot()
                    was_running = run.lifecycle.is_running
                    try:
                        await take(harness, run, step)
                    except CapacityExceeded:
                        assert run.budget.snapshot() == before
                        assert run.lifecycle.is_running
                    except RunEnded:
                        refused = True
                        assert run.budget.snapshot() == before
                        assert not run.lifecycle.is_running
                    else:
                        assert was_running
                    check(run.budget.snapshot())
        except RunEnded as error:
            ended = error
        assert not (refused and ended is None)
        assert ended is None or ended.outcome == "BUDGET_EXHAUSTED"
        state = journal.state("r")
        granted: Any = {}
        for event in each(journal.events("r"), "reservation.granted"):
            granted = charge(granted, event.usage)
        assert {name: state.usage.get(name, 0) for name in granted if name != "run_bytes"} == {
            name: used for name, used in granted.items() if name != "run_bytes"
        }
        assert journal.permits_open == 0

    asyncio.run(live())


def check(snapshot: Any) -> None:
    usage = snapshot.usage
    assert sum(used for name, used in usage.items() if name.startswith("tool:")) == usage.get("tool_calls", 0)
    assert [name for name in RESERVED & usage.keys() if usage[name] > (limit_of(snapshot, name) or 0)] == []
    known = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    assert usage.get("total_tokens", 0) == known


figures = st.dictionaries(st.sampled_from(["a", "b", "tool:x", "tool:y"]), st.integers(0, 20))


@given(figures, figures, figures.filter(bool))
def test_there_is_an_excess_exactly_if_charging_would_pass_a_limit(
    allowed: dict[str, int], used: dict[str, int], amounts: dict[str, int]
):
    excess = find_excess(ScopeState("at", allowed, (), usage=used), amounts)
    passed = {name for name in amounts if name in allowed and used.get(name, 0) + amounts[name] > allowed[name]}
    assert (excess is None) is (passed == set())
    if excess is not None:
        assert excess.resource in passed
        assert (excess.used, excess.limit) == (used.get(excess.resource, 0), allowed[excess.resource])
        assert excess.used + excess.amount > excess.limit
