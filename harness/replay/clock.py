"""Time and ids as they were recorded."""

from __future__ import annotations

from harness import events as e
from harness.budget.usage import DEADLINE
from harness.ids import SALT_BYTES
from harness.replay.record import ENDS, Record


class RecordedClock:
    """Both clocks of a run: they show when the event was recorded that is due, and never step back.

    While an operation is under way, they stand still until its end is given. Where a deadline had passed, it has passed
    here too, however little the recorded times are beside it.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._elapsed_us = 0
        self._wall_us = record.recording.started.occurred_us

    def now_ns(self) -> int:
        self._move()
        return self._elapsed_us * 1_000

    def now_us(self) -> int:
        self._move()
        return self._wall_us

    def _move(self) -> None:
        due = self._record.due
        if not isinstance(due, e.RunEvent) or due.elapsed_us is None:
            return
        if isinstance(due, ENDS) and not self._record.is_due_given:
            return
        self._elapsed_us = max(self._elapsed_us, due.elapsed_us)
        self._wall_us = max(self._wall_us, due.occurred_us)
        if _is_late(due):
            self._elapsed_us = max(self._elapsed_us, self._record.recording.started.timeout_us)


def _is_late(event: e.Event) -> bool:
    """Whether it says that the deadline of the run has passed."""
    if isinstance(event, e.ReservationRejected):
        return event.resource == DEADLINE and event.scope_id is None
    return isinstance(event, e.CancellationSignalled) and event.reason == "DEADLINE_EXCEEDED"


class RecordedIds:
    """The run's own id; salts and jitter that nothing depends on, since what they made is on record."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._salts = 0

    def run_id(self) -> str:
        return self._run_id

    def writer_id(self) -> str:
        return "replay"

    def salt(self) -> bytes:
        self._salts += 1
        return self._salts.to_bytes(SALT_BYTES, "big")

    def fraction(self) -> float:
        return 0.0
