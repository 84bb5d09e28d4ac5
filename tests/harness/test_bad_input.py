"""What is wrong is refused before anything exists, by its field, its type and its bound (SPEC H1b, H4, CASES 8)."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from harness import (
    CancelReason,
    CapturePolicy,
    Deadline,
    FailureType,
    Harness,
    InvalidInput,
    Limits,
    ManualClock,
    MemoryJournal,
    OperationKind,
    Outcome,
    RetryPolicies,
    RetryPolicy,
    RunContext,
    RunEnded,
    ScopeLimits,
    SyncHarness,
    TokenUsage,
    ToolCall,
    ToolCallKeyFactory,
    TypedFailure,
)
from tests.harness.fakes import PLENTY, HandJournal, harness_over, left_with, limits, say, types

Given = dict[str, Any]
Table = list[tuple[Any, str, str]]

NO_IDS: list[Any] = ["", " ", "a/b", "a:b", "x" * 129, 7, b"s", True]
NO_NAMES: list[Any] = ["", " ", "a\n", "é", "x" * 257, 7, b"s", True]
NO_CODES: list[Any] = ["", "a b", "1st", "x" * 65, 7, True]
NO_LIMITS: list[Any] = [None, {}, ScopeLimits(tool_calls=1)]
NO_POLICIES: list[Any] = [{}, "none", 7]
NO_MAPPINGS: list[Any] = [[], "a=b", 7]
NO_OUTCOMES: list[Any] = ["FAILED", None]
NO_SECONDS: list[Any] = [0, 10**400, -1, True, "60", float("inf"), float("nan"), 400 * 24 * 3600]


def told(refused: InvalidInput, field: str, said: str) -> None:
    """The field is named, and what may stand there, by its type or bound."""
    assert (refused.field, refused.code) == (field, "invalid_input")
    assert re.search(said, refused.problem), refused.problem
    assert str(refused) == f"{refused.field} {refused.problem}"


RUNS: Table = [
    *(({"session_id": bad}, "session_id", "must") for bad in [*NO_IDS, None]),
    *(({"run_id": bad}, "run_id", "must") for bad in NO_IDS),
    *(({"parent_run_id": bad}, "parent_run_id", "must") for bad in NO_IDS),
    *(({"continues_run_id": bad}, "continues_run_id", "must") for bad in NO_IDS),
    *(({"timeout_s": bad}, "timeout_s", "seconds") for bad in [*NO_SECONDS, None]),
    *(({name: bad}, name, "1 to 256") for name in ("agent", "actor", "environment", "traceparent") for bad in NO_NAMES),
    *(({"flow": bad}, "flow", "1 to 64") for bad in NO_CODES),
    *(({"limits": bad}, "limits", f"not {type(bad).__name__}") for bad in NO_LIMITS),
    *(({"policies": bad}, "policies", f"not {type(bad).__name__}") for bad in NO_POLICIES),
    *(({"labels": bad}, "labels", "must be a mapping") for bad in NO_MAPPINGS),
    ({"labels": {"": "v"}}, "labels", "1 to 256"),
    ({"labels": {"k": 7}}, "labels[k]", "1 to 256"),
    ({"labels": {f"k{n}": "v" for n in range(65)}}, "labels", "at most 64, not 65"),
    ({"query": 7}, "query", "not int"),
    ({"query": "x" * 1_000_001}, "query", "1000001 bytes, above limits.run_bytes 1000000"),
    ({"deadline": 60}, "deadline", "must be a Deadline, not int"),
]


@pytest.mark.parametrize(("bad", "field", "said"), RUNS)
def test_no_run_is_opened_with_a_wrong_value(
    harness: Harness, journal: HandJournal, bad: Given, field: str, said: str
):  # H1b
    fields: Given = {"session_id": "s", "limits": limits(), "timeout_s": 60} | bad
    with pytest.raises(InvalidInput) as refused:
        harness.run(**fields)
    told(refused.value, field, said)
    assert journal.submissions == []


ENGINES: Table = [
    *(
        ({name: bad}, name, "seconds")
        for name in ("close_timeout_s", "drain_timeout_s", "permit_timeout_s", "hook_timeout_s")
        for bad in [*NO_SECONDS, None]
    ),
    *(({"prices": bad}, "prices", f"not {type(bad).__name__}") for bad in NO_POLICIES),
    *(
        ({name: bad}, name, "must be a tuple")
        for name in ("observers", "policies", "classifiers")
        for bad in (None, "x", say)
    ),
    *(({name: 3}, name, "must be a") for name in ("monotonic_clock", "wall_clock", "ids", "capture")),
]


@pytest.mark.parametrize(("bad", "field", "said"), ENGINES)
@pytest.mark.parametrize("kind", [Harness, SyncHarness])
def test_no_harness_is_made_with_a_wrong_setting(kind: Callable[..., Any], bad: Given, field: str, said: str):
    with pytest.raises(InvalidInput) as refused:
        kind(MemoryJournal(), **bad)
    told(refused.value, field, said)


VALUES: Table = [
    *((lambda bad=bad: Limits(**PLENTY | bad), f"limits.{field}", said) for bad, field, said in [
        ({"model_calls": 0}, "model_calls", "from 1 to 9007199254740991, not 0"),
        ({"model_calls": None}, "model_calls", "from 1 to 9007199254740991, not NoneType"),
        ({"run_bytes": 1.5}, "run_bytes", "from 1 to 9007199254740991, not float"),
        ({"cost_micros": "7"}, "cost_micros", "from 1 to 9007199254740991, not str"),
        ({"repeated_calls": True}, "repeated_calls", "from 1 to 9007199254740991, not bool"),
        ({"per_tool": {"grep": 0}}, "per_tool[grep]", "from 1 to 9007199254740991, not 0"),
        ({"per_tool": [1]}, "per_tool", "must be a mapping, not list"),
        ({"per_tool": {f"t{n}": 1 for n in range(51)}}, "per_tool", "at most 50 tools, not 51"),
        ({"per_tool": {"x" * 201: 1}}, "per_tool", "at most 200"),
        ({"observe": "tool_calls"}, "observe", "must be a set of resources, not str"),
        ({"observe": {"tool:cat"}}, "observe", "no limit"),
    ]),
    (lambda: ScopeLimits(tool_calls=-1), "limits.tool_calls", "from 1 to 9007199254740991, not -1"),
    (lambda: TokenUsage(-1, 0), "usage.input_tokens", "from 0"),
    (lambda: TokenUsage(0, True), "usage.output_tokens", "from 0"),
    *((lambda bad=bad: RetryPolicy(**{"kind": "MINE", "max_attempts": 1} | bad), field, said) for bad, field, said in [
        ({"kind": 7}, "kind", "1 to 64"),
        ({"max_attempts": 0}, "MINE.max_attempts", "from 1 to 10, not 0"),
        ({"max_attempts": True}, "MINE.max_attempts", "from 1 to 10, not True"),
        ({"max_attempts": 11}, "MINE.max_attempts", "from 1 to 10, not 11"),
        ({"kind": OperationKind.TOOL_CALL, "max_attempts": 2}, "TOOL_CALL.max_attempts", "from 1 to 1, not 2"),
        ({"retryable": 7}, "MINE.retryable", "not int"),
        ({"retryable": "TIMEOUT"}, "MINE.retryable", "not str"),
        ({"retryable": {"TIMEOUT"}}, "MINE.retryable", "must hold FailureType, not str"),
        ({"retryable": {FailureType.UNKNOWN}}, "MINE.retryable", "UNKNOWN"),
        *(
            ({name: bad}, f"MINE.{name}", "from 0 to 86400 seconds, not")
            for name in ("base_delay_s", "max_delay_s")
            for bad in (-1, True, None, "1", float("nan"), float("inf"), 86_401)
        ),
    ]),
    (lambda: RetryPolicies([]), "policies", "must be a mapping, not list"),  # type: ignore[arg-type]
    (lambda: RetryPolicies({"MINE": 7}), "policies[MINE]", "must be a RetryPolicy, not int"),  # type: ignore[dict-item]
    (lambda: RetryPolicies({"MINE": RetryPolicy("OTHER", 1)}), "policies[MINE]", "is a policy for OTHER"),
    (lambda: TypedFailure("TIMEOUT", "x"), "failure", "not str"),  # type: ignore[arg-type]
    (lambda: ToolCallKeyFactory("a:b"), "prefix", "letters, digits"),
    (lambda: ToolCallKeyFactory("p").key("", "c"), "run_id", "must not be blank"),
    (lambda: ToolCallKeyFactory("p").key("r", "c" * 129), "tool_call_id", "at most 128 characters, not 129"),
    (lambda: CapturePolicy(query="full"), "capture.query", "must be a Capture"),  # type: ignore[arg-type]
    (lambda: Deadline.after(0, ManualClock()), "timeout_s", "above 0"),
    (lambda: Deadline(None), "at_ns", "not NoneType"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("make", "field", "said"), VALUES)
def test_no_value_is_made_of_wrong_parts(make: Callable[[], object], field: str, said: str):  # CASES 8
    with pytest.raises(InvalidInput) as refused:
        make()
    told(refused.value, field, said)


def generator(run: RunContext) -> Any:
    yield 1


CALLS: Table = [
    *((lambda h, r, bad=bad: h.model(r, bad, say), "name", "1 to 256") for bad in [*NO_NAMES, None]),
    *((lambda h, r, bad=bad: h.guard(r, bad, say), "name", "1 to 256") for bad in [*NO_NAMES, None]),
    *((lambda h, r, bad=bad: h.model(r, "ask", bad), "fn", "must be callable") for bad in (None, 7, "ask")),
    (lambda h, r: h.model(r, "ask", generator), "fn", "generator"),
    (lambda h, r: h.tool(r, "ask"), "fn", "missing"),
    (lambda h, r: h.tool(r, "x" * 201, say), "tool", "at most 200 characters"),
    *((lambda h, r, bad=bad: h.tool(r, "say", say, args=bad), "args", "must be a mapping") for bad in NO_MAPPINGS),
    *((lambda h, r, bad=bad: h.tool(r, "say", say, call_id=bad), "call_id", "1 to 256") for bad in NO_NAMES),
    *((lambda h, r, bad=bad: h.tool(r, "say", say, tool_key=bad), "tool_key", "1 to 256") for bad in NO_NAMES),
    *((lambda h, r, bad=bad: h.tool(r, "say", say, effect=bad), "effect", "") for bad in NO_CODES),
    *((lambda h, r, bad=bad: h.tool(r, "say", say, timeout_s=bad), "timeout_s", "seconds") for bad in NO_SECONDS),
    *((lambda h, r, bad=bad: h.model(r, "a", say, timeout_s=bad), "timeout_s", "seconds") for bad in NO_SECONDS),
    *((lambda h, r, bad=bad: h.model(r, "a", say, model=bad), "model", "1 to 256") for bad in NO_NAMES),
    *((lambda h, r, bad=bad: h.model(r, "a", say, kind=bad), "kind", "1 to 64") for bad in NO_CODES),
    (lambda h, r: h.model(r, "a", say, kind="MINE"), "kind", "no retry policy"),
    (lambda h, r: h.model(r, "a", say, reserve=100), "reserve", "must be a TokenUsage, not int"),
    (lambda h, r: h.tools(r, "say"), "calls", "must be a list of ToolCall, not str"),
    (lambda h, r: h.tools(r, [say]), "calls[0]", "must be a ToolCall, not function"),
    (lambda h, r: h.tools(r, [ToolCall(say), ToolCall(say, call_id="")]), "calls[1].call_id", "1 to 256"),
    (lambda h, r: h.tools(r, [ToolCall(say)] * 51), "calls", "at most 50, not 51"),
    (lambda h, r: h.scope(r, "", timeout_s=1), "name", "1 to 256"),
    (lambda h, r: h.scope(r, "a"), "limits", "timeout_s"),
    (lambda h, r: h.scope(r, "a", limits=7), "limits", "must be ScopeLimits, not int"),
    (lambda h, r: h.scope(r, "a", timeout_s=-1), "timeout_s", "above 0"),
    *((lambda h, r, bad=bad: h.select_flow(r, bad), "flow", "1 to 64") for bad in [*NO_CODES, None]),
    *((lambda h, r, bad=bad: h.transition(r, None, bad), "to_node", "1 to 256") for bad in [*NO_NAMES, None]),
    *((lambda h, r, bad=bad: h.transition(r, bad, "a"), "from_node", "1 to 256") for bad in NO_NAMES),
    *((lambda h, r, bad=bad: h.transition(r, None, "a", cause=bad), "cause", "1 to 64") for bad in [*NO_CODES, None]),
    (lambda h, r: h.finish_graph(r, final_node="", reason="DONE"), "final_node", "1 to 256"),
    (lambda h, r: h.finish_graph(r, final_node="a", reason=""), "reason", "1 to 64"),
    (lambda h, r: h.finish_graph(r, final_node="a", reason="DONE", degraded=None), "degraded", "not NoneType"),
    *((lambda h, r, bad=bad: h.answer(r, bad), "answer", f"not {type(bad).__name__}") for bad in (None, 7, ["a"])),
    *((lambda h, r, bad=bad: h.reserve_bytes(r, bad), "size_bytes", "from 1") for bad in (0, -1, True, None, 1.0, "1")),
    *((lambda h, r, bad=bad: h.reserve_bytes(r, 1, name=bad), "name", "1 to 256") for bad in NO_NAMES),
    *((lambda h, r, bad=bad: r.capacity.reserve(bad), "size_bytes", "from 1") for bad in (0, -1, True, None, 1.0, "1")),
    *((lambda h, r, bad=bad: r.capacity.reserve(1, name=bad), "name", "1 to 256") for bad in NO_NAMES),
    *((lambda h, r, bad=bad: r.branch(bad), "key", "1 to 256") for bad in [*NO_NAMES, None]),
    *((lambda h, r, bad=bad: r.cancellation.signal(bad), "reason", "CancelReason") for bad in ("SHUTDOWN", None)),
    *((lambda h, r, bad=bad: r.cancellation.on_signal(bad), "callback", "must be callable") for bad in (None, 7, "f")),
    *((lambda h, r, bad=bad: r.lifecycle.finish(bad, "X"), "outcome", "must be an Outcome") for bad in NO_OUTCOMES),
    *((lambda h, r, bad=bad: r.lifecycle.finish(Outcome.FAILED, bad), "reason", "1 to 64") for bad in NO_CODES),
    *((lambda h, r, bad=bad, call=call: call(h, bad), "run", f"must be a RunContext, not {type(bad).__name__}")
        for bad in (None, "r", 7)
        for call in (
            lambda h, r: h.model(r, "a", say), lambda h, r: h.guard(r, "a", say), lambda h, r: h.tool(r, "a", say),
            lambda h, r: h.tool(r, say), lambda h, r: h.tools(r, [ToolCall(say)]), lambda h, r: h.stream(r, "a", say),
            lambda h, r: h.scope(r, "a", timeout_s=1), lambda h, r: h.select_flow(r, "A"),
            lambda h, r: h.transition(r, None, "a"), lambda h, r: h.finish_graph(r, final_node="a", reason="A"),
            lambda h, r: h.answer(r, "a"), lambda h, r: h.reserve_bytes(r, 1),
        )),
]  # fmt: skip


@pytest.mark.parametrize(("call", "field", "said"), CALLS)
async def test_no_call_with_a_wrong_value_leaves_a_trace(
    harness: Harness, journal: HandJournal, call: Callable[..., Any], field: str, said: str
):  # CASES 8
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        state = run.live.state
        with pytest.raises(InvalidInput) as refused:
            call(harness, run)
        told(refused.value, field, said)
        assert run.live.state is state
        await harness.tool(run, "say", say)
        assert types(journal.events("r")).count("attempt.started") == 1
    assert journal.state("r").outcome == "SUCCESS"


OPERATIONS: dict[str, Callable[[Any, RunContext], Any]] = {
    "model": lambda harness, run: harness.model(run, "ask", say),
    "stream": lambda harness, run: anext(harness.stream(run, "ask", say)),
    "guard": lambda harness, run: harness.guard(run, "check", say),
    "tool": lambda harness, run: harness.tool(run, "say", say),
    "curried tool": lambda harness, run: harness.tool(run, say)(),
    "tools": lambda harness, run: harness.tools(run, [ToolCall(say)]),
    "in a branch": lambda harness, run: harness.tool(run.branch("b"), "say", say),
    "scope": lambda harness, run: harness.scope(run, "planner", timeout_s=1).__enter__(),
    "flow": lambda harness, run: harness.select_flow(run, "CHAT_GRAPH"),
    "transition": lambda harness, run: harness.transition(run, None, "planner"),
    "graph": lambda harness, run: harness.finish_graph(run, final_node="planner", reason="DONE"),
    "answer": lambda harness, run: harness.answer(run, "42"),
    "bytes": lambda harness, run: harness.reserve_bytes(run, 1),
    "capacity": lambda harness, run: run.capacity.reserve(1),
}

ENDS: dict[str, tuple[Callable[[RunContext, ManualClock], object], str]] = {
    "cancelled": (lambda run, clock: run.cancellation.signal(CancelReason.USER_REQUESTED), "CANCELLED"),
    "failed": (lambda run, clock: run.lifecycle.finish(Outcome.FAILED, "NO_EVIDENCE"), "FAILED"),
    "successful": (lambda run, clock: run.lifecycle.finish(Outcome.SUCCESS, "COMPLETED"), "SUCCESS"),
    "late": (lambda run, clock: run.cancellation.signal(CancelReason.DEADLINE_EXCEEDED), "TIMED_OUT"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("has_left", [False, True], ids=["in the block", "after it"])
async def test_every_operation_on_an_ended_run_raises_the_same_error_with_the_outcome_in_it(
    harness: Harness, journal: HandJournal, clock: ManualClock, end: str, has_left: bool
):  # H3, H5, E6
    ending, outcome = ENDS[end]

    async def all_are_refused(run: RunContext) -> None:
        before = len(journal.events("r"))
        for name, operation in OPERATIONS.items():
            with pytest.raises(RunEnded) as refused:
                await _done(operation, harness, run)
            error = refused.value
            assert (error.session_id, error.run_id, error.outcome) == ("s", "r", outcome), name
            assert error.code == outcome.lower(), name
        assert len(journal.events("r")) == before
        assert run.lifecycle.finish(Outcome.FAILED, "AGAIN") is False
        assert run.cancellation.signal(CancelReason.SHUTDOWN) is False
        assert run.budget.snapshot().usage == {}

    with left_with((RunEnded, StopAsyncIteration)):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            ending(run, clock)
            if not has_left:
                await all_are_refused(run)
        raise StopAsyncIteration
    if has_left:
        await all_are_refused(run)


async def _done(operation: Callable[[Harness, RunContext], Any], harness: Harness, run: RunContext) -> None:
    result = operation(harness, run)
    if asyncio.iscoroutine(result) or hasattr(result, "__await__"):
        await result


async def test_two_runs_on_one_harness_never_share_a_budget(journal: HandJournal):  # CASES 4
    harness = harness_over(journal)
    one = harness.run(session_id="s", run_id="r-1", limits=limits(tool_calls=1), timeout_s=60)
    other = harness.run(session_id="s", run_id="r-2", limits=limits(tool_calls=2), timeout_s=60)
    async with one as first, other as second:
        await harness.tool(first, "say", say)
        await harness.tool(second, "say", say)
        await harness.tool(second, "say", say)
    assert [journal.state(run_id).usage["tool_calls"] for run_id in ("r-1", "r-2")] == [1, 2]
