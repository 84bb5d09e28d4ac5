"""The loop of model and tools that collects evidence: every step and every tool crosses a boundary of its own.

A call that a tool refuses goes back to the model as a typed error, once; the end of the run goes through (SPEC R11).
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import psutil

from demo.bounds import ARGUMENT_REPAIRS_MAX, INVESTIGATION_ROUNDS_MAX, TOOL_CALLS_PER_REPLY_MAX
from demo.errors import DemoError
from demo.model import Message, ModelFailed, Trip, system
from demo.rules.results import Result, parse_result
from demo.text import whole
from demo.tools import Sources, ToolError, find_tool, tools_for
from demo.tools.errors import UnknownTool
from harness import InvalidInput, OperationKind, RunContext, ToolCallKeyFactory, ToolDenied, ToolResult
from harness import ToolCall as Call
from harness.adapters.openai import ChatReply, ToolCall
from harness.budget.usage import check_tool_name
from harness.ids import check_name

# What goes back to the model: that the machine does not give, or a policy not allow, what it asked for.
TOOL_FAILURES = (ToolError, ToolDenied, OSError, psutil.Error, sqlite3.Error)
UNKNOWN_TOOL = "unknown_tool"
"""What the record calls a tool whose name it cannot hold."""
TOOL_KEYS = ToolCallKeyFactory("demo")


class NotExecuted(DemoError):
    """One reply asked for more calls than are made; the rest get this instead of a result."""

    code = "not_executed"


@dataclass(frozen=True, slots=True)
class Findings:
    """What was asked of tools and what they returned, as messages for the next step and as results for the rules."""

    messages: tuple[Message, ...] = ()
    results: tuple[Result, ...] = ()
    failure: ModelFailed | None = field(default=None, compare=False)
    """Why the model stopped early; what was found until then counts."""


def offered_tools(sources: Sources) -> tuple[dict[str, Any], ...]:
    """The tools as a model is told of them."""
    return tuple(
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        }
        for tool in tools_for(sources)
    )


async def investigate(
    trip: Trip,
    conversation: Sequence[Message],
    *,
    prompt: str,
    kind: OperationKind = OperationKind.DIAGNOSIS_AGENT,
    step: str = "executor",
) -> Findings:
    """Let the model call tools until it has enough, or until its rounds are used up."""
    messages: list[Message] = []
    results: list[Result] = []
    bad_replies = 0
    for _ in range(INVESTIGATION_ROUNDS_MAX):
        try:
            asked = [system(prompt), *conversation, *messages]
            reply = await trip.ask(step, asked, tools=offered_tools(trip.sources), kind=kind)
        except ModelFailed as failure:
            return Findings(tuple(messages), tuple(results), failure)
        if not reply.tool_calls:
            break
        answers = await _call_all(trip, reply.tool_calls)
        answered = list(zip(reply.tool_calls, answers, strict=True))
        messages += [_asked(reply), *(_answered(call, text) for call, text in answered)]
        results += [parse_result(call.name, call.arguments, text) for call, text in answered]
        bad_replies += any(not result.ok for result in results[-len(answered) :])
        if bad_replies > ARGUMENT_REPAIRS_MAX:
            break
    return Findings(tuple(messages), tuple(results))


async def _call_all(trip: Trip, calls: Sequence[ToolCall]) -> list[str]:
    """An answer to each call of one reply; what is more than is made at once is answered without being made."""
    made = await call_tools(trip, calls[:TOOL_CALLS_PER_REPLY_MAX])
    too_many = NotExecuted(f"at most {TOOL_CALLS_PER_REPLY_MAX} calls at once are made; ask again for this one")
    return made + [_error_json(too_many)] * (len(calls) - len(made))


async def call_tools(trip: Trip, calls: Sequence[ToolCall]) -> list[str]:
    """Results of calls made together, as JSON, or what went wrong as a typed error; only the run's end is raised."""
    results = await trip.harness.tools(trip.run, [_governed(trip, call) for call in calls])
    return [_answer(trip, call, result) for call, result in zip(calls, results, strict=True)]


def _governed(trip: Trip, call: ToolCall) -> Call:
    """The call as the harness makes it; one of a tool that does not exist too, so that its refusal is recorded."""
    fn: Callable[..., Any]
    try:
        tool = find_tool(call.name, trip.sources)
        fn, name, effect = tool.bound(trip.sources), tool.name, tool.effect
    except UnknownTool as error:
        fn, name, effect = _raising(error), _recorded_name(call.name), None
    return Call(
        fn=fn,
        name=name,
        args=_arguments(call),
        call_id=_label(call.call_id),
        tool_key=_tool_key(trip, call.call_id),
        effect=effect,
    )


def _raising(error: UnknownTool) -> Callable[..., Any]:
    """What is called where no policy denies it."""

    def call(run: RunContext, /, **arguments: Any) -> Any:
        raise error

    return call


def _recorded_name(name: str) -> str:
    try:
        return check_tool_name("tool", name)
    except InvalidInput:
        return UNKNOWN_TOOL


def _answer(trip: Trip, call: ToolCall, result: ToolResult) -> str:
    if isinstance(result.error, ToolDenied):
        # Of a tool that does not exist the model is told which ones do.
        try:
            find_tool(call.name, trip.sources)
        except UnknownTool as error:
            return _error_json(error)
    if result.error is None:
        return whole(json.dumps(result.value, ensure_ascii=False))
    if isinstance(result.error, TOOL_FAILURES):
        return _error_json(result.error)
    raise result.error


def _arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object; what is none is handed on for the tool to refuse, so that the refusal is recorded."""
    try:
        value = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        value = call.arguments
    return value if isinstance(value, dict) else {"not_an_object": value}


def _label(call_id: str) -> str | None:
    """The model's id of a call, kept exactly; left out where an event cannot hold it."""
    try:
        return check_name("call_id", call_id)
    except InvalidInput:
        return None


def _tool_key(trip: Trip, call_id: str) -> str | None:
    """The key of a call, where the model's id can be part of one (SPEC H8)."""
    try:
        return TOOL_KEYS.key(trip.run.run_id, call_id)
    except InvalidInput:
        return None


def _error_json(error: BaseException) -> str:
    """A typed error as the model reads it."""
    code, message = "tool_failed", type(error).__name__
    if isinstance(error, DemoError):
        code, message = error.code, error.message
    elif isinstance(error, ToolDenied):
        code, message = error.code, f"{error.policy} does not allow it: {error.reason}"
    return json.dumps({"error": {"code": code, "message": message}}, ensure_ascii=False)


def _asked(reply: ChatReply) -> Message:
    calls = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.tool_calls
    ]
    return {"role": "assistant", "content": reply.content, "tool_calls": calls}


def _answered(call: ToolCall, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call.call_id, "content": text}
