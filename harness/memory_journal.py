"""A journal in memory: for tests, and for programs that want limits but no database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from harness.content import SealedContent
from harness.errors import AlreadyTerminated, IllegalEvent, LedgerUnavailable
from harness.events import ACCEPTED_AFTER_TERMINATION, Event
from harness.journal import Permit, Recorded, Submission
from harness.promise import Promise
from harness.state import RUNNING, RunState, evolve_all


class _Unbounded:
    def release(self) -> None:
        """Memory has room for as long as the process lives."""


class MemoryJournal:
    """Keeps every event and content of every run, checked by the same fold as a ledger's; nothing is durable.

    `fail_with` makes every submission fail until it is None again, as a ledger whose disk is full would.
    """

    def __init__(self) -> None:
        self.fail_with: LedgerUnavailable | None = None
        self.contents: dict[str, SealedContent] = {}
        self._permit: Future[Permit] = Promise.kept(_Unbounded())
        # A collection may come while this thread has it, and end another run.
        self._lock = threading.RLock()
        self._events: dict[str, list[Event]] = {}
        self._states: dict[str, RunState] = {}
        self._broken: set[str] = set()
        self._watches: dict[object, tuple[str, Callable[[str], object]]] = {}

    def events(self, run_id: str) -> list[Event]:
        """The run's events so far, in order."""
        with self._lock:
            return list(self._events.get(run_id, ()))

    def state(self, run_id: str) -> RunState:
        """The fold of the run's events so far; `KeyError` for an unknown run."""
        with self._lock:
            return self._states[run_id]

    def request_permit(self, timeout_s: float) -> Future[Permit]:
        return self._permit

    def submit(self, submission: Submission) -> Future[Recorded]:
        try:
            recorded, state = self._store(submission)
        except (LedgerUnavailable, AlreadyTerminated, IllegalEvent) as error:
            failed: Future[Recorded] = Promise()
            failed.set_exception(error)
            return failed
        if state.cancel_requested is not None:
            self._tell(submission.run_id)
        return Promise.kept(recorded)

    def watch(self, run_id: str, on_request: Callable[[str], object]) -> Callable[[], None]:
        key = object()
        with self._lock:
            self._watches[key] = run_id, on_request
        self._tell(run_id)

        def end() -> None:
            with self._lock:
                self._watches.pop(key, None)

        return end

    def _tell(self, run_id: str) -> None:
        """Pass on a request for a cancellation, to each who watches the run once."""
        with self._lock:
            state = self._states.get(run_id)
            if state is None or state.cancel_requested is None:
                return
            watches = list(self._watches.items())
            keys = [key for key, (watched_id, _) in watches if watched_id == run_id]
            told = [watch[1] for key in keys if (watch := self._watches.pop(key, None)) is not None]
        for on_request in told:
            on_request(state.cancel_requested)

    def _store(self, submission: Submission) -> tuple[Recorded, RunState]:
        """Where the events are, and what their run adds up to."""
        run_id = submission.run_id
        with self._lock:
            if self.fail_with is not None:
                self._broken.add(run_id)
                raise self.fail_with
            if run_id in self._broken and not submission.resumes:
                raise LedgerUnavailable("an earlier submission of this run was not stored")
            state = self._states.get(run_id)
            if state is not None and state.outcome != RUNNING and not _is_late(submission):
                raise AlreadyTerminated(run_id, outcome=state.outcome, reason=state.reason or state.outcome)
            state = evolve_all(state, submission.events)
            self._broken.discard(run_id)
            self._states[run_id] = state
            stored = self._events.setdefault(run_id, [])
            stored.extend(submission.events)
            for content in submission.contents:
                self.contents[content.digest] = content
            last_seq = len(stored)
            # Nobody can change the past in here, so the place of an event is link enough.
            return Recorded(last_seq - len(submission.events) + 1, last_seq, last_seq.to_bytes(32)), state


def _is_late(submission: Submission) -> bool:
    """Whether an ended run still takes it."""
    return all(event.type in ACCEPTED_AFTER_TERMINATION for event in submission.events)
