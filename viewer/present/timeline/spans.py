"""From a run's events to spans of time: attempts, the waits between them, and the work that was not let through."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ledger.records import AgentStep, RecordedEvent, ToolInvocation
from ledger.words.codes import failure, plain, scope_of, used_of
from ledger.words.format import count, duration, spelled
from ledger.words.text import shorten
from viewer.present.content import arguments
from viewer.words import N_, ngettext
from viewer.words import gettext as _

Kind = Literal["model", "tool", "guard", "wait"]
State = Literal["ok", "failed", "running", "abandoned", "late", "refused", "denied", "passed", "wait"]

NOTE_CHARS_MAX = 72


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
    note_before: str = ""
    """Without that it was abandoned, where that is not its last word."""
    attempt: int = 1
    max_attempts: int = 1
    warnings: tuple[str, ...] = ()
    """Observed limits that it was let past."""
    hidden_count: int = 0
    """Requests that something in it sent beside the recorded one."""
    first_us: int | None = None
    """Of a stream: when its first output came, on the run's clock."""
    timeout_us: int | None = None
    count: int = 1
    """How many there were of its kind, one closely after the other; the span is all of them."""

    @property
    def is_suspect(self) -> bool:
        """Whether it did what it should not have done, or was let past a limit."""
        return bool(self.hidden_count or self.warnings or self.state == "passed")


Work = AgentStep | ToolInvocation


def spans_of(
    events: Iterable[RecordedEvent],
    tools: Iterable[ToolInvocation] = (),
    steps: Iterable[AgentStep] = (),
) -> list[Span]:
    """All spans in the order they began; the rows lend the arguments and messages that events do not hold."""
    rows: dict[str, Work] = {tool.boundary: tool for tool in tools}
    # A step's message is that of its last failed attempt.
    rows |= {f"{step.boundary}/{step.attempt_count}": step for step in steps if step.status == "FAILED"}
    reading = _Reading(rows)
    for event in events:
        reading.take(event)
    return sorted(map(told, reading.found.values()), key=lambda span: (span.start_us, span.seq))


class _Reading:
    """Takes a run's events in their order."""

    def __init__(self, rows: Mapping[str, Work]) -> None:
        self.found: dict[str, Span] = {}
        self._rows = rows
        self._passed: dict[str, list[str]] = {}
        self._limits_passed: set[tuple[str | None, str]] = set()

    def take(self, event: RecordedEvent) -> None:
        key = str(event.fields.get("attempt_id"))
        if event.type == "limit.would_reject" and self._is_old_news(event.fields):
            return
        if event.type == "attempt.started":
            self._start(key, event)
        elif event.type == "limit.would_reject" and "attempt_id" in event.fields:
            self._let_past(key, event)
        elif key in self.found and event.type in _FURTHER:
            self.found[key] = _FURTHER[event.type](self.found[key], event, self._row(event))
        elif event.type in _ALONE and event.fields.get("allowed") is not True:
            self.found[f"alone {event.seq}"] = _ALONE[event.type](event)

    def _start(self, key: str, event: RecordedEvent) -> None:
        self.found[key] = _started(event, self._row(event), tuple(self._passed.pop(key, ())))

    def _let_past(self, key: str, event: RecordedEvent) -> None:
        """Most come in one append with the start of their attempt, before it."""
        words = _past(event.fields)
        if key in self.found:
            self.found[key] = replace(self.found[key], warnings=(*self.found[key].warnings, words))
        else:
            self._passed.setdefault(key, []).append(words)

    def _is_old_news(self, fields: Mapping[str, Any]) -> bool:
        """Whether this work asks for nothing of a limit that was passed before, and was marked then."""
        limit = fields.get("scope_id"), fields["resource"]
        is_known = limit in self._limits_passed
        self._limits_passed.add(limit)
        return is_known and fields["amount"] == 0

    def _row(self, event: RecordedEvent) -> Work | None:
        return self._rows.get(event.fields["boundary"])


def _started(event: RecordedEvent, row: Work | None, warnings: tuple[str, ...]) -> Span:
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
        warnings=warnings,
        timeout_us=fields.get("timeout_us"),
    )


def told(span: Span) -> Span:
    """With all that is to be said of it, warnings first, and which attempt it was where it was not the only one."""
    hidden = ""
    if number := span.hidden_count:
        hidden = ngettext("%(num)s hidden request", "%(num)s hidden requests", number, num=spelled(number))
    is_one_of_many = span.max_attempts > 1 and (span.attempt > 1 or span.state != "ok")
    attempt = ""
    if is_one_of_many:
        attempt = _("attempt %(number)s of %(most)s", number=span.attempt, most=span.max_attempts)
    note = _join(hidden, *span.warnings, attempt, span.note)
    return span if note == span.note else replace(span, note=note)


def _succeeded(span: Span, event: RecordedEvent, _row: Work | None) -> Span:
    return _ended(span, event, "ok")


def _failed(span: Span, event: RecordedEvent, row: Work | None) -> Span:
    said = row.error.text if row is not None and row.error is not None else None
    why = shorten(said, 48) if said else failure(event.fields["failure"])
    if event.fields["failure"] == "TIMEOUT" and span.timeout_us is not None:
        why = _("stopped after its %(time)s", time=duration(span.timeout_us))
    ended = _ended(span, event, "failed")
    return replace(ended, note=_join(ended.note, why))


def _abandoned(span: Span, event: RecordedEvent, _row: Work | None) -> Span:
    why = _("abandoned: %(why)s", why=plain(event.fields["reason"]))
    note = _join(span.note, why)
    return replace(span, seq=event.seq, state="abandoned", end_us=event.elapsed_us, note=note, note_before=span.note)


def _late(span: Span, event: RecordedEvent, _row: Work | None) -> Span:
    after = duration(event.fields["duration_us"])
    if event.fields["succeeded"]:
        late = _("succeeded late, after %(time)s", time=after)
    else:
        late = _("failed late, after %(time)s", time=after)
    return replace(_ended(span, event, "late"), note=_join(span.note_before, late))


def _settled(span: Span, event: RecordedEvent, _row: Work | None) -> Span:
    usage: Mapping[str, int] = event.fields.get("usage") or {}
    if span.state == "failed" and not usage:
        return span
    known = [_(words, number=count(usage[key])) for key, words in _TOKENS if key in usage]
    return replace(span, note=_join(span.note, *(known or [_("tokens unknown")])))


def _not_retried(span: Span, event: RecordedEvent, _row: Work | None) -> Span:
    return replace(span, note=_join(span.note, _("not retried: %(why)s", why=plain(event.fields["reason"]))))


def _retried_unseen(span: Span, _event: RecordedEvent, _row: Work | None) -> Span:
    return replace(span, hidden_count=span.hidden_count + 1)


def _wait(event: RecordedEvent) -> Span:
    start, delay = event.elapsed_us or 0, int(event.fields["delay_us"])
    scope = scope_of(event.fields["boundary"])
    return Span(event.seq, scope, "wait", "wait", _("back-off"), start, start + delay, duration(delay))


def _refused(event: RecordedEvent) -> Span:
    fields = event.fields
    is_own = fields["resource"] == f"tool:{fields['name']}"
    used = used_of(fields["resource"], fields["used"], fields["limit"], named=not is_own)
    said = _("refused by its scope · %(used)s") if "scope_id" in fields else _("refused · %(used)s")
    return _at_once(event, "refused", said % {"used": used})


def _denied(event: RecordedEvent) -> Span:
    policy, why = event.fields["policy"], plain(event.fields["reason"])
    return _at_once(event, "denied", _("denied by %(policy)s · %(why)s", policy=policy, why=why))


def _passed(event: RecordedEvent) -> Span:
    return _at_once(event, "passed", _past(event.fields))


def _past(fields: Mapping[str, Any]) -> str:
    used = used_of(fields["resource"], fields["used"], fields["limit"])
    return _("only observed: %(used)s", used=used)


def _at_once(event: RecordedEvent, state: State, note: str) -> Span:
    fields, at = event.fields, event.elapsed_us or 0
    scope = scope_of(fields["boundary"])
    return Span(event.seq, scope, _kind(fields["kind"]), state, fields["name"], at, at, shorten(note, NOTE_CHARS_MAX))


def _ended(span: Span, event: RecordedEvent, state: State) -> Span:
    fields = event.fields
    span = replace(span, seq=event.seq, state=state, end_us=span.start_us + int(fields["duration_us"]))
    if "first_output_us" not in fields:
        return span
    first_us = int(fields["first_output_us"])
    first = _("first output after %(time)s", time=duration(first_us))
    return replace(span, first_us=span.start_us + first_us, note=_join(span.note, first))


def _kind(code: str) -> Kind:
    return "model" if code == "model" else "guard" if code == "guard" else "tool"


def _join(*parts: str) -> str:
    return shorten(" · ".join(part for part in parts if part), NOTE_CHARS_MAX)


_TOKENS = (("input_tokens", N_("%(number)s in")), ("output_tokens", N_("%(number)s out")))
_FURTHER: dict[str, Callable[[Span, RecordedEvent, Work | None], Span]] = {
    "attempt.succeeded": _succeeded,
    "attempt.failed": _failed,
    "attempt.abandoned": _abandoned,
    "attempt.finished_late": _late,
    "usage.settled": _settled,
    "retry.refused": _not_retried,
    "hidden_retry.detected": _retried_unseen,
}
_ALONE: dict[str, Callable[[RecordedEvent], Span]] = {
    "retry.scheduled": _wait,
    "reservation.rejected": _refused,
    "policy.decided": _denied,
    "limit.would_reject": _passed,
}
