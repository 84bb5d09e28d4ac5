"""What type checkers must make of calls through the harness; never run, only checked (SPEC D11)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, assert_type

from harness import (
    Decision,
    Harness,
    Limits,
    MemoryJournal,
    ModelStream,
    Observed,
    OperationKind,
    RunContext,
    ScopeLimits,
    SyncHarness,
    SyncModelStream,
    ToolCall,
    ToolRequest,
    ToolResult,
    ToolRules,
    ToolStatus,
)
from harness.adapters.openai import Chat, ChatReply


class Row:
    text: str


async def query_logs(run: RunContext, pattern: str, *, limit: int = 10) -> list[Row]:
    raise NotImplementedError


def disk_usage(run: RunContext, path: str) -> float:
    raise NotImplementedError


def later(run: RunContext, n: int) -> Awaitable[bytes]:
    raise NotImplementedError


async def allow(request: ToolRequest) -> Decision:
    raise NotImplementedError


def allow_at_once(request: ToolRequest) -> Decision:
    raise NotImplementedError


def observe(observed: Observed) -> None:
    raise NotImplementedError


async def words(run: RunContext, text: str) -> AsyncIterator[str]:
    yield text


class Search:
    async def __call__(self, run: RunContext, *terms: str) -> int:
        raise NotImplementedError


async def checks(harness: Harness, limits: Limits, chat: Chat, anything: Any) -> None:
    async with harness.run(session_id="s", limits=limits, timeout_s=60) as run:
        assert_type(run, RunContext)
        assert_type(run.branch("planner.1"), RunContext)

        # By name: the result is the function's, awaited once, asynchronous or not.
        assert_type(await harness.tool(run, "query_logs", query_logs, args={"pattern": "OOM"}), list[Row])
        assert_type(await harness.tool(run, "disk_usage", disk_usage, args={"path": "/"}, call_id="c"), float)
        assert_type(await harness.tool(run, "later", later, args={"n": 1}), bytes)
        assert_type(await harness.tool(run, "search", Search()), int)
        assert_type(await harness.tool(run, "lambda", lambda run: 7), int)
        assert_type(await harness.model(run, "planner", chat, args={"messages": []}, model="m"), ChatReply)
        assert_type(await harness.model(run, "route", disk_usage, kind=OperationKind.INTENT_ROUTER), float)
        assert_type(await harness.guard(run, "evidence", query_logs), list[Row])
        assert_type(await harness.guard(run, "evidence", disk_usage), float)

        # Curried: the tool's own signature, without the run.
        assert_type(await harness.tool(run, query_logs, call_id="c", effect="read")("OOM", limit=3), list[Row])
        assert_type(await harness.tool(run, query_logs)(pattern="OOM"), list[Row])
        assert_type(await harness.tool(run, disk_usage)("/"), float)
        assert_type(await harness.tool(run, later)(1), bytes)
        assert_type(await harness.tool(run, Search())("a", "b"), int)
        to_path: Callable[[str], Awaitable[float]] = harness.tool(run, disk_usage)
        assert_type(await to_path("/"), float)

        # A stream: the chunks are the function's.
        async with harness.stream(run, "planner", words, args={"text": "a b"}, model="m") as stream:
            assert_type(stream, ModelStream[str])
            async for word in stream:
                assert_type(word, str)

        # A batch: one result for each call, whose value only the tool knows.
        results = await harness.tools(
            run, [ToolCall(query_logs, {"pattern": "OOM"}, call_id="c"), ToolCall(disk_usage)]
        )
        assert_type(results, list[ToolResult])
        assert_type(results[0].status, ToolStatus)
        assert_type(results[0].error, BaseException | None)

        # A nested scope is a run.
        with harness.scope(run, "planner", limits=ScopeLimits(tool_calls=2), timeout_s=5) as inner:
            assert_type(inner, RunContext)

        # What is wrong is seen before anything runs; an unused ignore would fail this check.
        harness.tool(run, query_logs)()  # type: ignore[call-arg]
        harness.tool(run, query_logs)(7)  # type: ignore[arg-type]
        harness.tool(run, query_logs)("OOM", limits=3)  # type: ignore[call-arg]
        harness.tool(run, "query_logs")  # type: ignore[call-overload]
        harness.tool(run, "query_logs", query_logs, effects="read")  # type: ignore[call-overload]
        harness.transition(run, "planner", None)  # type: ignore[arg-type]
        harness.tools(run, [query_logs])  # type: ignore[list-item]
        ToolCall("query_logs")  # type: ignore[arg-type]
        run.run_id = "other"  # type: ignore[misc]

    harness.run(session_id="s", limits=limits)  # type: ignore[call-arg]
    assert_type(Harness(MemoryJournal(), policies=(allow, allow_at_once, ToolRules()), observers=(observe,)), Harness)
    Harness(MemoryJournal(), policies=(observe,))  # type: ignore[arg-type]
    Harness(MemoryJournal(), close_timeout=3)  # type: ignore[call-arg]


def checks_of_threads(harness: SyncHarness, limits: Limits, anything: Any) -> None:
    with harness.run(session_id="s", limits=limits, timeout_s=60, query="why?", labels={"team": "a"}) as run:
        assert_type(run, RunContext)

        # By name: the result is the function's, at once, asynchronous or not.
        assert_type(harness.tool(run, "query_logs", query_logs, args={"pattern": "OOM"}), list[Row])
        assert_type(harness.tool(run, "disk_usage", disk_usage, args={"path": "/"}, call_id="c"), float)
        assert_type(harness.tool(run, "later", later, args={"n": 1}), bytes)
        assert_type(harness.tool(run, "search", Search()), int)
        assert_type(harness.model(run, "route", disk_usage, kind=OperationKind.INTENT_ROUTER, model="m"), float)
        assert_type(harness.model(run, "route", query_logs), list[Row])
        assert_type(harness.guard(run, "evidence", query_logs), list[Row])
        assert_type(harness.guard(run, "evidence", disk_usage), float)

        # Curried: the tool's own signature, without the run.
        assert_type(harness.tool(run, query_logs, call_id="c", effect="read")("OOM", limit=3), list[Row])
        assert_type(harness.tool(run, disk_usage)("/"), float)
        assert_type(harness.tool(run, later)(1), bytes)
        assert_type(harness.tool(run, Search())("a", "b"), int)
        to_path: Callable[[str], float] = harness.tool(run, disk_usage)
        assert_type(to_path("/"), float)

        with harness.stream(run, "planner", words, args={"text": "a b"}, model="m") as stream:
            assert_type(stream, SyncModelStream[str])
            for word in stream:
                assert_type(word, str)
        assert_type(harness.tools(run, [ToolCall(query_logs), ToolCall(Search(), name="search")]), list[ToolResult])
        with harness.scope(run, "planner", timeout_s=5) as inner:
            assert_type(inner, RunContext)

        harness.tool(run, query_logs)()  # type: ignore[call-arg]
        harness.tool(run, query_logs)(7)  # type: ignore[arg-type]
        harness.tool(run, "query_logs")  # type: ignore[call-overload]
        harness.tool(run, "query_logs", query_logs, effects="read")  # type: ignore[call-overload]
        harness.transition(run, "planner", None)  # type: ignore[arg-type]
        harness.tools(run, [query_logs])  # type: ignore[list-item]

    harness.run(session_id="s", limits=limits)  # type: ignore[call-arg]
    harness.run("s", limits=limits, timeout_s=60)  # type: ignore[call-arg]
    assert_type(SyncHarness(MemoryJournal(), policies=(allow,)), SyncHarness)
    SyncHarness(MemoryJournal(), policies=(observe,))  # type: ignore[arg-type]
