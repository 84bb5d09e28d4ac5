"""What of a run was let through again, and what of that is at work."""

from __future__ import annotations

from harness import events as e
from harness.replay.attempt import ReplayedAttempt
from harness.replay.record import ENDS, Record


class Begun:
    """Attempts between their start and their end, by boundary."""

    def __init__(self, record: Record) -> None:
        self.at_work: dict[str, ReplayedAttempt] = {}
        """Those whose operation would have been called."""
        self._record = record
        self._open: set[str] = set()

    def note(self, crossed: e.Event) -> None:
        """Learn of a start or an end."""
        if isinstance(crossed, e.AttemptStarted):
            self._open.add(crossed.boundary)
        elif isinstance(crossed, ENDS):
            self._open.discard(crossed.boundary)

    def is_all_at_work(self) -> bool:
        """Whether each is, but for what was not invoked either when it was recorded."""
        ends = (self._record.end_of(boundary) for boundary in self._open - self.at_work.keys())
        return all(isinstance(end, e.AttemptAbandoned) and end.reason == e.NOT_INVOKED for end in ends)
