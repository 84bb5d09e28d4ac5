"""Nested scopes narrow: their limits end them only, and everything is charged to all that is around (SPEC D5)."""

import asyncio
from typing import Any

import pytest

from harness import (
    CancelReason,
    FailureType,
    Harness,
    InvalidInput,
    OperationKind,
    RetryPolicy,
    RunContext,
    RunEnded,
    ScopeExhausted,
    ScopeLimits,
    ScopeNotOpen,
    SyncHarness,
    TokenUsage,
    TypedFailure,
)
from harness.block import scope as block
from harness.concurrency.threads import ToolThreads
from tests.harness.fakes import (
    HandJournal,
    Reply,
    each,
    left_with,
    limits,
    only,
    say,
    types,
    until,
)


async def ask(run: RunContext, tokens: int = 0) -> Reply:
    return Reply(TokenUsage(0, tokens))


def used(run: RunContext, resource: str) -> int:
    return run.budget.snapshot().usage.get(resource, 0)


async def test_what_a_scope_uses_is_charged_to_it_to_those_around_it_and_to_the_run(
    harness: Harness, journal: HandJournal
):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "say", say)
        with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=9)) as planner:
            await harness.tool(planner, "say", say)
            with harness.scope(planner, "worker", limits=ScopeLimits(tool_calls=9)) as worker:
                await harness.model(worker, "ask", ask, args={"tokens": 5})
                await harness.tool(worker, "say", say)
                worker.capacity.reserve(7)
            with harness.scope(planner, "worker", limits=ScopeLimits(tool_calls=9)) as second:
                await harness.tool(second, "say", say)
        counts = {name: used(each_run, "tool_calls") for name, each_run in (("run", run), ("planner", planner))}
        counts |= {"worker": used(worker, "tool_calls"), "second": used(second, "tool_calls")}
    assert counts == {"run": 4, "planner": 3, "worker": 1, "second": 1}
    assert [used(each_run, "output_tokens") for each_run in (run, planner, worker, second)] == [5, 5, 5, 0]
    opened = each(journal.events("r"), "scope.opened")
    assert [(event.scope_id, event.parent_scope_id, event.boundary) for event in opened] == [
        ("s1", None, "scope/planner/1/1"),
        ("s2", "s1", "scope/planner/1/1/scope/worker/1/1"),
        ("s3", "s1", "scope/planner/1/1/scope/worker/2/1"),
    ]
    closed = [event.scope_id for event in each(journal.events("r"), "scope.closed")]
    assert closed == ["s2", "s3", "s1"]
    granted = each(journal.events("r"), "reservation.granted")
    assert [event.scope_id for event in granted] == [None, "s1", "s2", "s2", "s2", "s3"]
    assert [event.scope_id for event in each(journal.events("r"), "attempt.started")] == [None, "s1", "s2", "s2", "s3"]


async def test_a_scope_shares_the_handles_of_its_run_and_narrows_its_views(harness: Harness):  # D5, H1a
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(model_calls=3), timeout_s=5) as child:
            assert (child.cancellation, child.lifecycle, child.live) == (run.cancellation, run.lifecycle, run.live)
            assert (child.session_id, child.run_id) == (run.session_id, run.run_id)
            assert child.budget.snapshot().limits == {"model_calls": 3}
            assert child.deadline.at_ns == 5_000_000_000
            assert child.path == ("scope", "planner", "1", "1")
            inside = await harness.tool(child, "look", lambda run: run)
            assert (inside.budget, inside.deadline) == (child.budget, child.deadline)


@pytest.mark.parametrize(
    ("allowed", "resource", "crossing"),
    [
        (ScopeLimits(model_calls=2), "model_calls", lambda harness, run: harness.model(run, "ask", ask)),
        (ScopeLimits(tool_calls=2), "tool_calls", lambda harness, run: harness.tool(run, "say", say)),
        (ScopeLimits(per_tool={"say": 2}), "tool:say", lambda harness, run: harness.tool(run, "say", say)),
        (ScopeLimits(per_tool_default=2), "tool:say", lambda harness, run: harness.tool(run, "say", say)),
        (ScopeLimits(repeated_calls=2), "repeat:say", lambda harness, run: harness.tool(run, "say", say)),
    ],
)
async def test_the_call_beyond_a_limit_of_a_scope_ends_that_scope_only(
    harness: Harness, journal: HandJournal, allowed: ScopeLimits, resource: str, crossing: Any
):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "sibling", limits=allowed) as sibling:
            with left_with(ScopeExhausted) as left, harness.scope(run, "planner", limits=allowed) as child:
                for _ in range(2):
                    await crossing(harness, child)
                before = journal.state("r").usage
                await crossing(harness, child)
            await crossing(harness, sibling)
        assert journal.state("r").usage != before
        assert run.cancellation.reason is None
        await crossing(harness, run)
    error = left.value
    assert (error.code, error.scope, error.resource) == ("scope_exhausted", "scope/planner/1/1", resource)
    assert (error.session_id, error.run_id, error.used, error.limit) == ("s", "r", 2, 2)
    (refusal,) = [each for each in journal.submissions if "reservation.rejected" in types(each.events)]
    assert types(refusal.events) == ["reservation.rejected", "scope.exhausted"]
    assert refusal.is_awaited
    assert [event.scope_id for event in refusal.events] == ["s2", "s2"]  # type: ignore[attr-defined]
    assert journal.state("r").outcome == "SUCCESS"


async def test_in_an_exhausted_scope_and_inside_it_nothing_starts_and_nothing_is_recorded(
    harness: Harness, journal: HandJournal
):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with (
            harness.scope(run, "outer", limits=ScopeLimits(tool_calls=1)) as outer,
            harness.scope(outer, "inner", limits=ScopeLimits(tool_calls=9)) as inner,
        ):
            await harness.tool(inner, "say", say)
            with pytest.raises(ScopeExhausted):
                await harness.tool(inner, "say", say)
            recorded = len(journal.events("r"))
            for child in (outer, inner):
                for doing in everything_in(harness, child):
                    with pytest.raises(ScopeExhausted, match=r"scope/outer/1/1 of run s/r .* tool_calls 1 of 1"):
                        await doing()
            assert len(journal.events("r")) == recorded
        assert only(journal.events("r"), "scope.exhausted").scope_id == "s1"
        harness.answer(run, "all the same")


def everything_in(harness: Harness, run: RunContext) -> list[Any]:
    def at_once(action: Any) -> Any:
        async def doing() -> None:
            action()

        return doing

    return [
        lambda: harness.tool(run, "say", say),
        lambda: harness.model(run, "ask", ask),
        lambda: harness.guard(run.branch("b"), "check", say),
        at_once(lambda: harness.transition(run, None, "planner")),
        at_once(lambda: harness.select_flow(run, "CHAT_GRAPH")),
        at_once(lambda: harness.finish_graph(run, final_node="end", reason="DONE")),
        at_once(lambda: harness.reserve_bytes(run, 1)),
        at_once(lambda: run.capacity.reserve(1)),
        at_once(lambda: harness.answer(run, "42")),
        at_once(lambda: harness.scope(run, "more", timeout_s=1).__enter__()),
    ]


async def test_in_a_scope_that_was_left_nothing_starts_and_nothing_is_recorded(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child:
            await harness.tool(child, "say", say)
        recorded = len(journal.events("r"))
        for doing in everything_in(harness, child):
            with pytest.raises(ScopeNotOpen) as refused:
                await doing()
            assert (refused.value.code, refused.value.scope) == ("scope_not_open", "scope/planner/1/1")
        assert len(journal.events("r")) == recorded
        assert used(child, "tool_calls") == 1


async def test_after_the_runs_end_a_scope_raises_what_its_run_raises(harness: Harness, journal: HandJournal):
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child:
                run.cancellation.signal(CancelReason.USER_REQUESTED)
                for doing in everything_in(harness, child):
                    with pytest.raises(RunEnded, match="USER_REQUESTED"):
                        await doing()
    assert types(journal.events("r"))[-2:] == ["cancellation.signalled", "run.terminated"]
    assert "scope.closed" not in types(journal.events("r"))


@pytest.mark.parametrize("error", [KeyError("out"), asyncio.CancelledError(), GeneratorExit(), KeyboardInterrupt()])
async def test_a_scope_is_closed_on_every_way_out(harness: Harness, journal: HandJournal, error: BaseException):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with left_with(type(error)), harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)):
            raise error
        await harness.tool(run, "say", say)
    assert types(journal.events("r"))[1:3] == ["scope.opened", "scope.closed"]


async def test_a_scope_that_is_left_closes_what_is_open_inside_it_the_innermost_first(
    harness: Harness, journal: HandJournal
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        outer = harness.scope(run, "outer", timeout_s=9)
        middle = harness.scope(outer.__enter__(), "middle", timeout_s=8)
        inner = harness.scope(middle.__enter__(), "inner", limits=ScopeLimits(tool_calls=2))
        child = inner.__enter__()
        await harness.tool(child, "say", say)
        outer.__exit__(None, None, None)
        recorded = types(journal.events("r"))
        for block in (inner, middle, outer):
            block.__exit__(None, None, None)
        assert types(journal.events("r")) == recorded
        assert used(child, "tool_calls") == 1
    assert [event.scope_id for event in each(journal.events("r"), "scope.closed")] == ["s3", "s2", "s1"]


async def test_where_run_and_scope_would_both_refuse_the_run_does(harness: Harness, journal: HandJournal):  # D5
    with left_with(RunEnded, match="tool_calls 1 of 1"):
        async with harness.run(session_id="s", run_id="r", limits=limits(tool_calls=1), timeout_s=60) as run:
            with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child:
                await harness.tool(child, "say", say)
                await harness.tool(child, "say", say)
    assert only(journal.events("r"), "reservation.rejected").scope_id is None
    assert "scope.exhausted" not in types(journal.events("r"))


async def test_a_failure_within_an_exhausted_scope_is_never_retried(harness: Harness, journal: HandJournal):  # D5, H6
    async def over(run: RunContext) -> None:
        with harness.scope(run, "small", limits=ScopeLimits(tool_calls=1)) as small:
            await harness.tool(small, "say", say)
            await harness.tool(small, "say", say)

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(ScopeExhausted):
            await harness.model(run, "route", over, kind=OperationKind.INTENT_ROUTER)
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.will_retry) == ("SCOPE_ENDED", False)
    with pytest.raises(InvalidInput, match="SCOPE_ENDED"):
        RetryPolicy(OperationKind.INTENT_ROUTER, 2, frozenset({FailureType.SCOPE_ENDED}))


async def test_a_scope_exhausted_by_a_failed_attempt_has_no_next_one(harness: Harness, journal: HandJournal):  # D5, H6
    async def costly(run: RunContext) -> None:
        raise TypedFailure(FailureType.MALFORMED_REPLY, "no JSON", usage=TokenUsage(0, 101))

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with (
            harness.scope(run, "small", limits=ScopeLimits(output_tokens=100)) as small,
            pytest.raises(ScopeExhausted, match="output_tokens 101 of 100"),
        ):
            await harness.model(small, "route", costly, kind=OperationKind.INTENT_ROUTER)
    assert len(each(journal.events("r"), "attempt.started")) == 1


async def test_a_scope_that_ends_the_run_is_told_by_the_run(harness: Harness, journal: HandJournal):
    with left_with(ScopeExhausted):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            with harness.scope(run, "small", limits=ScopeLimits(tool_calls=1)) as small:
                await harness.tool(small, "say", say)
                await harness.tool(small, "say", say)
    state = journal.state("r")
    assert (state.outcome, state.reason) == ("FAILED", "SCOPE_EXHAUSTED")


async def test_a_start_that_becomes_durable_after_its_scope_ended_is_not_invoked(
    harness: Harness, journal: HandJournal
):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=9)) as child:
            journal.holds = True
            calling = asyncio.ensure_future(harness.tool(child, "say", say))
            await until(lambda: journal.waiting)
        journal.store_all()
        with pytest.raises(ScopeNotOpen):
            await calling
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_INVOKED"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"limits": {"tool_calls": 1}}, "limits"),
        ({"limits": 7}, "limits"),
        ({"limits": None}, "limits"),
        ({"limits": ScopeLimits()}, "limits"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"timeout_s": True}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
        ({"timeout_s": "5"}, "timeout_s"),
    ],
)
async def test_a_scope_names_what_is_wrong_with_it_and_nothing_is_recorded(
    harness: Harness, journal: HandJournal, changed: dict[str, Any], field: str
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        fields: dict[str, Any] = {"name": "planner", "limits": ScopeLimits(tool_calls=1)} | changed
        name = fields.pop("name")
        with pytest.raises(InvalidInput) as refused:
            harness.scope(run, name, **fields)
        assert refused.value.field == field
        with harness.scope(run, "planner", timeout_s=1):
            assert only(journal.events("r"), "scope.opened").boundary == "scope/planner/1/1"


async def test_a_scope_is_entered_once(harness: Harness):
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        block = harness.scope(run, "planner", timeout_s=5)
        with block, pytest.raises(InvalidInput, match="entered before"):
            block.__enter__()
        with pytest.raises(InvalidInput, match="entered before"):
            block.__enter__()


async def test_only_so_many_scopes_are_open_at_a_time(harness: Harness, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(block, "MAX_OPEN_SCOPES", 2)
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with (
            harness.scope(run, "a", timeout_s=5) as a,
            harness.scope(a, "b", timeout_s=5) as b,
            pytest.raises(InvalidInput, match="one more than 2"),
        ):
            harness.scope(b, "c", timeout_s=5).__enter__()
        with harness.scope(run, "d", timeout_s=5):
            pass


async def test_no_branch_has_the_identity_of_a_scope(harness: Harness):  # D7
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="that of an attempt, nested scope or batch"):
            run.branch("scope").branch("planner").branch("1").branch("1")


def test_plain_threads_have_nested_scopes_by_the_same_name(journal: HandJournal):  # D5
    with (
        SyncHarness(journal, threads=ToolThreads(idle_s=0.0)) as harness,
        harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
        harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as child,
    ):
        harness.tool(child, "say", say)
        with pytest.raises(ScopeExhausted, match="tool_calls 1 of 1"):
            harness.tool(child, "say", say)
        harness.tool(run, "say", say)
    assert types(journal.events("r"))[-2:] == ["scope.closed", "run.terminated"]
