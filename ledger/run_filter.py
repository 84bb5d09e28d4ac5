"""Which runs a list is to show: conditions that must all hold, checked before anything is looked up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_code, check_id, check_name
from ledger.texts import terms_of

Feedback = Literal["useful", "not_useful", "none"]
STATUSES = ("RUNNING", "SUCCESS", "FAILED", "CANCELLED", "TIMED_OUT", "BUDGET_EXHAUSTED")
FEEDBACKS: tuple[Feedback, ...] = get_args(Feedback)
Unsaid = Literal["agent", "agent_version", "agent_flow", "actor", "environment"]
UNSAID: tuple[Unsaid, ...] = get_args(Unsaid)
"""What a run need not say of itself."""
LABELS_MAX = 16
"""Labels that one filter may name."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Conditions on runs; those left out hold for every run. `InvalidInput` names the field that cannot be."""

    session_id: str | None = None
    session_prefix: str | None = None
    """How the session's id begins."""
    status: tuple[str, ...] = ()
    """Any of these."""
    agent_flow: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    actor: str | None = None
    environment: str | None = None
    without: tuple[Unsaid, ...] = ()
    """Runs that say none of these."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """All of these."""
    tool: str | None = None
    """A tool of which the run was granted an attempt."""
    reason: str | None = None
    """Why the run ended."""
    degraded: bool | None = None
    feedback: Feedback | None = None
    from_us: int | None = None
    """Created then or later,"""
    to_us: int | None = None
    """and before that."""
    text: str | None = None
    """What the question, the answer or the error message says: words, "phrases" and `beginnings*`, all of them."""

    def __post_init__(self) -> None:
        for name in ("session_id", "session_prefix"):
            _check(name, getattr(self, name), check_id)
        for name in ("agent_flow", "reason"):
            _check(name, getattr(self, name), check_code)
        for name in ("agent", "agent_version", "actor", "environment", "tool"):
            _check(name, getattr(self, name), check_name)
        _check_some("status", self.status, STATUSES)
        _check_some("without", self.without, UNSAID)
        _check_labels(self.labels)
        for name in ("from_us", "to_us"):
            _check(name, getattr(self, name), _check_time)
        if self.from_us is not None and self.to_us is not None and self.from_us > self.to_us:
            raise InvalidInput("to_us", "must not be before from_us")
        if self.degraded is not None and not isinstance(self.degraded, bool):
            raise InvalidInput("degraded", "must be true or false")
        if self.feedback is not None and self.feedback not in FEEDBACKS:
            raise InvalidInput("feedback", f"must be one of {', '.join(FEEDBACKS)}")

        if self.text is not None:
            terms_of(self.text)

    @property
    def is_empty(self) -> bool:
        """Whether every run fits."""
        return self == RunFilter()


def labels_of(field: str, texts: Iterable[str]) -> dict[str, str]:
    """Labels that are written as `name=value`; `InvalidInput` for what is not, and for what no run can have."""
    labels: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise InvalidInput(field, "must be a name and a value, as name=value")
        if labels.setdefault(name, value) != value:
            raise InvalidInput(field, "must have one value for each name, as a run has")
    return labels


def _check(name: str, value: object, check: object) -> None:
    if value is not None and callable(check):
        check(name, value)


def _check_some(name: str, given: object, offered: tuple[str, ...]) -> None:
    if not isinstance(given, tuple) or not set(given) <= set(offered):
        raise InvalidInput(name, f"must be some of {', '.join(offered)}")


def _check_labels(labels: object) -> None:
    if not isinstance(labels, Mapping) or len(labels) > LABELS_MAX:
        raise InvalidInput("labels", f"must be at most {LABELS_MAX} names with values")
    for name, value in labels.items():
        check_name("labels", name)
        check_name("labels", value)


def _check_time(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SAFE_INTEGER:
        raise InvalidInput(name, "must be microseconds since 1970")
