"""One fold for everyone: it is pure, and the live state is the fold of the journal (SPEC E1)."""

import asyncio
import copy
import random
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness import (
    FailureType,
    HarnessError,
    IllegalEvent,
    OperationKind,
    ScopeLimits,
    TokenUsage,
    TypedFailure,
    evolve,
)
from harness import events as e
from harness.state import RUNNING, RunState
from tests.examples import examples
from tests.harness.fakes import HandJournal, harness_over, limits, say

plans = st.recursive(
    st.sampled_from(["say", "fail", "flaky", "ask", "check", "move", "bytes", "hang", "narrow"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=10,
)


@dataclass(frozen=True)
class Reply:
    usage: TokenUsage | None = None


async def follow(harness: Any, run: Any, plan: Any) -> None:
    """A tree of work: a list is a tool that does each part in a branch of its own, all at once."""
    if isinstance(plan, list):
        await harness.tool(run, "nest", nest(harness, plan))
    elif plan == "say":
        await harness.tool(run, "say", say, args={"n": 1})
    elif plan == "fail":
        await harness.tool(run, "fail", broken)
    elif plan == "flaky":
        await harness.model(run, "route", broken, kind=OperationKind.INTENT_ROUTER)
    elif plan == "ask":
        await harness.model(run, "ask", lambda run: Reply(TokenUsage(3, None)))
    elif plan == "check":
        await harness.guard(run, "check", say)
    elif plan == "move":
        harness.transition(run, None, "planner")
    elif plan == "narrow":
        with harness.scope(
            run, "narrow", limits=ScopeLimits(tool_calls=1, observe={"tool_calls"}), timeout_s=9
        ) as wide:
            await harness.tool(wide, "say", say)
            with harness.scope(wide, "narrow", limits=ScopeLimits(tool_calls=1)) as narrow:
                await asyncio.gather(*(harness.tool(narrow.branch(key), "say", say) for key in "ab"))
    elif plan == "bytes":
        harness.reserve_bytes(run, 7)
    else:
        async with asyncio.timeout(0):
            await harness.model(run, "hang", hang)


def nest(harness: Any, plans: list[Any]) -> Any:
    async def inner(run: Any) -> None:
        parts = (follow(harness, run.branch(f"{number}"), plan) for number, plan in enumerate(plans))
        await asyncio.gather(*parts, return_exceptions=True)

    return inner


async def broken(run: Any) -> None:
    raise TypedFailure(FailureType.TRANSPORT, "reset", usage=TokenUsage(1, 1))


async def hang(run: Any) -> None:
    await asyncio.Event().wait()


async def lived(plan: Any, journal: HandJournal, **changed: Any) -> Any:
    """The run of a plan, after its end."""
    harness = harness_over(journal, sleep=lambda _: asyncio.sleep(0))
    try:
        async with harness.run(session_id="s", run_id="r", limits=limits(**changed), timeout_s=60) as run:
            await follow(harness, run, [plan])
    except (HarnessError, TimeoutError):
        pass
    return run


def values(state: RunState) -> dict[str, Any]:
    return {name: copy.deepcopy(dict_of(value)) for name, value in vars(state).items()}


def dict_of(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return dict_of(value._asdict())
    return {key: dict_of(each) for key, each in value.items()} if hasattr(value, "keys") else value


@given(plans, st.integers(2, 40))
def test_the_live_state_is_the_fold_of_what_was_recorded(plan: Any, tool_calls: int):
    journal = HandJournal()
    run = asyncio.run(lived(plan, journal, tool_calls=tool_calls))
    folded = None
    for event in journal.events("r"):
        folded = evolve(folded, event)
    assert folded is not None
    assert folded == journal.state("r") == run.live.state == run.live.durable
    assert folded.outcome != RUNNING
    assert journal.permits_open == 0


@given(plans)
def test_evolving_changes_no_state_it_is_given_and_reads_the_body_alone(plan: Any):
    journal = HandJournal()
    asyncio.run(lived(plan, journal))
    state: RunState | None = None
    for event in journal.events("r"):
        before = None if state is None else values(state)
        after = evolve(state, event)
        assert evolve(state, e.parse_event(event.model_dump(exclude_none=True))) == after
        assert state is None or values(state) == before
        state = after


@given(plans)
def test_every_attempt_starts_once_ends_once_and_has_a_place_of_its_own(plan: Any):
    journal = HandJournal()
    asyncio.run(lived(plan, journal))
    started = [event for event in journal.events("r") if event.type == "attempt.started"]
    ended = [
        event.attempt_id
        for event in journal.events("r")
        if event.type in ("attempt.succeeded", "attempt.failed", "attempt.abandoned")
    ]
    assert sorted(ended) == sorted({event.attempt_id for event in started})
    assert len({event.boundary for event in started}) == len(started)
    assert len({event.event_id for event in journal.events("r")}) == len(journal.events("r"))
    parents = {event.attempt_id: event for event in started}
    for event in started:
        if event.parent_attempt_id is not None:
            assert event.boundary.startswith(parents[event.parent_attempt_id].boundary + "/")


@given(plans, st.randoms(use_true_random=False))
@examples(50)
def test_a_record_in_another_order_is_refused_or_adds_up_to_the_same(plan: Any, order: random.Random):
    journal = HandJournal()
    asyncio.run(lived(plan, journal))
    first, *rest = journal.events("r")
    order.shuffle(rest)
    state = evolve(None, first)
    try:
        for event in rest:
            state = evolve(state, event)
    except IllegalEvent:
        return
    assert (state.usage, state.outcome) == (journal.state("r").usage, journal.state("r").outcome)
