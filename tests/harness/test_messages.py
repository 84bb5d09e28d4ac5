"""What a mistake is answered with says what to do instead."""

import gc
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from harness import Harness, InvalidInput, RunContext, RunEnded, ScopeExhausted, ScopeLimits, ScopeNotOpen
from tests.harness.fakes import left_with, limits, say


def chunks(run: RunContext) -> Iterator[str]:
    yield "a"


async def chunks_in_time(run: RunContext) -> AsyncIterator[str]:
    yield "a"


def without_run() -> None: ...


async def search(run: RunContext, pattern: str) -> None: ...


@pytest.mark.parametrize("fn", [chunks, chunks_in_time])
async def test_a_generator_that_is_no_operation_is_told_what_is_one(harness: Harness, fn: Callable[..., Any]):
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(
            InvalidInput, match=r"return a list, or call a model that gives chunks with harness\.stream"
        ):
            harness.tool(run, fn)()


async def test_a_plain_generator_is_told_how_a_stream_is_written(harness: Harness):
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="write it with `async def`"):
            harness.stream(run, "writer", chunks)  # type: ignore[arg-type]


@pytest.mark.parametrize("fn", [without_run, dict])
async def test_a_tool_that_does_not_take_the_run_is_refused_by_name(harness: Harness, fn: Callable[..., Any]):  # D11
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match=f"a signature that begins with the run, and {fn.__name__} does not"):
            harness.tool(run, fn)


async def test_an_argument_that_a_tool_does_not_take_is_told_with_its_name(harness: Harness):  # D11
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypeError, match=r"^search\(\) missing a required argument: 'pattern'$"):
            harness.tool(run, search)()  # type: ignore[call-arg]


async def test_a_call_that_nobody_awaits_is_warned_of_by_kind_and_name(harness: Harness):
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            harness.tool(run, search)(pattern="x")
            harness.model(run, "planner", say)
            gc.collect()
    assert [str(each.message) for each in told] == [
        "coroutine 'tool search' was never awaited",
        "coroutine 'model planner' was never awaited",
    ]


@pytest.mark.parametrize("given", ["sqlite:///runs.db", None, object()])
def test_what_is_no_journal_is_refused_when_the_harness_is_made(given: Any):
    with pytest.raises(InvalidInput, match=rf"^journal must be .*ledger\.journal.* not {type(given).__name__}$"):
        Harness(given)


def test_a_resource_that_cannot_be_observed_is_told_those_that_can():  # D13
    with pytest.raises(InvalidInput, match=r"'tool_call', .* run_bytes, tool:grep, tool_calls, "):
        limits(per_tool={"grep": 1}, observe={"tool_call"})


async def test_who_has_passed_a_limit_is_told_once_which_and_how_much_was_used(harness: Harness):  # H4, D5
    async def twice(run: RunContext) -> None:
        for _ in range(2):
            await harness.tool(run, search)(pattern="x")

    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(tool_calls=2), timeout_s=60) as run:
            with left_with(ScopeExhausted) as exhausted, harness.scope(run, "a", limits=ScopeLimits(tool_calls=1)) as a:
                await twice(a)
            await twice(run)
    said = "used before the refused work"
    assert str(exhausted.value) == f"scope/a/1/1 of run s/r is exhausted: tool_calls 1 of 1 {said}"
    assert str(ended.value) == f"run s/r ended BUDGET_EXHAUSTED: tool_calls 2 of 2 {said}"


async def test_work_in_a_scope_that_was_left_is_told_to_use_the_run(harness: Harness):  # D5
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with harness.scope(run, "a", limits=ScopeLimits(tool_calls=1)) as inner:
            pass
        with pytest.raises(ScopeNotOpen, match=r"^scope/a/1/1 of run s/r has been left: .* uses the run$"):
            await harness.tool(inner, search)(pattern="x")


async def test_a_run_is_printed_in_one_short_line(harness: Harness):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert repr(run.branch("b")) == "RunContext(session_id='s', run_id='r', path=('b',), attempt_id=None)"
