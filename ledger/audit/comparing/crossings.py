"""The boundaries that a run crossed, each once with all of its attempts: what two runs are compared by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

from ledger.errors import LedgerError, RunUnreadable
from ledger.records import RecordedEvent
from ledger.stored_events import events_of
from ledger.words.codes import noun, plain
from ledger.words.places import levels
from ledger.words.text import first_line

CROSSINGS_MAX = 200_000
"""Of one run; each is remembered."""

Fields = Mapping[str, Any]


class TooManyCrossings(LedgerError):
    """The run is longer than what can be compared."""

    code = "too_many_crossings"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} has crossed more than {CROSSINGS_MAX:,} boundaries, too many to compare")
        self.run_id = run_id


class Piece(NamedTuple):
    """A content as an event names it."""

    digest: str
    size_bytes: int


@dataclass(slots=True)
class Crossing:
    """One boundary: its identity without the attempt number, and what its events came to (SPEC D7)."""

    seq: int
    """Of its first event."""
    kind: str
    name: str
    place: str
    """In which scopes and branches it lies, as pages say it; empty at the root of the run."""
    outcome: str = ""
    attempt_count: int = 0
    failures: list[str] = field(default_factory=list)
    """Why attempts failed, one after the other, also where a later one succeeded."""
    duration_us: int | None = None
    """Of all its attempts; None where nobody measured one."""
    usage: dict[str, int] = field(default_factory=dict)
    """Tokens and cost as they were settled."""
    model: str | None = None
    effect: str | None = None
    hidden_retry_count: int = 0
    passed_count: int = 0
    """Limits that were only observed, and passed."""
    input: Piece | None = None
    output: Piece | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What is aligned by."""
        return self.kind, self.name

    @property
    def title(self) -> str:
        """`executor.1 · query_logs`."""
        return f"{self.place} · {self.name}" if self.place else self.name


class Crossings:
    """Gathered from a run's events, in the order in which they were first crossed."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.found: dict[str, Crossing] = {}
        """By boundary without the attempt number."""

    def add(self, event: RecordedEvent) -> None:
        """Take the run's next event; those of no boundary are passed over. `RunUnreadable` for what is no event."""
        try:
            # None for a type that is not known here, of which is said only where it lies.
            known = next(iter(events_of([event.body])), None)
        except ValueError as error:
            raise RunUnreadable(self.run_id, f"event {event.seq}: {first_line(error)}") from error
        boundary = event.fields.get("boundary")
        if not isinstance(boundary, str):
            return
        identity = boundary.rpartition("/")[0]
        crossing = self.found.get(identity)
        if crossing is None:
            if len(self.found) >= CROSSINGS_MAX:
                raise TooManyCrossings(self.run_id)
            crossing = self.found[identity] = _begin(event.seq, boundary)
        if known is not None:
            _evolve(crossing, known.type, event.fields)


def piece_of(fields: Fields, what: str) -> Piece | None:
    """The content that an event names under `what`, such as `input`."""
    digest, size_bytes = fields.get(f"{what}_digest"), fields.get(f"{what}_bytes")
    return Piece(digest, size_bytes or 0) if isinstance(digest, str) else None


def _begin(seq: int, boundary: str) -> Crossing:
    segments = [unquote(segment) for segment in boundary.split("/")]
    place = " · ".join(level.label for level in levels(segments[:-4]))
    kind, name = (segments[-4], segments[-3]) if len(segments) >= 4 else ("", boundary)
    return Crossing(seq, kind, name, place)


def _evolve(crossing: Crossing, event_type: str, fields: Fields) -> None:
    crossing.outcome = _outcome(crossing.outcome, event_type, fields)
    if event_type == "attempt.started":
        crossing.attempt_count += 1
        crossing.model, crossing.effect = fields.get("model"), fields.get("effect")
        crossing.input = piece_of(fields, "input")
    elif event_type == "attempt.failed":
        crossing.failures.append(plain(str(fields.get("failure"))))
    elif event_type == "usage.settled":
        for name, amount in (fields.get("usage") or {}).items():
            crossing.usage[name] = crossing.usage.get(name, 0) + amount
    elif event_type == "hidden_retry.detected":
        crossing.hidden_retry_count += 1
    elif event_type == "limit.would_reject":
        crossing.passed_count += 1
    for what in ("output", "error", "answer"):
        crossing.output = piece_of(fields, what) or crossing.output
    if "duration_us" in fields:
        crossing.duration_us = (crossing.duration_us or 0) + fields["duration_us"]


def _outcome(before: str, event_type: str, fields: Fields) -> str:
    """What the boundary came to by now, in words."""
    match event_type:
        case "reservation.granted":
            return before or "granted"
        case "attempt.started":
            return "running"
        case "attempt.succeeded":
            return "success"
        case "attempt.failed":
            return _with("failed", fields.get("failure"))
        case "attempt.abandoned":
            return _with("abandoned", fields.get("reason"))
        case "attempt.finished_late":
            return "late success" if fields.get("succeeded") else "late failure"
        case "retry.refused":
            return f"{before}, not retried"
        case "reservation.rejected":
            return f"refused by {noun(str(fields.get('resource')))}"
        case "policy.decided":
            return before if fields.get("allowed") else _with("denied", fields.get("reason"))
        case "scope.opened":
            return "open"
        case "scope.exhausted":
            return f"exhausted {noun(str(fields.get('resource')))}"
        case "scope.closed":
            return "closed" if before == "open" else before
    return _rest(before, event_type, fields)


def _rest(before: str, event_type: str, fields: Fields) -> str:
    match event_type:
        case "graph.transitioned":
            cause = "" if fields.get("cause") == "NEXT" else fields.get("cause")
            return _with(f"from {fields.get('from_node', 'outside')}", cause)
        case "graph.finished":
            degraded = ", degraded" if fields.get("degraded") else ""
            return _with(f"in {fields.get('final_node')}", fields.get("reason")) + degraded
        case "flow.selected":
            return str(fields.get("flow"))
        case "cancellation.signalled":
            return plain(str(fields.get("reason")))
        case "answer.recorded":
            return "answered"
        case "run.terminated":
            return _with(plain(str(fields.get("outcome"))), fields.get("reason"))
    return before


def _with(words: str, code: object) -> str:
    said = plain(str(code)) if code else words
    return words if said == words else f"{words} ({said})"
