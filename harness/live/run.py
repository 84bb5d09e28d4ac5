"""What the handles of one run share: one lock, one folded state, one way to record, one decision.

Every decision is taken under `lock`, on `state`, and becomes true by evolving that state with the events that are
submitted in the same breath; so memory and journal cannot tell two stories (SPEC D12).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Future

from harness.budget.repeats import Repeats
from harness.budget.usage import Excess
from harness.cancellation import Callback, Callbacks, CancelReason
from harness.clock import MonotonicClock, WallClock
from harness.concurrency.interruption import DEADLINE_PASSED, RUN_STOPPED, Cause, Interruptions
from harness.concurrency.lock import RunLock
from harness.content import SealedContent, Sealer
from harness.deadline import Deadline
from harness.errors import AlreadyTerminated, LedgerUnavailable, RunEnded
from harness.events import CancellationSignalled, RunEvent
from harness.ids import boundary_id
from harness.journal import Journal, Recorded, Submission
from harness.lifecycle import Outcome, Stop, Termination
from harness.live.author import Author
from harness.live.ordinals import Ordinals
from harness.promise import Promise
from harness.redaction import Captured
from harness.state import RunState, evolve_all

log = logging.getLogger(__name__)


class LiveRun(Author):
    """The one mutable thing of a run."""

    def __init__(
        self,
        session_id: str,
        run_id: str,
        *,
        started_ns: int,
        deadline: Deadline,
        monotonic_clock: MonotonicClock,
        wall_clock: WallClock,
        journal: Journal,
        writer_id: str,
        sealer: Sealer,
    ) -> None:
        super().__init__(
            session_id,
            run_id,
            writer_id=writer_id,
            monotonic_clock=monotonic_clock,
            wall_clock=wall_clock,
            started_ns=started_ns,
        )
        self.deadline = deadline
        self.sealer = sealer
        self.lock = RunLock()
        self.interruptions = Interruptions(self.lock)
        self.ordinals = Ordinals()
        self.repeats = Repeats()
        self.termination: Termination | None = None
        self.cancel_reason: CancelReason | None = None
        self.failure: Exception | None = None
        """Why an earlier submission was not stored; while it is set nothing more is submitted."""
        self.block: object | None = None
        """What will record the end; kept until it does, so that it is there as long as anybody has the run."""
        self.answer: Captured | None = None
        """What the run answered; recorded with the termination."""
        self._journal = journal
        self._state: RunState | None = None
        self._durable: RunState | None = None
        self._submitted = 0
        self._stored = 0
        self._before_end: int | None = None
        self._callbacks = Callbacks(run_id)

    @property
    def state(self) -> RunState:
        """The fold of everything submitted so far; immutable, so reading it needs no lock."""
        assert self._state is not None, "the run has begun"
        return self._state

    @property
    def durable(self) -> RunState | None:
        """The fold of everything known to be stored; None if not even the beginning is."""
        return self._durable

    def once(self, kind: str) -> str:
        """Identity of a boundary that a run has at most once."""
        return boundary_id((), kind, "run", 1, 1)

    def check_running(self) -> None:
        """Raise `RunEnded` if the outcome has been decided, or the deadline has come, which decides it (SPEC H2)."""
        if self.deadline.has_passed(self.monotonic_clock):
            self.stop(CancelReason.DEADLINE_EXCEEDED)
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
        self,
        *events: RunEvent,
        contents: tuple[SealedContent, ...] = (),
        resumes: bool = False,
        is_awaited: bool = True,
    ) -> Future[Recorded]:
        """Submit events that belong together; call with the lock held. The future completes once the run knows.

        Raises `LedgerUnavailable` if an earlier submission was lost, unless this one `resumes` from the durable state.
        """
        if self.failure is not None and not resumes:
            lost = self.failure
            raise LedgerUnavailable(lost.problem if isinstance(lost, LedgerUnavailable) else str(lost)) from lost
        state = evolve_all(self._durable if resumes else self._state, events)
        submission = Submission(self.session_id, self.run_id, events, contents, resumes, is_awaited)
        try:
            submitted = self._journal.submit(submission)
        except Exception:
            self.sealer.forget()
            raise
        self._state = state
        self._submitted += 1
        if resumes:
            self.failure = None
        number = self._submitted
        if submitted.done() and _problem_of(submitted) is None:
            self._durable, self._stored = state, number
            return submitted
        known: Promise[Recorded] = Promise()
        submitted.add_done_callback(lambda done: self._acknowledge(done, number, state, known))
        return known

    def record_end(self, *events: RunEvent, contents: tuple[SealedContent, ...] = ()) -> Future[Recorded]:
        """Submit the run's end, after a loss from what is known to be stored; call with the lock held."""
        self._before_end = self._submitted
        return self.record(*events, contents=contents, resumes=self.failure is not None)

    def rewind(self) -> None:
        """After a lost submission: go on from what is known to be stored; call with the lock held.

        A SUCCESS that something lost stood before is none: until its record is durable, it is provisional (SPEC D1).
        """
        end, reason = self.termination, CancelReason.LEDGER_UNAVAILABLE
        wanted = self._submitted if self._before_end is None else self._before_end
        if end is not None and end.outcome is Outcome.SUCCESS and self._stored < wanted:
            self.termination = Termination(reason.outcome, reason.value, self.wall_clock.now_us(), self.elapsed_us())
            self._signal(reason)
        self.sealer.forget()
        self._state, self._submitted = self._durable, self._stored

    def decide(self, outcome: Outcome, reason: str, excess: Excess | None = None) -> bool:
        """Take the terminal outcome unless one was taken; the only place where a run's outcome is decided."""
        with self.lock:
            if self.termination is not None:
                return False
            if outcome is Outcome.SUCCESS and self.deadline.has_passed(self.monotonic_clock):
                self.stop(CancelReason.DEADLINE_EXCEEDED)
                return False
            self.termination = Termination(outcome, reason, self.wall_clock.now_us(), self.elapsed_us(), excess)
            return True

    def stop(self, reason: CancelReason, *, excess: Excess | None = None, before: tuple[RunEvent, ...] = ()) -> Stop:
        """Decide the outcome that `reason` stands for, record it after `before` in one append, and tell everyone.

        Crossings in flight are interrupted, but those of the task that calls this; callbacks are called.
        """
        with self.lock:
            if not self.decide(reason.outcome, reason.value, excess):
                return Stop(False, None)
            self._signal(reason)
            recorded = self.record(*before, self.signalled()) if self.failure is None else None
            return Stop(True, recorded)

    def interrupt(self) -> None:
        """Interrupt what is in flight in other tasks, since the outcome has been decided."""
        self.interruptions.interrupt_others(self.cause())

    def cause(self) -> Cause:
        """Why work stops that the end of the run finds in flight."""
        is_late = self.cancel_reason is CancelReason.DEADLINE_EXCEEDED
        return Cause(DEADLINE_PASSED if is_late else RUN_STOPPED, self.ended)

    def expire(self) -> RunEnded:
        """The deadline has come: the run ends, if it had not."""
        self.stop(CancelReason.DEADLINE_EXCEEDED)
        return self.ended()

    def signalled(self) -> CancellationSignalled:
        """The event that says for which reason the run was told to stop; call with the lock held."""
        assert self.cancel_reason is not None, "there is a reason to record"
        return self.event(CancellationSignalled, boundary=self.once("cancellation"), reason=self.cancel_reason.value)

    def on_signal(self, callback: Callback) -> Callable[[], None]:
        """Register a cancellation callback, or run it at once if the run was told to stop."""
        with self.lock:
            reason = self.cancel_reason
            key = self._callbacks.add(callback) if reason is None else None
        if reason is not None:
            self._callbacks.tell([callback], reason)

        def remove() -> None:
            with self.lock:
                self._callbacks.remove(key)

        return remove

    def _signal(self, reason: CancelReason) -> None:
        """Keep the first reason, and tell everyone as soon as the lock is free; call with the lock held."""
        self.cancel_reason = reason
        callbacks = self._callbacks.take()
        self.lock.put_off(self.interrupt)
        self.lock.put_off(lambda: self._callbacks.tell(callbacks, reason))

    def _acknowledge(
        self, done: Future[Recorded], number: int, state: RunState | None, known: Future[Recorded]
    ) -> None:
        """Note what became of submission `number`, which led to `state`, then let those who wait for it know."""
        error = _problem_of(done)
        with self.lock:
            if error is None:
                self._durable, self._stored = state, number
                self.sealer.note_erasures(done.result().erasure_count)
            else:
                self._lose(error)
        if error is None:
            known.set_result(done.result())
        else:
            known.set_exception(error)

    def _lose(self, error: Exception) -> None:
        """A submission was not stored, so nothing more is let through (SPEC D1); call with the lock held."""
        if self.failure is None:
            log.warning("run %s: a submission was not stored: %s", self.run_id, type(error).__name__)
        was_running = self.termination is None
        if isinstance(error, AlreadyTerminated):
            # The recorded termination is the outcome, whatever was decided here.
            now_us = self.wall_clock.now_us()
            self.termination = Termination(Outcome(error.outcome), error.reason, now_us, self.elapsed_us())
            self.failure = error
        else:
            self.decide(Outcome.FAILED, CancelReason.LEDGER_UNAVAILABLE.value)
            self.failure = self.failure or error
        if was_running:
            self._signal(CancelReason.LEDGER_UNAVAILABLE)


def _problem_of(done: Future[Recorded]) -> Exception | None:
    """Why a submission was not stored, or None if it was."""
    try:
        error = done.exception()
    except CancelledError as cancelled:
        return cancelled
    return error if error is None or isinstance(error, Exception) else LedgerUnavailable(type(error).__name__)
