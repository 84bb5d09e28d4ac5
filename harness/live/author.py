"""Who writes the events of a run: each gets an id in its order, and the times at which it was written (SPEC E4, D8)."""

from __future__ import annotations

from typing import Any, TypeVar

from harness.clock import MonotonicClock, WallClock
from harness.events import RunEvent
from harness.ids import run_stream

E = TypeVar("E", bound=RunEvent)


class Author:
    """The one writer of a run's events; use it with the run's lock held."""

    def __init__(
        self,
        session_id: str,
        run_id: str,
        *,
        writer_id: str,
        monotonic_clock: MonotonicClock,
        wall_clock: WallClock,
        started_ns: int,
    ) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.monotonic_clock = monotonic_clock
        self.wall_clock = wall_clock
        self._stream_id = run_stream(run_id)
        self._writer_id = writer_id
        self._started_ns = started_ns
        self._events = 0
        self._attempts = 0
        self._scopes = 0

    def elapsed_us(self, at_ns: int | None = None) -> int:
        """Monotonic microseconds from the run's start until then, or now; needs no lock."""
        at_ns = self.monotonic_clock.now_ns() if at_ns is None else at_ns
        return max(0, at_ns - self._started_ns) // 1_000

    def event(self, model: type[E], /, **fields: Any) -> E:
        """A new event of this run, stamped with id and times unless `fields` has them."""
        self._events += 1
        stamped = {
            "event_id": f"{self._writer_id}:{self._events}",
            "stream_id": self._stream_id,
            "session_id": self.session_id,
            "run_id": self.run_id,
            "occurred_us": self.wall_clock.now_us(),
            "elapsed_us": self.elapsed_us(),
            **fields,
        }
        return model.model_validate(stamped)

    def next_attempt_id(self) -> str:
        """An id for an attempt, unique in the run."""
        self._attempts += 1
        return f"a{self._attempts}"

    def next_scope_id(self) -> str:
        """An id for a nested scope, unique in the run."""
        self._scopes += 1
        return f"s{self._scopes}"
