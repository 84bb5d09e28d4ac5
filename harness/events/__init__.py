"""The vocabulary: every event a run, a session or the ledger itself can have, one small module per family."""

from __future__ import annotations

from typing import Any

from harness.errors import UnknownEvent
from harness.events.annotation import CaseRecorded, EvaluationRecorded, FeedbackRecorded
from harness.events.attempt import (
    NOT_INVOKED,
    AttemptAbandoned,
    AttemptEvent,
    AttemptFailed,
    AttemptFinishedLate,
    AttemptStarted,
    AttemptSucceeded,
    HiddenRetryDetected,
)
from harness.events.base import BoundaryEvent, Event, Redaction, RunEvent, SessionEvent, SystemEvent
from harness.events.cancellation import REQUESTABLE, CancellationRequested, CancellationSignalled, outcome_of_signal
from harness.events.erasure import ContentErased, ErasureScope, ErasureStage
from harness.events.graph import GraphFinished, GraphTransitioned
from harness.events.policy import PolicyDecided
from harness.events.reservation import LimitWouldReject, ReservationGranted, ReservationRejected
from harness.events.retry import RetryRefused, RetryScheduled
from harness.events.run import AnswerRecorded, FlowSelected, RunStarted, RunTerminated, TerminalOutcome
from harness.events.scope import ScopeClosed, ScopeEvent, ScopeExhausted, ScopeOpened
from harness.events.session import SessionContextCleared, SessionOpened
from harness.events.system import (
    AccessRecorded,
    ErasureDecided,
    ErasureFinished,
    ErasureRequested,
    KeyCreated,
    KeyRevoked,
    KeyRotated,
    LedgerRestored,
    RetentionDecided,
    TokenCreated,
    TokenRevoked,
)
from harness.events.usage import UsageSettled

EVENT_TYPES: dict[str, type[Event]] = {
    model.model_fields["type"].default: model
    for model in (
        RunStarted,
        FlowSelected,
        ScopeOpened,
        PolicyDecided,
        ReservationGranted,
        LimitWouldReject,
        ReservationRejected,
        AttemptStarted,
        AttemptSucceeded,
        AttemptFailed,
        AttemptAbandoned,
        AttemptFinishedLate,
        UsageSettled,
        RetryScheduled,
        RetryRefused,
        HiddenRetryDetected,
        ScopeExhausted,
        ScopeClosed,
        CancellationRequested,
        CancellationSignalled,
        GraphTransitioned,
        GraphFinished,
        AnswerRecorded,
        RunTerminated,
        EvaluationRecorded,
        FeedbackRecorded,
        CaseRecorded,
        ContentErased,
        SessionOpened,
        SessionContextCleared,
        KeyCreated,
        KeyRotated,
        KeyRevoked,
        TokenCreated,
        TokenRevoked,
        AccessRecorded,
        ErasureRequested,
        ErasureDecided,
        RetentionDecided,
        ErasureFinished,
        LedgerRestored,
    )
}
"""Event type to model, in the order in which a run usually meets them."""

ACCEPTED_AFTER_TERMINATION = frozenset(
    {
        "attempt.finished_late",
        "usage.settled",
        "hidden_retry.detected",
        "evaluation.recorded",
        "feedback.recorded",
        "case.recorded",
        "content.erased",
    }
)
"""All that a run's stream still takes once its termination is recorded (SPEC E6)."""

__all__ = [
    "ACCEPTED_AFTER_TERMINATION",
    "EVENT_TYPES",
    "NOT_INVOKED",
    "REQUESTABLE",
    "AccessRecorded",
    "AnswerRecorded",
    "AttemptAbandoned",
    "AttemptEvent",
    "AttemptFailed",
    "AttemptFinishedLate",
    "AttemptStarted",
    "AttemptSucceeded",
    "BoundaryEvent",
    "CancellationRequested",
    "CancellationSignalled",
    "CaseRecorded",
    "ContentErased",
    "ErasureDecided",
    "ErasureFinished",
    "ErasureRequested",
    "ErasureScope",
    "ErasureStage",
    "EvaluationRecorded",
    "Event",
    "FeedbackRecorded",
    "FlowSelected",
    "GraphFinished",
    "GraphTransitioned",
    "HiddenRetryDetected",
    "KeyCreated",
    "KeyRevoked",
    "KeyRotated",
    "LedgerRestored",
    "LimitWouldReject",
    "PolicyDecided",
    "Redaction",
    "ReservationGranted",
    "ReservationRejected",
    "RetentionDecided",
    "RetryRefused",
    "RetryScheduled",
    "RunEvent",
    "RunStarted",
    "RunTerminated",
    "ScopeClosed",
    "ScopeEvent",
    "ScopeExhausted",
    "ScopeOpened",
    "SessionContextCleared",
    "SessionEvent",
    "SessionOpened",
    "SystemEvent",
    "TerminalOutcome",
    "TokenCreated",
    "TokenRevoked",
    "UsageSettled",
    "build_models",
    "outcome_of_signal",
    "parse_event",
]


def build_models() -> None:
    """Build what checks events, which importing them put off; else the first run would pay for it, in its own time."""
    for model in EVENT_TYPES.values():
        model.model_rebuild()


def parse_event(fields: dict[str, Any]) -> Event:
    """The typed event of a body's fields.

    `UnknownEvent` for a type or a version of it that is not known here, `ValueError` for a malformed body.
    """
    event_type, version = fields.get("type"), fields.get("version")
    if not isinstance(event_type, str) or not isinstance(version, int):
        raise ValueError("a body has a type and a version")
    model = EVENT_TYPES.get(event_type)
    if model is None or version != model.model_fields["version"].default:
        raise UnknownEvent(event_type, version)
    return model.model_validate(fields)
