"""The record of a run as it is gone through: what was crossed again, what is due next, and what is nobody's turn.

Events are known by identity: type and boundary, and the ordinal among those that share both (SPEC D7). They may be
crossed in another order than they were recorded in; what is due is the first that was not crossed yet.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import takewhile
from typing import TypeAlias, TypeVar

from harness import events as e
from harness.events import Event
from harness.recording import RecordedContent, Recording
from harness.state import path_of

E = TypeVar("E", bound=Event)
Key: TypeAlias = tuple[str, str]

BY_OTHERS = (
    e.CancellationRequested,
    e.ContentErased,
    e.EvaluationRecorded,
    e.FeedbackRecorded,
    e.CaseRecorded,
)
"""What is recorded of a run by whoever does not execute it."""
STARTS = (e.PolicyDecided, e.ReservationGranted, e.ReservationRejected, e.LimitWouldReject, e.AttemptStarted)
"""What a boundary records when it asks to be let through."""
_IN_A_BATCH = re.compile(r"(?:^|/)batch/tools/[0-9]+/1/[0-9]+$")
STATEMENTS = (e.FlowSelected, e.GraphTransitioned, e.GraphFinished, e.ScopeOpened, e.ReservationGranted)
"""What code records without waiting for anything; of reservations, those of bytes."""
ENDS = (e.AttemptSucceeded, e.AttemptFailed, e.AttemptAbandoned)


def boundary_of(event: Event) -> str:
    """The boundary of an event; empty where it has none."""
    return event.boundary if isinstance(event, e.BoundaryEvent) else ""


class Record:
    """A cursor over a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.events = recording.events
        self._places: defaultdict[Key, list[int]] = defaultdict(list)
        for at, event in enumerate(self.events):
            self._places[event.type, boundary_of(event)].append(at)
        self._operations = {event.boundary for event in self.events if isinstance(event, e.AttemptStarted)}
        starts = (boundary_of(event) for event in self.events if isinstance(event, STARTS))
        self._asked = {path for boundary in starts for path in (boundary, *_around(boundary))}
        self._length = self._owned_length()
        signals = (at for at, event in enumerate(self.events) if isinstance(event, e.CancellationSignalled))
        self._signalled_at = next(signals, None)
        self._counts: Counter[Key] = Counter()
        self._crossed = bytearray(len(self.events))
        self._at = 0
        self._given_at: int | None = None
        self.crossed_count = 0
        self.others_count = 0
        """Events that others recorded of the run."""
        self._pass_over()

    @property
    def due(self) -> Event | None:
        """The first event that was not crossed again; None if there is none left."""
        return None if self._at >= self._length else self.events[self._at]

    @property
    def due_seq(self) -> int:
        """Its sequence number."""
        return self._at + 1

    @property
    def is_due_given(self) -> bool:
        """Whether what is due was let happen, and has only to be recorded."""
        return self._given_at == self._at

    def give_due(self) -> None:
        """Let it happen."""
        self._given_at = self._at

    @property
    def is_cut(self) -> bool:
        """Whether the run's owner was lost, or is not done: the record ends before the run did."""
        return self._length < len(self.events) or not any(isinstance(event, e.RunTerminated) for event in self.events)

    def cross(self, event: Event) -> int | None:
        """Where the counterpart of an event that was crossed is in the record; None if there is none."""
        key = event.type, boundary_of(event)
        places, number = self._places.get(key, []), self._counts[key]
        self._counts[key] += 1
        if number >= len(places):
            return None
        self._crossed[places[number]] = True
        self.crossed_count += 1
        self._pass_over()
        return places[number]

    def has(self, event: Event) -> bool:
        """Whether an event that is crossed now has a counterpart."""
        key = event.type, boundary_of(event)
        return self._counts[key] < len(self._places.get(key, ()))

    def before_due(self) -> Event | None:
        """The event that precedes the one that is due."""
        return self.events[self._at - 1] if self._at else None

    def after_due(self) -> Iterator[Event]:
        """The events that follow the one that is due, as far as the run's owner recorded them."""
        return (self.events[at] for at in range(self._at + 1, self._length))

    @property
    def is_signalled(self) -> bool:
        """Whether what is due comes after the signal that told the run to stop."""
        return self._signalled_at is not None and self._at > self._signalled_at

    @property
    def is_to_be_signalled(self) -> bool:
        """Whether a signal that told the run to stop is still to come."""
        return self._signalled_at is not None and not self.is_signalled

    def next_but_ends(self) -> Event | None:
        """What follows the event that is due, and is no end of an attempt that was in flight by then."""
        ends = (*ENDS, e.AttemptFinishedLate, e.UsageSettled)
        return next((event for event in self.after_due() if not isinstance(event, ends)), None)

    def is_last(self, boundary: str) -> bool:
        """Whether the run was told to stop before whoever is at this boundary began anything that is on record."""
        if not self.is_to_be_signalled:
            return False
        path, kinds = _caller(boundary), STATEMENTS + STARTS
        rest = (self.events[at] for at in range(self._at, self._length) if not self._crossed[at])
        return not any(isinstance(each, kinds) and _is_within(path, each.boundary) for each in rest)

    def only(self, kind: type[E], boundary: str) -> E | None:
        """The first event of a type at a boundary."""
        places = self._places.get((kind.model_fields["type"].default, boundary))
        found = self.events[places[0]] if places else None
        return found if isinstance(found, kind) else None

    def each(self, kind: type[E], boundary: str) -> list[E]:
        """All events of a type at a boundary."""
        places = self._places.get((kind.model_fields["type"].default, boundary), ())
        return [event for at in places if isinstance(event := self.events[at], kind)]

    def end_of(self, boundary: str) -> e.AttemptSucceeded | e.AttemptFailed | e.AttemptAbandoned | None:
        """How the attempt there ended; None where that is not on record."""
        found = (
            self.only(e.AttemptSucceeded, boundary)
            or self.only(e.AttemptFailed, boundary)
            or self.only(e.AttemptAbandoned, boundary)
        )
        return found if found is not None and self.seq_of(found) <= self._length else None

    def opening_of(self, scope_id: str) -> e.ScopeOpened:
        """The beginning of a nested scope that is on record."""
        return next(each for each in self.events if isinstance(each, e.ScopeOpened) and each.scope_id == scope_id)

    def seq_of(self, event: Event) -> int:
        """The sequence number of a recorded event."""
        return next(at for at in self._places[event.type, boundary_of(event)] if self.events[at] is event) + 1

    def has_start(self, boundary: str) -> bool:
        """Whether anything asked there to be let through; of a batch, each of its calls counts."""
        return boundary in self._asked

    def is_inside(self, event: Event) -> bool:
        """Whether an event lies inside an operation, which is not called again (SPEC D7: by its path)."""
        return any(path in self._operations for path in _around(boundary_of(event)))

    def content(self, digest: str | None) -> RecordedContent | None:
        return None if digest is None else self.recording.contents.get(digest)

    def _pass_over(self) -> None:
        """Go on to the next event that was neither crossed nor recorded by others."""
        while self._at < self._length and (self._crossed[self._at] or isinstance(self.events[self._at], BY_OTHERS)):
            self.others_count += not self._crossed[self._at]
            self._at += 1

    def _owned_length(self) -> int:
        """How many events there are until the record was lost: to recovery, in its owner's place, or to a failure."""
        for at, event in enumerate(self.events):
            if isinstance(event, e.AttemptAbandoned | e.RunTerminated) and event.elapsed_us is None:
                return at
            if isinstance(event, e.RunTerminated) and event.reason == "LEDGER_UNAVAILABLE":
                return at - sum(1 for _ in takewhile(_is_closing, reversed(self.events[:at])))
        return len(self.events)


def _is_closing(event: Event) -> bool:
    """Whether it is recorded with the end of a run, for what was left open."""
    return isinstance(event, e.AttemptAbandoned | e.CancellationSignalled | e.AnswerRecorded)


def _around(boundary: str) -> Iterator[str]:
    """The paths around a boundary, the outermost first."""
    return (boundary[:at] for at, char in enumerate(boundary) if char == "/")


def _caller(boundary: str) -> str:
    """The path of the code that called what is there, which for a call of a batch is that of the batch."""
    path = path_of(boundary)
    found = _IN_A_BATCH.search(path)
    return path if found is None else path[: found.start()]


def _is_within(path: str, boundary: str) -> bool:
    return not path or boundary.startswith(f"{path}/")
