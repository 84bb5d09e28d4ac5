"""Which deadlines have passed, by the word of the record: times alone do not tell, as checks were made before them."""

from __future__ import annotations

from harness import events as e
from harness.budget.usage import DEADLINE
from harness.replay.record import Record

RUN = ""
"""Where the deadline of the run is kept, beside those of scopes by their boundaries."""


class Deadlines:
    """Those of a run that is executed again and of its open scopes, in microseconds of its own clock."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._until_us = {RUN: record.recording.started.timeout_us}

    def note(self, crossed: e.Event) -> None:
        """Learn of a scope that was opened or closed."""
        if isinstance(crossed, e.ScopeOpened) and crossed.timeout_us is not None:
            self._until_us[crossed.boundary] = (crossed.elapsed_us or 0) + crossed.timeout_us
        elif isinstance(crossed, e.ScopeClosed):
            self._until_us.pop(crossed.boundary, None)

    def passed_at(self, due: e.Event) -> str | None:
        """Whose deadline had passed by what is due, if it says so."""
        if isinstance(due, e.CancellationSignalled):
            return RUN if due.reason == "DEADLINE_EXCEEDED" else None
        if not isinstance(due, e.ReservationRejected | e.ScopeExhausted) or due.resource != DEADLINE:
            return None
        return RUN if due.scope_id is None else self._record.opening_of(due.scope_id).boundary

    def let_pass(self, whose: str) -> int:
        """Let it pass; the moment after it."""
        return self._until_us.pop(whose, -1) + 1

    def latest_us(self, elapsed_us: int) -> int:
        """So late, or just before the first deadline that has not passed."""
        return min((elapsed_us, *(until_us - 1 for until_us in self._until_us.values())))
