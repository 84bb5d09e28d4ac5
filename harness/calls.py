"""Calling work across a run's boundaries: models, tools and guards, each typed as what it calls (SPEC D7, D11)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from harness.boundary.admission import BATCH, BATCH_NAME
from harness.boundary.batch import cross_together
from harness.boundary.crossing import cross
from harness.boundary.operation import Operation
from harness.boundary.stream import ModelStream
from harness.boundary.tool_calls import ToolCall, ToolResult, check_calls, name_of
from harness.budget.prices import usage_map
from harness.budget.usage import TokenUsage, check_estimate, check_tool_name, is_limited, tool_resource
from harness.concurrency.functions import is_async, is_streaming
from harness.context import RunContext, check_run
from harness.deadline import check_timeout
from harness.engine import Engine
from harness.errors import InvalidInput
from harness.hooks.policies import check_effect
from harness.ids import boundary_id, check_code, check_name
from harness.live.ordinals import Ordinals
from harness.options import GuardOptions, ModelOptions, ToolLabels, ToolOptions
from harness.retry import OperationKind
from harness.state import NOTHING

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Calls:
    """The three kinds of work that a harness lets through. Each may be asynchronous or not, hence the overloads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @overload
    def model(
        self, run: RunContext, name: str, fn: Callable[..., Awaitable[T]], **options: Unpack[ModelOptions]
    ) -> Awaitable[T]: ...

    @overload
    def model(
        self, run: RunContext, name: str, fn: Callable[..., T], **options: Unpack[ModelOptions]
    ) -> Awaitable[T]: ...

    def model(
        self,
        run: RunContext,
        name: str,
        fn: Callable[..., Any],
        *,
        args: Mapping[str, Any] | None = None,
        kind: str = OperationKind.DIAGNOSIS_AGENT,
        model: str | None = None,
        reserve: TokenUsage | None = None,
        timeout_s: float | None = None,
    ) -> Awaitable[Any]:
        """Call `fn(run, **args)` as a model step; its token usage is the reply's `usage` if that is a `TokenUsage`.

        `reserve` is an estimate of that usage: the step is refused before it is sent if the estimate, or what it
        would cost, would pass a limit; what is not used of it is given back. `UnpricedModel` if prices refuse `model`.
        """
        estimate = self._estimate(model, reserve)
        return self._cross(cross, run, "model", name, kind, fn, args, None, estimate, timeout_s=timeout_s, model=model)

    def stream(
        self,
        run: RunContext,
        name: str,
        fn: Callable[..., AsyncIterable[T] | Awaitable[AsyncIterable[T]]],
        *,
        args: Mapping[str, Any] | None = None,
        kind: str = OperationKind.DIAGNOSIS_AGENT,
        model: str | None = None,
        reserve: TokenUsage | None = None,
        timeout_s: float | None = None,
    ) -> ModelStream[T]:
        """Call `fn(run, **args)` as a model step that gives an asynchronous iterator, and pass its chunks on.

        `fn` is called in the event loop. The usage is the last `TokenUsage` that a chunk has as its `usage`; its
        output the chunks' text (strings, or their `text` or `content`), else the list of them. `timeout_s` is for the
        whole stream. The rest is as with `model`; a retry is possible until a chunk was passed on.
        """
        estimate = self._estimate(model, reserve)
        start: Callable[..., ModelStream[T]] = ModelStream
        return self._cross(start, run, "model", name, kind, fn, args, None, estimate, timeout_s=timeout_s, model=model)

    @overload
    def guard(
        self, run: RunContext, name: str, fn: Callable[..., Awaitable[T]], **options: Unpack[GuardOptions]
    ) -> Awaitable[T]: ...

    @overload
    def guard(
        self, run: RunContext, name: str, fn: Callable[..., T], **options: Unpack[GuardOptions]
    ) -> Awaitable[T]: ...

    def guard(
        self,
        run: RunContext,
        name: str,
        fn: Callable[..., Any],
        *,
        args: Mapping[str, Any] | None = None,
        kind: str = OperationKind.SEMANTIC_GUARD,
        timeout_s: float | None = None,
    ) -> Awaitable[Any]:
        """Call `fn(run, **args)` as a guard: a check whose verdict the run depends on; it is charged no calls."""
        return self._cross(cross, run, "guard", name, kind, fn, args, timeout_s=timeout_s)

    @overload
    def tool(
        self, run: RunContext, name: str, fn: Callable[..., Awaitable[T]], /, **options: Unpack[ToolOptions]
    ) -> Awaitable[T]: ...

    @overload
    def tool(
        self, run: RunContext, name: str, fn: Callable[..., T], /, **options: Unpack[ToolOptions]
    ) -> Awaitable[T]: ...

    @overload
    def tool(
        self,
        run: RunContext,
        name: Callable[Concatenate[RunContext, P], Awaitable[T]],
        /,
        **labels: Unpack[ToolLabels],
    ) -> Callable[P, Awaitable[T]]: ...

    @overload
    def tool(
        self, run: RunContext, name: Callable[Concatenate[RunContext, P], T], /, **labels: Unpack[ToolLabels]
    ) -> Callable[P, Awaitable[T]]: ...

    def tool(
        self,
        run: RunContext,
        name: str | Callable[..., Any],
        fn: Callable[..., Any] | None = None,
        /,
        *,
        args: Mapping[str, Any] | None = None,
        call_id: str | None = None,
        tool_key: str | None = None,
        effect: str | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Call `fn(run, **args)` as a tool; or `tool(run, fn)(**args)`, which keeps the tool's own typing (SPEC D11).

        `call_id` is the framework's id of the call, kept exactly as a label; `effect` is `read` or `write`.
        `InvalidInput` if the tool has no limit: neither one of its own nor a default.
        """
        labels = ToolLabels(call_id=call_id, tool_key=tool_key, effect=effect, timeout_s=timeout_s)
        if callable(name):
            if fn is not None or args is not None:
                raise InvalidInput("args", "go to what tool(run, fn) returns: tool(run, fn)(**args)")
            return self._curry(run, name, labels)
        if fn is None:
            raise InvalidInput("fn", "is missing: tool(run, name, fn) or tool(run, fn)")
        return self._tool(cross, run, name, fn, args, None, **labels)

    def tools(self, run: RunContext, calls: Sequence[ToolCall]) -> Awaitable[list[ToolResult]]:
        """Call each as `tool` does, side by side, and all or none; one result for each, in their order (SPEC D6).

        Where a limit refuses them, no call is started or charged and each result says so; the run, or the nested scope,
        has ended then. Calls that a policy denies are left out. `InvalidInput` if one call cannot be made at all.
        """
        check_run(run)
        operations = [self._batched(run, index, call) for index, call in enumerate(check_calls(calls))]
        return cross_together(self._engine, run, run.next_ordinal(BATCH, BATCH_NAME), operations)

    def _cross(
        self,
        start: Callable[[Engine, RunContext, Operation], S],
        run: RunContext,
        kind: str,
        name: str,
        operation: str,
        fn: Callable[..., Any],
        args: Mapping[str, Any] | None,
        call: Callable[[RunContext], Any] | None = None,
        estimate: Mapping[str, int] = NOTHING,
        /,
        *,
        timeout_s: float | None,
        **labels: str | None,
    ) -> S:
        operation = check_code("kind", operation)
        policy = check_run(run).retry_policies.of(operation)
        timeout_s = None if timeout_s is None else check_timeout("timeout_s", timeout_s)
        if args is not None and not isinstance(args, Mapping):
            raise InvalidInput("args", f"must be a mapping, not {type(args).__name__}")
        named = dict(args or {})
        call = call or (lambda inside: fn(inside, **named))
        starts_here = is_streaming(fn) if start is ModelStream else is_async(fn)
        name = check_name("name", name)
        ordinal = run.next_ordinal(kind, name)
        # A place in the record that no retry can outgrow.
        boundary_id(run.path, kind, name, ordinal, policy.max_attempts)
        crossing = Operation(
            kind, name, operation, policy, ordinal, named, call, starts_here, estimate, timeout_s=timeout_s, **labels
        )
        return start(self._engine, run, crossing)

    def _estimate(self, model: str | None, reserve: TokenUsage | None) -> Mapping[str, int]:
        """What each attempt at a model step reserves; refuses a model that may not be used."""
        if model is not None:
            check_name("model", model)
        prices = self._engine.prices
        if prices is not None:
            prices.check_priced(model)
        return usage_map(prices, model, check_estimate(reserve))

    def _tool(
        self,
        start: Callable[[Engine, RunContext, Operation], S],
        run: RunContext,
        name: str,
        fn: Callable[..., Any],
        args: Mapping[str, Any] | None,
        call: Callable[[RunContext], Any] | None,
        *,
        call_id: str | None,
        tool_key: str | None,
        effect: str | None,
        timeout_s: float | None,
    ) -> S:
        name = check_tool_name("tool", name)
        if not is_limited(check_run(run).live.state, tool_resource(name)):
            raise InvalidInput("tool", f"{name} has no limit: give limits.per_tool[{name!r}] or per_tool_default")
        labels = {
            "call_id": None if call_id is None else check_name("call_id", call_id),
            "tool_key": None if tool_key is None else check_name("tool_key", tool_key),
            "effect": None if effect is None else check_effect(effect),
        }
        return self._cross(
            start, run, "tool", name, OperationKind.TOOL_CALL, fn, args, call, timeout_s=timeout_s, **labels
        )

    def _batched(self, run: RunContext, index: int, call: ToolCall) -> Operation:
        """One call of a batch, as it will be on a path of its own."""
        alone = replace(run, ordinals=Ordinals())
        labels = ToolLabels(call_id=call.call_id, tool_key=call.tool_key, effect=call.effect, timeout_s=call.timeout_s)
        name = name_of(call.fn) if call.name is None else call.name
        try:
            return self._tool(lambda _, __, operation: operation, alone, name, call.fn, call.args, None, **labels)
        except InvalidInput as error:
            raise InvalidInput(f"calls[{index}].{error.field}", error.problem) from error

    def _curry(self, run: RunContext, fn: Callable[..., Any], labels: ToolLabels) -> Callable[..., Any]:
        signature = inspect.signature(partial(fn, check_run(run)))

        def call(*args: Any, **kwargs: Any) -> Any:
            named = signature.bind(*args, **kwargs).arguments
            return self._tool(cross, run, name_of(fn), fn, named, lambda inside: fn(inside, *args, **kwargs), **labels)

        return call
