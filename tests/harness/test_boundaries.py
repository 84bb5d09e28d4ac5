"""Identity, order and cost of boundaries (SPEC D7, D8, D12)."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from harness import FailureType, Harness, InvalidInput, ManualClock, OperationKind, RunContext, ToolCall, TypedFailure
from harness.boundary.admission import Admission
from harness.boundary.operation import Operation
from harness.boundary.request import Request
from harness.content import encode_content
from tests.harness.fakes import HandJournal, each, fail, harness_over, left_with, limits, only, say, types, until


def started(journal: HandJournal) -> list[str]:
    return [event.boundary for event in each(journal.events("r"), "attempt.started")]


async def test_a_boundary_is_scope_kind_name_ordinal_and_attempt(harness: Harness, journal: HandJournal):  # D7
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "grep", say)
        await harness.tool(run, "grep", say)
        await harness.model(run, "grep", say)
        await harness.tool(run.branch("executor.2").branch("a/b %"), "grep", say)
    assert started(journal) == [
        "tool/grep/1/1",
        "tool/grep/2/1",
        "model/grep/1/1",
        "executor.2/a%2Fb %25/tool/grep/1/1",
    ]


async def test_the_call_gives_the_ordinal_and_not_the_awaiting(harness: Harness, journal: HandJournal):  # D7
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        first = harness.tool(run, "say", say, args={"n": 1})
        second = harness.tool(run, "say", say, args={"n": 2})
        assert [await second, await first] == [{"n": 2}, {"n": 1}]
    assert started(journal) == ["tool/say/2/1", "tool/say/1/1"]


async def test_an_attempt_that_follows_another_has_its_number(journal: HandJournal):  # D7, H6
    async def flaky(run: RunContext) -> str:
        if run.path[-1] == "1":
            raise TypedFailure(FailureType.TRANSPORT, "reset")
        return "CHAT_GRAPH"

    harness = harness_over(journal, sleep=lambda _: asyncio.sleep(0))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "route", flaky, kind=OperationKind.INTENT_ROUTER)
        await harness.model(run, "route", flaky, kind=OperationKind.INTENT_ROUTER)
    assert started(journal) == ["model/route/1/1", "model/route/1/2", "model/route/2/1", "model/route/2/2"]


async def test_a_branch_that_is_taken_up_again_counts_on(harness: Harness, journal: HandJournal):  # D7
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        for _ in range(2):
            await harness.tool(run.branch("a"), "say", say)
            gc.collect()
    assert started(journal) == ["a/tool/say/1/1", "a/tool/say/2/1"]


async def test_two_boundaries_open_at_once_in_one_scope_are_ambiguous(harness: Harness, journal: HandJournal):  # D7
    both = asyncio.Barrier(2)

    async def meet(run: RunContext) -> None:
        await both.wait()

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await asyncio.gather(harness.tool(run, "meet", meet), harness.tool(run, "meet", meet))
        await asyncio.gather(harness.tool(run.branch("a"), "meet", meet), harness.tool(run.branch("b"), "meet", meet))
        await harness.tool(run, "say", say)
    flags = [event.ambiguous for event in each(journal.events("r"), "attempt.started")]
    assert flags == [None, True, None, None, None]


async def test_no_branch_can_pass_for_the_path_of_an_attempt(harness: Harness):  # D7
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        odd = run.branch("tool").branch("say").branch("1")
        with pytest.raises(InvalidInput, match="that of an attempt"):
            odd.branch("1")
        assert odd.branch("x").path == ("tool", "say", "1", "x")


@pytest.mark.parametrize("bad", ["", " ", "naïve", "k" * 257, None, 7], ids=repr)
async def test_a_branch_has_a_name(harness: Harness, bad: Any):  # D7
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="key"):
            run.branch(bad)


async def test_an_identity_too_long_is_refused_and_the_run_goes_on(harness: Harness, journal: HandJournal):  # D7
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        deep = run
        for _ in range(5):
            deep = deep.branch("k" * 250)
        with pytest.raises(InvalidInput, match="boundary"):
            await harness.tool(deep, "say", say)
        with pytest.raises(InvalidInput, match="boundary"):
            harness.transition(deep, None, "planner")
        await harness.tool(run, "say", say)
    assert journal.state("r").usage["tool_calls"] == 1


async def test_ids_and_boundaries_of_a_run_are_unique(harness: Harness, journal: HandJournal):  # D7, D21
    async def nest(run: RunContext) -> None:
        await asyncio.gather(*(harness.tool(run.branch(f"{n}"), "say", say) for n in range(3)))
        harness.transition(run, None, "planner")

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await asyncio.gather(*(harness.tool(run.branch(f"{n}"), "nest", nest) for n in range(5)))
        for _ in range(3):
            harness.transition(run, "planner", "executor")
            run.capacity.reserve(1)
            harness.reserve_bytes(run, 1)
            harness.select_flow(run, "CHAT_GRAPH")
    events = journal.events("r")
    assert len({event.event_id for event in events}) == len(events)
    one_of_each = [event.boundary for event in events if hasattr(event, "boundary") and event.type in ONE_PER_BOUNDARY]
    assert len(set(one_of_each)) == len(one_of_each)


ONE_PER_BOUNDARY = {"reservation.granted", "graph.transitioned", "flow.selected", "run.terminated"}


async def test_a_boundary_costs_one_awaited_append(harness: Harness, journal: HandJournal):  # D12
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        journal.holds = True
        crossing = asyncio.ensure_future(harness.tool(run, "say", say))
        await until(lambda: journal.waiting)
        assert [types(submission.events) for submission, _ in journal.waiting] == [
            ["reservation.granted", "attempt.started"]
        ]
        journal.store()
        await crossing
        assert [types(submission.events) for submission, _ in journal.waiting] == [["attempt.succeeded"]]
        journal.store_all()


async def test_a_result_is_returned_before_its_record_is_durable(harness: Harness, journal: HandJournal):  # D12
    async def work(run: RunContext) -> str:
        journal.holds = True
        return "done"

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "work", work) == "done"
        harness.transition(run, None, "planner")
        assert len(journal.waiting) == 2
        journal.store_all()


async def test_an_operation_at_work_holds_no_room_that_its_own_boundaries_need(harness: Harness, journal: HandJournal):
    async def work(run: RunContext) -> int:
        return journal.permits_open

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "work", work) == 0  # D12


async def test_the_next_start_waits_for_everything_before_it(harness: Harness, journal: HandJournal):  # D12, E3
    invoked: list[RunContext] = []
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        journal.holds = True
        harness.transition(run, None, "planner")
        crossing = asyncio.ensure_future(harness.tool(run, "say", lambda run: invoked.append(run)))
        await until(lambda: len(journal.waiting) == 2)
        journal.store()
        await asyncio.sleep(0.01)
        assert invoked == []
        journal.store_all()
        await crossing
    assert types(journal.events("r"))[1:4] == ["graph.transitioned", "reservation.granted", "attempt.started"]


async def test_a_refusal_is_durable_before_it_is_raised(harness: Harness, journal: HandJournal):  # D12, E3
    with left_with(Exception, match="tool_calls 1 of 1"):
        async with harness.run(session_id="s", run_id="r", limits=limits(tool_calls=1), timeout_s=60) as run:
            await harness.tool(run, "say", say)
            journal.holds = True
            refused = asyncio.ensure_future(harness.tool(run, "say", say))
            await until(lambda: journal.waiting)
            await asyncio.sleep(0.01)
            assert not refused.done()
            assert [types(submission.events) for submission, _ in journal.waiting] == [
                ["reservation.rejected", "cancellation.signalled"]
            ]
            journal.store_all()
            await refused


async def test_the_end_is_one_append_with_the_answer_before_it(harness: Harness, journal: HandJournal):  # D12, D23
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        harness.answer(run, "42")
        with pytest.raises(InvalidInput, match="was given before"):
            harness.answer(run, "43")
    assert types(journal.submissions[-1].events) == ["answer.recorded", "run.terminated"]
    assert journal.contents[only(journal.events("r"), "answer.recorded").answer_digest].data == b"42"


async def test_an_answer_too_big_is_kept_as_digest_and_ends_the_run(harness: Harness, journal: HandJournal):  # H9, D23
    with pytest.raises(Exception, match="run_bytes"):
        async with harness.run(session_id="s", run_id="r", limits=limits(run_bytes=10), timeout_s=60) as run:
            harness.answer(run, "x" * 11)
    recorded = only(journal.events("r"), "answer.recorded")
    assert (recorded.answer_bytes, recorded.answer_stored) == (11, False)
    assert journal.state("r").outcome == "BUDGET_EXHAUSTED"


async def test_each_event_bears_both_clocks(harness: Harness, journal: HandJournal, clock: ManualClock):  # D8
    began_us = clock.now_us()
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        clock.advance(0.25)
        harness.transition(run, None, "planner")
    times = [(event.occurred_us - began_us, event.elapsed_us) for event in journal.events("r")]
    assert times == [(0, 0), (250_000, 250_000), (250_000, 250_000)]


async def test_the_events_of_a_run_are_in_the_order_of_their_times(harness: Harness, journal: HandJournal):  # D8
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "say", say)
        await harness.tools(run, [ToolCall(say)] * 2)
        harness.answer(run, "done")
    made = [int(event.event_id.rpartition(":")[2]) for event in journal.events("r")]
    assert made == list(range(1, len(made) + 1))


async def test_events_of_one_microsecond_keep_their_order(harness: Harness, journal: HandJournal):  # D8, CASES 28
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        for node in "abc":
            harness.transition(run, None, node)
    assert [event.to_node for event in each(journal.events("r"), "graph.transitioned")] == ["a", "b", "c"]
    assert len({event.occurred_us for event in journal.events("r")}) == 1


async def test_an_attempt_ends_with_what_came_of_it(harness: Harness, journal: HandJournal):  # H6, D9
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(ValueError, match="no such index"):
            await harness.tool(run, "fail", fail)
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.error_type, failed.will_retry) == ("UNKNOWN", "ValueError", False)
    assert journal.contents[failed.error_digest].data == b"no such index"


async def test_the_choice_of_the_router_is_recorded_and_is_no_transition(harness: Harness, journal: HandJournal):  # D17
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        harness.select_flow(run, "CHAT_SIMPLE")
    assert types(journal.events("r")) == ["run.started", "flow.selected", "run.terminated"]
    assert journal.state("r").flow == "CHAT_SIMPLE"


async def test_transitions_are_recorded_as_they_happened(harness: Harness, journal: HandJournal):  # R11
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        harness.transition(run, None, "planner")
        harness.transition(run, "planner", "executor")
        harness.transition(run, "executor", "planner", cause="REPAIR")
        harness.transition(run, "planner", "fallback", cause="FALLBACK")
        harness.finish_graph(run, final_node="fallback", reason="FALLBACK", degraded=True)
        with pytest.raises(Exception, match="the graph finished in fallback"):
            harness.transition(run, "fallback", "planner")
        with pytest.raises(Exception, match="the graph finished in fallback"):
            harness.finish_graph(run, final_node="composer", reason="COMPOSED")
    moves = [(event.from_node, event.to_node, event.cause) for event in each(journal.events("r"), "graph.transitioned")]
    assert moves == [
        (None, "planner", "NEXT"),
        ("planner", "executor", "NEXT"),
        ("executor", "planner", "REPAIR"),
        ("planner", "fallback", "FALLBACK"),
    ]
    finished = only(journal.events("r"), "graph.finished")
    assert (finished.final_node, finished.reason, finished.degraded) == ("fallback", "FALLBACK", True)


async def test_the_fold_of_the_journal_is_the_state_that_decided(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "say", say)
        await harness.model(run, "ask", say)
        assert run.live.state == journal.state("r") == run.live.durable


async def test_crossing_boundaries_leaves_nothing_behind(harness: Harness, journal: HandJournal):
    inner: list[weakref.ref[Any]] = []

    async def nest(run: RunContext) -> None:
        await harness.tool(run, "say", say)
        inner.append(weakref.ref(run.live))
        scopes.append(len(run.ordinals._counts))

    scopes: list[int] = []
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        for _ in range(20):
            await harness.tool(run, "nest", nest)
        live = run.live
        assert (len(live.ordinals._counts), live.ordinals._branches) == (1, {})
        state = live.state
        left: list[Any] = [state.open_attempts, state.abandoned_attempts, state.unsettled_attempts]
        assert [len(attempts) for attempts in left] == [0, 0, 0]
        assert scopes == [1] * 20
    del run, live, state, left
    gc.collect()
    assert inner[0]() is None


async def test_an_attempt_ends_once_though_it_is_told_so_twice(harness: Harness, journal: HandJournal):  # D4
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        ordinal = run.next_ordinal("tool", "say")
        policy = run.retry_policies.of(OperationKind.TOOL_CALL)
        operation = Operation("tool", "say", policy, ordinal, {}, say, True)
        with run.live.interruptions.open() as interruption:
            request = Request(harness._engine, run, operation, 1, encode_content({}))
            (attempt,) = await Admission(harness._engine, run, (request,), interruption).attempts()
        attempt.abandon("NOT_AWAITED")
        attempt.succeed("late", None)
        attempt.fail(ValueError("late"))
        attempt.abandon("NOT_AWAITED")
        for _ in range(2):
            attempt.finish_late(None, None)
    ends = [name for name in types(journal.events("r")) if name.startswith("attempt.")]
    assert ends == ["attempt.started", "attempt.abandoned", "attempt.finished_late"]


async def test_an_answer_that_is_refused_was_not_given(journal, harness):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        deep = run
        for _ in range(5):
            deep = deep.branch("x" * 250)
        with pytest.raises(InvalidInput, match="boundary must be at most 1024 characters"):
            harness.answer(deep, "because")
        harness.answer(run, "because")
    assert only(journal.events("r"), "answer.recorded").answer_stored


async def test_a_reply_whose_usage_cannot_be_read_has_unknown_usage(journal, harness):  # H4a
    class Broken:
        @property
        def usage(self) -> object:
            raise LookupError("what was said")

    async def ask(run: RunContext) -> Broken:
        return Broken()

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "planner", ask)
    assert not only(journal.events("r"), "usage.settled").complete
    assert journal.state("r").usage_unknown_count == 1
