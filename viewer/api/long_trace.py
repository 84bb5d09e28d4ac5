"""The trace of a long run, sent part by part: its body is whole (SPEC R4), but is never all in memory as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ledger.records import AgentStep, RunTrace, ToolInvocation
from viewer.api.bodies import step_body, tool_body, trace_body
from viewer.http.wrapper import dumps

ROWS_AT_ONCE = 200
"""Steps or invocations in one part; making it takes a few milliseconds, and others wait no longer than that."""

Row = TypeVar("Row", AgentStep, ToolInvocation)


def is_long(trace: RunTrace) -> bool:
    """Whether the trace is better sent in parts."""
    return len(trace.agent_steps) + len(trace.tool_invocations) > ROWS_AT_ONCE


def trace_parts(trace: RunTrace) -> Iterator[bytes]:
    """The wrapped body, in parts."""
    yield b'{"code":"ok","message":"ok","data":'
    opening = b"{"
    for name, value in trace_body(replace(trace, agent_steps=(), tool_invocations=())).items():
        yield opening + dumps(name) + b":"
        if name == "agentSteps":
            yield from _rows(trace.agent_steps, step_body)
        elif name == "toolInvocations":
            yield from _rows(trace.tool_invocations, tool_body)
        else:
            yield dumps(value)
        opening = b","
    yield b"}}"


def _rows(rows: Sequence[Row], body: Callable[[Row], Mapping[str, Any]]) -> Iterator[bytes]:
    yield b"["
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = dumps([body(row) for row in rows[start : start + ROWS_AT_ONCE]])[1:-1]
        yield b"," + part if start else part
    yield b"]"
