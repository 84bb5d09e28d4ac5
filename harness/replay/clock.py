"""Time and ids as they were recorded."""

from __future__ import annotations

from collections.abc import Callable

from harness import events as e
from harness.ids import SALT_BYTES
from harness.replay.deadlines import Deadlines
from harness.replay.record import ENDS, Record


class RecordedClock:
    """Both clocks of a run: they show when the event was recorded that is due, and never step back.

    While an operation is under way, they stand still until its end is given. A deadline passes where the record says
    that it has, however little or much the recorded times are beside it, and not before everything is at work that was
    by then.
    """

    def __init__(self, record: Record, deadlines: Deadlines, may_come: Callable[[e.Event], bool]) -> None:
        self._record = record
        self._deadlines = deadlines
        self._may_come = may_come
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
        passed = self._deadlines.passed_at(due)
        if passed is not None and self._may_come(due):
            self._elapsed_us = max(self._elapsed_us, self._deadlines.let_pass(passed))
        self._elapsed_us = max(self._elapsed_us, self._deadlines.latest_us(due.elapsed_us))
        self._wall_us = max(self._wall_us, due.occurred_us)


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
