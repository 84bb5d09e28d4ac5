"""How operations are called (SPEC D11)."""

import asyncio
import functools
import threading
from collections.abc import Awaitable
from typing import Any

import pytest

from harness import Decision, Harness, InvalidInput, OperationKind, RunContext, ToolCallKeyFactory
from tests.harness.fakes import HandJournal, each, limits, only, say, say_on_thread, shown, types


async def test_an_operation_gets_the_run_first_and_its_arguments_by_name(harness: Harness, journal: HandJournal):  # D11
    seen: dict[str, Any] = {}

    async def look(run: RunContext, pattern: str, count: int = 3) -> str:
        seen.update(run=run, pattern=pattern, count=count)
        return "found"

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "look", look, args={"pattern": "OOM"}) == "found"
    inner = seen["run"]
    assert (seen["pattern"], seen["count"]) == ("OOM", 3)
    assert (inner.path, inner.attempt_id) == (
        ("tool", "look", "1", "1"),
        only(journal.events("r"), "attempt.started").attempt_id,
    )


async def test_the_curried_form_records_and_calls_as_the_tool_is_declared(
    harness: Harness, journal: HandJournal
):  # D11
    async def search(run: RunContext, pattern: str, /, *paths: str, limit: int = 5, **options: int) -> list[Any]:
        return [pattern, paths, limit, options]

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        found = await harness.tool(run, search, call_id="call_0", effect="read")("OOM", "a", "b", limit=2, before=1)
    assert found == ["OOM", ("a", "b"), 2, {"before": 1}]
    began = only(journal.events("r"), "attempt.started")
    assert (began.name, began.call_id, began.effect) == ("search", "call_0", "read")
    recorded = journal.contents[began.input_digest].data
    assert recorded == b'{"pattern":"OOM","paths":["a","b"],"limit":2,"before":1}'


async def test_what_the_curried_form_takes_by_name_is_what_a_policy_sees(journal: HandJournal):  # D11
    asked: list[Any] = []

    def note(request: Any) -> Decision:
        asked.append(dict(request.arguments))
        return Decision(True, "NOTED")

    async def remove(run: RunContext, /, **options: object) -> None: ...

    async def pick(run: RunContext, path: str, /, **options: object) -> None: ...

    harness = Harness(journal, policies=(note,))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, remove)(path="/etc")
        await harness.tool(run, "remove", remove, args={"path": "/etc"})
        with pytest.raises(TypeError, match="path"):
            harness.tool(run, pick)("a", path="b")
    assert asked == [{"path": "/etc"}, {"path": "/etc"}]


async def test_a_wrong_call_of_the_curried_form_is_an_error_before_any_boundary(
    harness: Harness, journal: HandJournal
):  # D11
    async def search(run: RunContext, pattern: str) -> None: ...

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypeError, match="pattern"):
            harness.tool(run, search)(patern="OOM")  # type: ignore[call-arg]
    assert "attempt.started" not in types(journal.events("r"))


class Service:
    async def method(self, run: RunContext, n: int) -> int:
        return n

    async def __call__(self, run: RunContext, n: int) -> int:
        return n


async def add(run: RunContext, m: int, n: int) -> int:
    return m + n


def give_an_awaitable(run: RunContext, n: int) -> Awaitable[int]:
    return add(run, 0, n)


@pytest.mark.parametrize(
    "fn",
    [
        Service().method,
        Service(),
        functools.partial(add, m=0),
        give_an_awaitable,
        lambda run, n: n,
        lambda run, n: add(run, 0, n),
    ],
    ids=["method", "callable", "partial", "awaitable", "lambda", "lambda-awaitable"],
)
async def test_anything_that_can_be_called_can_be_an_operation(harness: Harness, fn: Any):  # D11
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "seven", fn, args={"n": 7}) == 7


async def test_a_plain_function_runs_on_a_thread_and_a_coroutine_function_in_the_callers_task(harness: Harness):  # H1a
    async def here(run: RunContext) -> tuple[int, Any]:
        return threading.get_ident(), asyncio.current_task()

    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "here", here) == (threading.get_ident(), asyncio.current_task())
        assert await harness.tool(run, "there", lambda run: threading.get_ident()) != threading.get_ident()


async def test_a_tool_may_call_another_through_the_run_it_got(harness: Harness, journal: HandJournal):  # D7, D11
    async def outer(run: RunContext) -> Any:
        return await harness.tool(run, "inner", say, args={"n": 1})

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "outer", outer) == {"n": 1}
    first, second = each(journal.events("r"), "attempt.started")
    assert second.boundary == "tool/outer/1/1/tool/inner/1/1"
    assert (first.parent_attempt_id, second.parent_attempt_id) == (None, first.attempt_id)
    assert second.ambiguous is None


async def test_a_tool_on_a_thread_may_call_another_in_a_loop_of_its_own(harness: Harness, journal: HandJournal):  # H1a
    def outer(run: RunContext) -> Any:
        async def inner() -> Any:
            return await harness.tool(run, "inner", say_on_thread, args={"n": 1})

        return asyncio.run(inner())

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "outer", outer) == {"n": 1}
    assert each(journal.events("r"), "attempt.started")[1].boundary == "tool/outer/1/1/tool/inner/1/1"


def stream(run: RunContext) -> Any:
    yield "work that would happen after the boundary"


async def stream_later(run: RunContext) -> Any:
    yield "work that would happen after the boundary"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"name": ""}, "tool"),
        ({"name": "t" * 201}, "tool"),
        ({"name": "naïve"}, "tool"),
        ({"args": [1]}, "args"),
        ({"args": "ab"}, "args"),
        ({"call_id": ""}, "call_id"),
        ({"call_id": "c" * 257}, "call_id"),
        ({"tool_key": "\n"}, "tool_key"),
        ({"effect": "read it"}, "effect"),
        ({"fn": None}, "fn"),
        ({"fn": 7}, "fn"),
        ({"fn": "say"}, "fn"),
        ({"fn": stream}, "fn"),
        ({"fn": stream_later}, "fn"),
        ({"name": say, "fn": None, "args": {"n": 1}}, "args"),
    ],
    ids=shown,
)
async def test_a_bad_call_is_refused_by_name_and_takes_no_ordinal(
    harness: Harness, journal: HandJournal, arguments: dict[str, Any], field: str
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput) as refused:
            harness.tool(run, arguments.pop("name", "say"), arguments.pop("fn", say), **arguments)
        assert refused.value.field == field
        await harness.tool(run, "say", say)
    assert only(journal.events("r"), "attempt.started").boundary == "tool/say/1/1"


async def test_a_kind_without_a_policy_is_refused(harness: Harness):  # H6
    odd: Any = "PLANNER"
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="PLANNER has no retry policy"):
            harness.model(run, "ask", say, kind=odd)


@pytest.mark.parametrize("args", [{"run": 1}, {"nobody": 1}, {1: 2}, {"n": 1, "N": 2}], ids=repr)
async def test_arguments_that_the_function_does_not_take_are_a_failed_attempt(
    harness: Harness, journal: HandJournal, args: Any
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypeError):
            await harness.tool(run, "add", add, args=args)
    assert only(journal.events("r"), "attempt.failed").error_type == "TypeError"


async def test_arguments_are_those_of_the_call_though_the_caller_reuses_the_mapping(harness: Harness):  # D7
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        args = {"n": 1}
        call = harness.tool(run, "say", say, args=args)
        args["n"] = 2
        assert await call == {"n": 1}


class Hostile:
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("no looks")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    @property
    def usage(self) -> int:
        raise AttributeError("none")


@pytest.mark.parametrize(
    "value", [Hostile(), 10**5000, float("nan"), "\udc00", {b"k": {1, 2}}, [[]] * 3, object()], ids=type
)
async def test_any_value_can_pass_a_boundary_in_both_directions(
    harness: Harness, journal: HandJournal, value: Any
):  # CASES 27
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        for kind in (harness.tool, harness.model, harness.guard):
            assert (await kind(run, "say", say, args={"value": value}))["value"] is value
    assert types(journal.events("r")).count("attempt.succeeded") == 3


async def test_a_value_nested_too_deep_for_any_encoder_still_passes(harness: Harness, journal: HandJournal):  # CASES 27
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.tool(run, "say", lambda run: deep) is deep
    while deep:
        deep = deep.pop()
    assert only(journal.events("r"), "attempt.succeeded").output_stored


async def test_a_tool_call_id_that_the_model_repeats_is_a_label_only(
    harness: Harness, journal: HandJournal
):  # CASES 24
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        for _ in range(3):
            await harness.tool(run, "say", say, call_id="call_0", tool_key="agent:r:call_0")
    started = each(journal.events("r"), "attempt.started")
    assert [(event.call_id, event.tool_key) for event in started] == [("call_0", "agent:r:call_0")] * 3
    assert len({event.attempt_id for event in started}) == len({event.boundary for event in started}) == 3


@pytest.mark.parametrize("error", [StopIteration(1), GeneratorExit(), StopAsyncIteration(), KeyError("k")], ids=repr)
@pytest.mark.parametrize("where", ["task", "thread"])
async def test_an_odd_exception_of_a_tool_is_its_failure(
    harness: Harness, journal: HandJournal, where: str, error: BaseException
):
    def throw(run: RunContext) -> None:
        raise error

    async def throw_in_task(run: RunContext) -> None:
        raise error

    with pytest.raises((RuntimeError, GeneratorExit, StopAsyncIteration, KeyError)):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.tool(run, "odd", throw if where == "thread" else throw_in_task)
    assert types(journal.events("r")).count("attempt.failed") == 1
    assert types(journal.events("r"))[-1] == "run.terminated"


def test_the_key_of_a_tool_call_is_prefix_run_and_the_frameworks_id():  # H8
    assert ToolCallKeyFactory("tool").key("run-7", "call_abc.1") == "tool:run-7:call_abc.1"


@pytest.mark.parametrize("bad", ["", " ", "a:b", "a/b", "é", "x" * 129, "a\n", "*", "{a}", None, 7], ids=repr)
def test_an_unsafe_segment_makes_no_key(bad: Any):  # H8
    factory = ToolCallKeyFactory("tool")
    for make in (lambda: ToolCallKeyFactory(bad), lambda: factory.key(bad, "call"), lambda: factory.key("run", bad)):
        with pytest.raises(InvalidInput):
            make()


async def test_a_guard_gives_its_verdict_and_is_charged_no_call(harness: Harness, journal: HandJournal):  # H2, H4
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.guard(run, "evidence", lambda run, n: n > 1, args={"n": 2}) is True
        assert run.budget.snapshot().usage.keys() <= {"run_bytes"}
    began = only(journal.events("r"), "attempt.started")
    assert (began.kind, began.operation, began.max_attempts) == ("guard", OperationKind.SEMANTIC_GUARD.value, 2)
