"""The harness for plain threads: the same names, the same record, the same errors, and each call waits."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from harness import (
    CancelReason,
    InvalidInput,
    Outcome,
    RunContext,
    RunEnded,
    ScopeLimits,
    SyncHarness,
    ToolCall,
)
from harness.concurrency.threads import ToolThreads
from harness.errors import RunningLoop
from tests.harness.fakes import (
    HandJournal,
    each,
    harness_over,
    left_with,
    limits,
    on_thread,
    only,
    race,
    say,
    say_on_thread,
    sync_over,
    types,
)

RUN: dict[str, Any] = {"session_id": "s", "run_id": "r", "limits": limits(), "timeout_s": 60}


@pytest.fixture
def sync(journal: HandJournal) -> Iterator[SyncHarness]:
    with sync_over(journal) as harness:
        yield harness
    assert [thread.name for thread in threading.enumerate() if thread.name == "harness-loop"] == []


@pytest.fixture
def sync_in_real_time(journal: HandJournal) -> Iterator[SyncHarness]:
    with SyncHarness(journal, threads=ToolThreads(idle_s=0.0)) as harness:
        yield harness


def test_each_step_is_recorded_exactly_as_the_asynchronous_harness_records_it(journal, sync):
    with sync.run(query="why?", **RUN) as run:
        sync.select_flow(run, "CHAT_GRAPH")
        sync.transition(run, None, "planner")
        assert sync.model(run, "planner", say, args={"n": 1}, model="m") == {"n": 1}
        assert sync.tool(run, "look", say_on_thread, args={"n": 2}, call_id="c", effect="read") == {"n": 2}
        assert sync.tool(run, say)(n=3) == {"n": 3}
        assert sync.guard(run, "evidence", say_on_thread) == {}
        sync.tools(run, [ToolCall(say, {"n": 4}), ToolCall(say_on_thread, {"n": 5})])
        with sync.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as inner:
            sync.tool(inner, say)(n=6)
        sync.reserve_bytes(run, 7)
        sync.finish_graph(run, final_node="planner", reason="COMPOSED")
        sync.answer(run, "because")

    other = HandJournal()
    harness = harness_over(other)

    async def the_same() -> None:
        async with harness.run(query="why?", **RUN) as run:
            harness.select_flow(run, "CHAT_GRAPH")
            harness.transition(run, None, "planner")
            await harness.model(run, "planner", say, args={"n": 1}, model="m")
            await harness.tool(run, "look", say_on_thread, args={"n": 2}, call_id="c", effect="read")
            await harness.tool(run, say)(n=3)
            await harness.guard(run, "evidence", say_on_thread)
            await harness.tools(run, [ToolCall(say, {"n": 4}), ToolCall(say, {"n": 5}, name="say_on_thread")])
            with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=1)) as inner:
                await harness.tool(inner, say)(n=6)
            harness.reserve_bytes(run, 7)
            harness.finish_graph(run, final_node="planner", reason="COMPOSED")
            harness.answer(run, "because")

    asyncio.run(the_same())
    assert journal.events("r") == other.events("r")


def test_a_batch_beyond_a_limit_gives_its_results_and_the_block_says_why_the_run_ended(sync):  # D6
    with left_with(RunEnded) as left, sync.run(**(RUN | {"limits": limits(tool_calls=1)})) as run:
        results = sync.tools(run, [ToolCall(say, call_id="a"), ToolCall(say, call_id="b")])
        assert [(result.call_id, result.status.value) for result in results] == [
            ("a", "NOT_EXECUTED"),
            ("b", "NOT_EXECUTED"),
        ]
    assert left.value.code == "budget_exhausted"


def test_what_is_called_works_elsewhere_with_the_same_ids_and_handles(sync):  # H1a
    seen: list[tuple[RunContext, str]] = []

    async def in_the_loop(run: RunContext) -> None:
        seen.append((run, threading.current_thread().name))

    def on_a_thread(run: RunContext) -> None:
        seen.append((run, threading.current_thread().name))

    with sync.run(**RUN) as run:
        sync.tool(run, in_the_loop)()
        sync.tool(run, on_a_thread)()
    assert [name for _, name in seen] == ["harness-loop", "harness-tool"]
    assert all(inner.budget is run.budget and inner.cancellation is run.cancellation for inner, _ in seen)


def test_of_eight_threads_that_share_one_run_exactly_as_many_start_as_the_limit_lets(journal, sync):  # CASES 1
    with left_with(RunEnded) as left, sync.run(**(RUN | {"limits": limits(tool_calls=6)})) as run:
        results = race(lambda: sync.tool(run, "look", say_on_thread, args={"n": 1}) for _ in range(8))
    refused = [result for result in results if isinstance(result, RunEnded)]
    started = each(journal.events("r"), "attempt.started")
    assert (len(started), left.value.outcome) == (6, "BUDGET_EXHAUSTED")
    assert {error.outcome for error in refused} == {"BUDGET_EXHAUSTED"}
    assert len(refused) >= 2


def test_branches_on_threads_of_their_own_have_one_identity_each_in_any_order(journal, sync):  # D7
    def work(branch: RunContext) -> None:
        for n in range(3):
            sync.tool(branch, "look", say, args={"n": n})

    with sync.run(**RUN) as run:
        race(partial(work, run.branch(f"b{number}")) for number in range(16))
    started = each(journal.events("r"), "attempt.started")
    assert {event.boundary for event in started} == {f"b{b}/tool/look/{n}/1" for b in range(16) for n in (1, 2, 3)}
    assert [event for event in started if event.ambiguous] == []


def test_the_thread_that_calls_gives_the_ordinal_before_it_waits(journal, sync):  # D7
    threads: list[threading.Thread] = []
    with sync.run(**RUN) as run:
        journal.holds = True
        for n in (1, 2, 3):
            call = threading.Thread(target=lambda n=n: sync.tool(run, "look", say, args={"n": n}))
            threads.append(call)
            call.start()
            while len(journal.waiting) < n:
                pass
        journal.store_all()
        for call in threads:
            call.join(timeout=30)
    assert [event.boundary for event in each(journal.events("r"), "attempt.started")] == [
        f"tool/look/{n}/1" for n in (1, 2, 3)
    ]


def test_the_deadline_lets_the_waiting_thread_go_although_the_function_runs_on(journal, sync_in_real_time):  # H2, D4
    sync, free = sync_in_real_time, threading.Event()
    with left_with(RunEnded) as left, sync.run(**(RUN | {"timeout_s": 0.1})) as run:
        sync.tool(run, "wait", lambda run: free.wait(30))
    assert left.value.code == "timed_out"
    assert only(journal.events("r"), "run.terminated").outcome == "TIMED_OUT"
    free.set()


def test_a_signal_from_another_thread_ends_the_run_for_every_thread(journal, sync):  # H3
    def stop(run: RunContext) -> bool:
        return run.cancellation.signal(CancelReason.USER_REQUESTED)

    with left_with(RunEnded) as left, sync.run(**RUN) as run:
        assert on_thread(lambda: stop(run))
        refused = race(lambda: sync.tool(run, "look", say) for _ in range(4))
        assert {type(error) for error in refused} == {RunEnded}
    assert left.value.reason == "USER_REQUESTED"
    assert types(journal.events("r")) == ["run.started", "cancellation.signalled", "run.terminated"]


def test_a_signal_from_another_thread_lets_go_whoever_waits(journal, sync):  # H3
    begun = [threading.Event(), threading.Event()]
    free = threading.Event()

    async def wait(run: RunContext) -> None:
        begun[0].set()
        await asyncio.Event().wait()

    def wait_on_thread(run: RunContext) -> None:
        begun[1].set()
        free.wait(30)

    def stop() -> bool:
        for event in begun:
            event.wait(30)
        return run.cancellation.signal(CancelReason.USER_REQUESTED)

    with left_with(RunEnded) as left, sync.run(**RUN) as run:
        *refused, has_stopped = race([lambda: sync.tool(run, wait)(), lambda: sync.tool(run, wait_on_thread)(), stop])
        assert ([type(error) for error in refused], has_stopped) == ([RunEnded, RunEnded], True)
    free.set()
    assert left.value.reason == "USER_REQUESTED"
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_AWAITED"


def test_a_plain_function_may_call_on_and_an_asynchronous_one_is_told_to_await(journal, sync):
    def outer(run: RunContext) -> Any:
        return sync.tool(run, "inner", say, args={"n": 1})

    async def blocking(run: RunContext) -> Any:
        return sync.tool(run, "inner", say, args={"n": 2})

    with sync.run(**RUN) as run:
        assert sync.tool(run, outer)() == {"n": 1}
        with pytest.raises(RunningLoop):
            sync.tool(run, blocking)()
    boundaries = [event.boundary for event in each(journal.events("r"), "attempt.started")]
    assert boundaries == ["tool/outer/1/1", "tool/outer/1/1/tool/inner/1/1", "tool/blocking/1/1"]


async def test_on_the_thread_of_a_running_loop_nothing_that_waits_begins(journal, harness, sync):
    with pytest.raises(RunningLoop) as refused, sync.run(**RUN):
        pass
    assert (refused.value.code, journal.submissions) == ("running_loop", [])
    calls: list[Callable[[RunContext], Any]] = [
        lambda run: sync.model(run, "planner", say),
        lambda run: sync.guard(run, "evidence", say),
        lambda run: sync.tool(run, "look", say),
        lambda run: sync.tool(run, say)(),
        lambda run: sync.tools(run, [ToolCall(say)]),
        lambda run: sync.stream(run, "planner", words),
    ]
    async with harness.run(**RUN) as run:
        for call in calls:
            with pytest.raises(RunningLoop):
                call(run)
    assert types(journal.events("r")) == ["run.started", "run.terminated"]


WAYS_OUT: dict[str, tuple[BaseException | None, Outcome, str]] = {
    "at the end": (None, Outcome.SUCCESS, "COMPLETED"),
    "by an error": (ValueError("broken"), Outcome.FAILED, "UNHANDLED_EXCEPTION"),
    "by one of ours": (InvalidInput("field", "is bad"), Outcome.FAILED, "INVALID_INPUT"),
    "by Ctrl-C": (KeyboardInterrupt(), Outcome.CANCELLED, "SHUTDOWN"),
    "by exit": (SystemExit(3), Outcome.CANCELLED, "SHUTDOWN"),
    "by a cancellation": (asyncio.CancelledError(), Outcome.CANCELLED, "TASK_CANCELLED"),
    "by a generator's end": (GeneratorExit(), Outcome.CANCELLED, "TASK_CANCELLED"),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_the_end_is_recorded_once_on_every_way_out_and_what_was_raised_goes_on(journal, sync, way):  # H5
    error, outcome, reason = WAYS_OUT[way]
    raised: BaseException | None = None
    try:
        with sync.run(**RUN) as run:
            if error is not None:
                raise error
    except BaseException as caught:  # noqa: BLE001 - whatever it is, it is what was raised
        raised = caught
    end = only(journal.events("r"), "run.terminated")
    assert (raised, end.outcome, end.reason) == (error, outcome.value, reason)
    assert run.lifecycle.termination.outcome is outcome


def test_a_generator_that_is_thrown_away_ends_its_run(journal, sync):
    def steps() -> Iterator[RunContext]:
        with sync.run(**RUN) as run:
            yield run

    next(steps())
    gc.collect()
    assert only(journal.events("r"), "run.terminated").reason == "TASK_CANCELLED"


def test_the_exception_of_what_was_called_is_raised_itself(sync):
    broken = ValueError("no such index")

    async def later(run: RunContext) -> None:
        raise broken

    def at_once(run: RunContext) -> None:
        raise broken

    with sync.run(**RUN) as run:
        for fn in (later, at_once):
            with pytest.raises(ValueError, match="no such index") as raised:
                sync.tool(run, fn)()
            assert raised.value is broken


async def words(run: RunContext, text: str) -> AsyncIterator[str]:
    for word in text.split():
        yield word


def test_a_streamed_reply_comes_chunk_by_chunk_and_is_one_attempt(journal, sync):
    with sync.run(**RUN) as run, sync.stream(run, "planner", words, args={"text": "look for OOM"}) as stream:
        assert list(stream) == ["look", "for", "OOM"]
        assert list(stream) == []
    assert only(journal.events("r"), "attempt.succeeded").output_chunks == 3


def test_a_stream_that_is_left_early_has_ended_when_it_is_closed(journal, sync):
    with sync.run(**RUN) as run:
        with sync.stream(run, "planner", words, args={"text": "look for OOM"}) as stream:
            assert next(stream) == "look"
        assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
        assert list(stream) == []


def test_a_stream_raises_what_its_function_raises_and_is_refused_on_an_ended_run(sync):
    broken = ConnectionError("reset")

    async def breaks(run: RunContext) -> AsyncIterator[str]:
        yield "look"
        raise broken

    with sync.run(**RUN) as run:
        stream = sync.stream(run, "planner", breaks)
        assert next(stream) == "look"
        with pytest.raises(ConnectionError) as raised:
            next(stream)
        assert raised.value is broken
    with pytest.raises(RunEnded):
        next(sync.stream(run, "planner", breaks))
