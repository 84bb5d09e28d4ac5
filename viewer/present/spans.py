"""From a run's events to spans of time: attempts, the waits between them, and the work that was refused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import unquote

from ledger.records import AgentStep, RecordedEvent, ToolInvocation
from viewer.present import json_tree
from viewer.present.format import count, duration
from viewer.present.text import shorten
from viewer.present.words import failure, plain, resource, scope_of

Kind = Literal["model", "tool", "guard", "wait"]
State = Literal["ok", "failed", "running", "abandoned", "late", "refused", "wait"]

NOTE_CHARS_MAX = 72
_ARGUMENT_CHARS_MAX = 28


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time in a run, or would have."""

    seq: int
    """The event that says most about it: its end, else its start."""
    scope: tuple[str, ...]
    kind: Kind
    state: State
    name: str
    start_us: int
    """Since the run's start, on the run's monotonic clock."""
    end_us: int | None
    """None while it is open, and where nobody knows when it ended."""
    note: str = ""
    attempt: int = 1
    max_attempts: int = 1


Work = AgentStep | ToolInvocation


def spans_of(
    events: Iterable[RecordedEvent], tools: Iterable[ToolInvocation] = (), steps: Iterable[AgentStep] = ()
) -> list[Span]:
    """All spans in the order they began; the rows lend the arguments and messages that events do not hold."""
    rows: dict[str, Work] = {tool.boundary: tool for tool in tools}
    # A step's message is that of its last failed attempt.
    rows |= {f"{step.boundary}/{step.attempt_count}": step for step in steps if step.status == "FAILED"}
    found: dict[str, Span] = {}
    for event in events:
        key = event.fields.get("attempt_id")
        if event.type == "attempt.started":
            found[str(key)] = _started(event, rows.get(event.fields["boundary"]))
        elif event.type == "retry.scheduled":
            found[f"wait {event.seq}"] = _wait(event)
        elif event.type == "reservation.rejected":
            found[f"refused {event.seq}"] = _refused(event)
        elif key in found and event.type in _FURTHER:
            found[key] = _FURTHER[event.type](found[key], event, rows.get(event.fields["boundary"]))
    return sorted(map(_numbered, found.values()), key=lambda span: (span.start_us, span.seq))


def spans_of_rows(steps: Iterable[AgentStep], tools: Iterable[ToolInvocation]) -> list[Span]:
    """Spans of a run too long to read all its events: its steps and tools, without single attempts and waits."""
    models = (_row_span(step, "model", step.name) for step in steps)
    return sorted([*models, *(_row_span(tool, "tool", tool.tool_name) for tool in tools)], key=lambda s: s.start_us)


def _row_span(row: Work, kind: Kind, name: str) -> Span:
    end_us = None if row.duration_us is None else row.started_elapsed_us + row.duration_us
    scope = tuple(unquote(segment) for segment in row.scope.split("/")) if row.scope else ()
    return Span(0, scope, kind, _STATES.get(row.status, "running"), name, row.started_elapsed_us, end_us)


def _started(event: RecordedEvent, row: Work | None) -> Span:
    fields = event.fields
    return Span(
        seq=event.seq,
        scope=scope_of(fields["boundary"]),
        kind=_kind(fields["kind"]),
        state="running",
        name=fields["name"],
        start_us=event.elapsed_us or 0,
        end_us=None,
        note=arguments(row) if isinstance(row, ToolInvocation) else "",
        attempt=fields["attempt"],
        max_attempts=fields["max_attempts"],
    )


def _numbered(span: Span) -> Span:
    """Which attempt it was, where it was not the only one."""
    if span.max_attempts == 1 or (span.attempt == 1 and span.state == "ok"):
        return span
    return replace(span, note=_join(f"attempt {span.attempt} of {span.max_attempts}", span.note))


def _succeeded(span: Span, event: RecordedEvent, _: Work | None) -> Span:
    return replace(_ended(span, event), state="ok")


def _failed(span: Span, event: RecordedEvent, row: Work | None) -> Span:
    said = row.error.text if row is not None and row.error is not None else None
    why = shorten(said, 48) if said else failure(event.fields["failure"])
    return replace(_ended(span, event), state="failed", note=_join(span.note, why))


def _abandoned(span: Span, event: RecordedEvent, _: Work | None) -> Span:
    why = f"abandoned: {plain(event.fields['reason'])}"
    return replace(span, seq=event.seq, state="abandoned", end_us=event.elapsed_us, note=_join(span.note, why))


def _late(span: Span, event: RecordedEvent, _: Work | None) -> Span:
    how = "succeeded" if event.fields["succeeded"] else "failed"
    late = f"{how} late, after {duration(event.fields['duration_us'])}"
    before = span.note.partition("abandoned")[0].rstrip(" ·")
    return replace(_ended(span, event), state="late", note=_join(before, late))


def _settled(span: Span, event: RecordedEvent, _: Work | None) -> Span:
    usage: Mapping[str, int] = event.fields.get("usage") or {}
    if span.state == "failed" and not usage:
        return span
    known = [f"{count(usage[key])} {word}" for key, word in _TOKENS if key in usage]
    return replace(span, note=_join(span.note, *(known or ["tokens unknown"])))


def _not_retried(span: Span, event: RecordedEvent, _: Work | None) -> Span:
    return replace(span, note=_join(span.note, f"not retried: {plain(event.fields['reason'])}"))


def _wait(event: RecordedEvent) -> Span:
    start, delay = event.elapsed_us or 0, int(event.fields["delay_us"])
    scope = scope_of(event.fields["boundary"])
    return Span(event.seq, scope, "wait", "wait", "back-off", start, start + delay, duration(delay))


def _refused(event: RecordedEvent) -> Span:
    fields = event.fields
    at = event.elapsed_us or 0
    name = "" if fields["resource"] == f"tool:{fields['name']}" else f"{resource(fields['resource']).lower()}: "
    note = f"refused · {name}{count(fields['used'])} of {count(fields['limit'])} used"
    return Span(event.seq, scope_of(fields["boundary"]), _kind(fields["kind"]), "refused", fields["name"], at, at, note)


def _ended(span: Span, event: RecordedEvent) -> Span:
    return replace(span, seq=event.seq, end_us=span.start_us + int(event.fields["duration_us"]))


def _kind(code: str) -> Kind:
    return "model" if code == "model" else "guard" if code == "guard" else "tool"


def arguments(tool: ToolInvocation) -> str:
    """A tool's arguments in a few words: the two that say most, words before numbers."""
    if tool.input is None or tool.input.data is None:
        return ""
    tree = json_tree.parse(tool.input.data)
    values = [(node.kind == "number", _value(node)) for node in tree.children] if tree else []
    told = [value for _, value in sorted(values, key=lambda value: value[0]) if value]
    return " · ".join(shorten(value, _ARGUMENT_CHARS_MAX) for value in told[:2])


def _value(node: json_tree.Node) -> str:
    if node.kind == "array":
        return ", ".join(child.text for child in node.children[:6] if child.kind in ("string", "number"))
    return node.text if node.kind in ("string", "number") else ""


def _join(*parts: str) -> str:
    return shorten(" · ".join(part for part in parts if part), NOTE_CHARS_MAX)


_TOKENS = (("input_tokens", "in"), ("output_tokens", "out"))
_STATES: dict[str, State] = {"SUCCESS": "ok", "FAILED": "failed", "ABANDONED": "abandoned", "LATE": "late"}
_FURTHER: dict[str, Any] = {
    "attempt.succeeded": _succeeded,
    "attempt.failed": _failed,
    "attempt.abandoned": _abandoned,
    "attempt.finished_late": _late,
    "usage.settled": _settled,
    "retry.refused": _not_retried,
}
