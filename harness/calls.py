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
from harness.boundary.operation import Operation, prepare
from harness.boundary.stream import ModelStream
from harness.boundary.tool_calls import ToolCall, ToolResult, check_calls, name_of, tool_operation
from harness.budget.prices import usage_map
from harness.budget.usage import TokenUsage, check_estimate
from harness.concurrency.functions import is_async, is_streaming
from harness.context import RunContext, check_run
from harness.engine import Engine
from harness.errors import InvalidInput
from harness.ids import check_name
from harness.live.ordinals import Ordinals
from harness.options import GuardOptions, ModelOptions, ToolLabels, ToolOptions
from harness.retry import OperationKind

P = ParamSpec("P")
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
        `kind` decides the retry policy. An attempt may take `timeout_s` seconds, or as long as the run. Awaiting it
        raises what `fn` raises, `RunEnded`, `ScopeExhausted`, `AttemptTimedOut`, or `LedgerUnavailable`.
        """
        options = ModelOptions(args=args, kind=kind, model=model, reserve=reserve, timeout_s=timeout_s)
        return cross(self._engine, run, self._model_step(run, name, fn, is_async(fn), **options))

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
        options = ModelOptions(args=args, kind=kind, model=model, reserve=reserve, timeout_s=timeout_s)
        return ModelStream(self._engine, run, self._model_step(run, name, fn, is_streaming(fn), **options))

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
        """Call `fn(run, **args)` as a guard: a check whose verdict the run depends on; it is charged no calls.

        What it returns is only handed on, so a verdict that is to stop something has to be acted on. The rest is as
        with `model`.
        """
        operation = prepare(run, "guard", name, fn, is_async(fn), args=args, purpose=kind, timeout_s=timeout_s)
        return cross(self._engine, run, operation)

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
        `InvalidInput` if the tool has no limit: neither one of its own nor a default. An attempt may take `timeout_s`
        seconds, or as long as the run. Awaiting it raises what `fn` raises, `ToolDenied`, and the rest as with `model`.
        """
        labels = ToolLabels(call_id=call_id, tool_key=tool_key, effect=effect, timeout_s=timeout_s)
        if callable(name):
            if fn is not None or args is not None:
                raise InvalidInput("args", "go to what tool(run, fn) returns: tool(run, fn)(**args)")
            return self._curry(run, name, labels)
        if fn is None:
            raise InvalidInput("fn", "is missing: tool(run, name, fn) or tool(run, fn)")
        return cross(self._engine, run, tool_operation(run, name, fn, args, **labels))

    def tools(self, run: RunContext, calls: Sequence[ToolCall]) -> Awaitable[list[ToolResult]]:
        """Call each as `tool` does, side by side, and all or none; one result for each, in their order (SPEC D6).

        Where a limit refuses them, no call is started or charged and each result says so; the run, or the nested scope,
        has ended then. Calls that a policy denies are left out. `InvalidInput` if one call cannot be made at all.
        """
        check_run(run)
        operations = [_batched(run, index, call) for index, call in enumerate(check_calls(calls))]
        return cross_together(self._engine, run, run.next_ordinal(BATCH, BATCH_NAME), operations)

    def _model_step(
        self,
        run: RunContext,
        name: str,
        fn: Callable[..., Any],
        starts_in_loop: bool,
        *,
        args: Mapping[str, Any] | None,
        kind: str,
        model: str | None,
        reserve: TokenUsage | None,
        timeout_s: float | None,
    ) -> Operation:
        if model is not None:
            model = check_name("model", model)
        prices = self._engine.prices
        if prices is not None:
            prices.check_priced(model)
        estimate = usage_map(prices, model, check_estimate(reserve))
        operation = prepare(run, "model", name, fn, starts_in_loop, args=args, purpose=kind, timeout_s=timeout_s)
        return operation._replace(estimate=estimate, model=model)

    def _curry(self, run: RunContext, fn: Callable[..., Any], labels: ToolLabels) -> Callable[..., Any]:
        check_run(run)
        try:
            signature = inspect.signature(partial(fn, run))
        except (TypeError, ValueError):
            problem = f"must show a signature that begins with the run, and {name_of(fn)} does not"
            raise InvalidInput("fn", problem) from None

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                named = _by_name(signature.bind(*args, **kwargs))
            except TypeError as error:
                raise TypeError(f"{name_of(fn)}() {error}") from None
            operation = tool_operation(run, name_of(fn), fn, named, **labels)
            return cross(self._engine, run, operation._replace(call=lambda inside: fn(inside, *args, **kwargs)))

        return call


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """The arguments as a call by name has them: those of `**options` under their own names, where policies look."""
    named = dict(bound.arguments)
    for parameter in bound.signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            options = named.pop(parameter.name, {})
            if twice := options.keys() & named.keys():
                raise TypeError(f"got {min(twice)!r} twice, by position and by name")
            named |= options
    return named


def _batched(run: RunContext, index: int, call: ToolCall) -> Operation:
    """One call of a batch, as it will be on a path of its own."""
    alone = replace(run, ordinals=Ordinals())
    labels = ToolLabels(call_id=call.call_id, tool_key=call.tool_key, effect=call.effect, timeout_s=call.timeout_s)
    name = name_of(call.fn) if call.name is None else call.name
    try:
        return tool_operation(alone, name, call.fn, call.args, **labels)
    except InvalidInput as error:
        raise InvalidInput(f"calls[{index}].{error.field}", error.problem) from error
