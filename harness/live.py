"""What the handles of one run share: one lock, one folded state, one way to record, one decision.

Every decision is taken under `lock`, on `state`, and becomes true by evolving that state with the events that are
submitted in the same breath; so memory and journal cannot tell two stories (SPEC D12).
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.budget import Excess
from harness.cancellation import MAX_CALLBACKS, CancelReason
from harness.clock import MonotonicClock, WallClock
from harness.content import Content, SealedContent, Sealer
from harness.deadline import Deadline
from harness.errors import AlreadyTerminated, InvalidInput, LedgerUnavailable, RunEnded
from harness.events import CancellationSignalled, RunEvent
from harness.ids import boundary_path, run_stream
from harness.journal import Journal, Recorded, Submission
from harness.lifecycle import Outcome, Termination
from harness.state import RunState, begin, evolve

log = logging.getLogger(__name__)

E = TypeVar("E", bound=RunEvent)


@dataclass(frozen=True, slots=True)
class Stop:
    """What telling a run to stop came to."""

    decided: bool
    """Whether this call decided the run's outcome."""
    recorded: Future[Recorded] | None


class LiveRun:
    """The one mutable thing of a run."""

    def __init__(
        self,
        session_id: str,
        run_id: str,
        *,
        deadline: Deadline,
        monotonic_clock: MonotonicClock,
        wall_clock: WallClock,
        journal: Journal,
        writer_id: str,
        sealer: Sealer,
    ) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.deadline = deadline
        self.monotonic_clock = monotonic_clock
        self.sealer = sealer
        self.lock = threading.RLock()
        self.termination: Termination | None = None
        self.cancel_reason: CancelReason | None = None
        self.failure: Exception | None = None
        """Why an earlier submission was not stored; while it is set nothing more is submitted."""
        self.answer: tuple[Content, bool] | None = None
        """What the run answered and whether its bytes are kept; recorded with the termination."""
        self._wall_clock = wall_clock
        self._journal = journal
        self._writer_id = writer_id
        self._started_ns = monotonic_clock.now_ns()
        self._state: RunState | None = None
        self._durable: RunState | None = None
        self._events = 0
        self._attempts = 0
        self._ordinals: defaultdict[tuple[tuple[str, ...], str, str], int] = defaultdict(int)
        self._callbacks: dict[object, Callable[[CancelReason], object]] = {}

    @property
    def state(self) -> RunState:
        """The fold of everything submitted so far; immutable, so reading it needs no lock."""
        assert self._state is not None, "the run has begun"
        return self._state

    @property
    def durable(self) -> RunState | None:
        """The fold of everything known to be stored; None if not even the beginning is."""
        return self._durable

    def elapsed_us(self) -> int:
        """Monotonic microseconds since the run's start."""
        return max(0, self.monotonic_clock.now_ns() - self._started_ns) // 1_000

    def event(self, model: type[E], /, **fields: Any) -> E:
        """A new event of this run, stamped with id and times unless `fields` has them; call with the lock held."""
        self._events += 1
        stamp: dict[str, Any] = {
            "event_id": f"{self._writer_id}:{self._events}",
            "stream_id": run_stream(self.run_id),
            "session_id": self.session_id,
            "run_id": self.run_id,
            "occurred_us": self._wall_clock.now_us(),
            "elapsed_us": self.elapsed_us(),
        }
        return model(**(stamp | fields))

    def next_attempt_id(self) -> str:
        """An id for an attempt, unique in the run; call with the lock held."""
        self._attempts += 1
        return f"a{self._attempts}"

    def next_ordinal(self, scope: tuple[str, ...], kind: str, name: str) -> int:
        """The ordinal of the next boundary of this kind and name in `scope`, from 1 (SPEC D7)."""
        with self.lock:
            self._ordinals[scope, kind, name] += 1
            return self._ordinals[scope, kind, name]

    def boundary(self, scope: tuple[str, ...], kind: str, name: str) -> str:
        """Identity of a boundary that has one attempt only."""
        return boundary_path(scope, kind, name, self.next_ordinal(scope, kind, name), 1)

    def once(self, kind: str) -> str:
        """Identity of a boundary that a run has at most once."""
        return boundary_path((), kind, "run", 1, 1)

    def check_running(self) -> None:
        """Raise `RunEnded` if the outcome has been decided."""
        if self.termination is not None:
            raise self.ended()

    def ended(self, excess: Excess | None = None) -> RunEnded:
        """The error for work that is refused; the outcome must have been decided."""
        end = self.termination
        assert end is not None, "the run has ended"
        excess = excess or end.excess
        return RunEnded(
            self.session_id,
            self.run_id,
            outcome=end.outcome.value,
            reason=end.reason,
            resource=excess.resource if excess else None,
            used=excess.used if excess else None,
            limit=excess.limit if excess else None,
        )

    def record(
        self, *events: RunEvent, contents: tuple[SealedContent, ...] = (), resumes: bool = False
    ) -> Future[Recorded]:
        """Submit events that belong together; call with the lock held.

        Raises `LedgerUnavailable` if an earlier submission was lost, unless this one `resumes` from the durable state.
        """
        if self.failure is not None and not resumes:
            raise LedgerUnavailable(str(self.failure)) from self.failure
        state = self._durable if resumes else self._state
        for event in events:
            state = evolve(state, event) if state is not None else begin(event)
        try:
            future = self._journal.submit(Submission(self.session_id, self.run_id, events, contents, resumes))
        except Exception:
            self.sealer.forget()
            raise
        self._state = state
        if resumes:
            self.failure = None
        future.add_done_callback(lambda done: self._acknowledge(done, events))
        return future

    def rewind(self) -> None:
        """After a lost submission: go on from what is known to be stored; call with the lock held."""
        self.sealer.forget()
        if self._durable is not None:
            self._state = self._durable

    def decide(self, outcome: Outcome, reason: str, excess: Excess | None = None) -> bool:
        """Take the terminal outcome unless one was taken; the only place where a run's outcome is decided."""
        with self.lock:
            if self.termination is not None:
                return False
            now_us = self._wall_clock.now_us()
            self.termination = Termination(outcome, reason, now_us, self.elapsed_us(), excess)
            return True

    def stop(self, reason: CancelReason, *, excess: Excess | None = None, before: tuple[RunEvent, ...] = ()) -> Stop:
        """Decide the outcome that `reason` stands for, record it after `before` in one append, tell the callbacks."""
        with self.lock:
            if not self.decide(reason.outcome, reason.value, excess):
                return Stop(False, None)
            self.cancel_reason = reason
            events = (*before, self.signalled())
            recorded = self.record(*events) if self.failure is None else None
        self._notify(reason)
        return Stop(True, recorded)

    def signalled(self) -> CancellationSignalled:
        """The event that says for which reason the run was told to stop; call with the lock held."""
        assert self.cancel_reason is not None, "there is a reason to record"
        return self.event(CancellationSignalled, boundary=self.once("cancellation"), reason=self.cancel_reason.value)

    def add_callback(self, callback: Callable[[CancelReason], object]) -> Callable[[], None]:
        """Register a cancellation callback, or run it at once if the run was told to stop."""
        key = object()
        with self.lock:
            reason = self.cancel_reason
            if reason is None:
                if len(self._callbacks) >= MAX_CALLBACKS:
                    raise InvalidInput("callback", f"would be one more than {MAX_CALLBACKS} on this run")
                self._callbacks[key] = callback
        if reason is not None:
            self._call(callback, reason)
        return lambda: self._remove_callback(key)

    def _remove_callback(self, key: object) -> None:
        with self.lock:
            self._callbacks.pop(key, None)

    def _notify(self, reason: CancelReason) -> None:
        with self.lock:
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            self._call(callback, reason)

    def _call(self, callback: Callable[[CancelReason], object], reason: CancelReason) -> None:
        try:
            callback(reason)
        except Exception as error:  # noqa: BLE001 - a callback's fault must not keep the others from running (H3)
            log.warning("run %s: a cancellation callback raised %s", self.run_id, type(error).__name__)

    def _acknowledge(self, done: Future[Recorded], events: tuple[RunEvent, ...]) -> None:
        """Note what became of a submission; on failure nothing more is let through (SPEC D1)."""
        error = done.exception()
        with self.lock:
            if error is None:
                for event in events:
                    self._durable = evolve(self._durable, event)
                return
            if isinstance(error, AlreadyTerminated):
                self._adopt(error)
            first = self.failure is None
            self.failure = self.failure or _as_exception(error)
            decided = self.decide(Outcome.FAILED, CancelReason.LEDGER_UNAVAILABLE.value)
            if decided:
                self.cancel_reason = CancelReason.LEDGER_UNAVAILABLE
        if first:
            log.warning("run %s: a submission was not stored: %s", self.run_id, type(error).__name__)
        if decided:
            self._notify(CancelReason.LEDGER_UNAVAILABLE)

    def _adopt(self, error: AlreadyTerminated) -> None:
        """The recorded termination is the outcome, whatever was decided here."""
        now_us = self._wall_clock.now_us()
        self.termination = Termination(Outcome(error.outcome), error.reason, now_us, self.elapsed_us())


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else LedgerUnavailable(type(error).__name__)
