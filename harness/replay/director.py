"""Leads a re-execution: one thing at a time is let go on, in the order of the record, when nothing else can.

A boundary that asks to be let through waits until the record has come to it; what an operation gave is given once
every event before its end was crossed again; what came from outside comes where it is recorded. Whatever else the code
does is its own, and compared as it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness import events as e
from harness.boundary.attempt import Attempt
from harness.content import Content
from harness.hooks.observers import Observed
from harness.hooks.policies import Decision
from harness.journal import Submission
from harness.live.run import LiveRun
from harness.replay.attempt import ReplayedAttempt
from harness.replay.begun import Begun
from harness.replay.comparing import ANSWER, Compared, kind_of
from harness.replay.deadlines import Deadlines
from harness.replay.given import Given, NotOnRecord
from harness.replay.holding import Holding
from harness.replay.outcome import Divergence, Kind, Unavailable
from harness.replay.outside import Outside
from harness.replay.record import ENDS, STARTS, STATEMENTS, Record, boundary_of
from harness.replay.results import Decoders, Errors, usage_of

PATIENCE_S = 60.0
"""How much time is skipped between two events at least, if the run had less time than that."""


class Director:
    """The script, the stage and the prompter of one re-execution."""

    def __init__(self, record: Record, *, decode: Decoders, errors: Errors) -> None:
        self.record = record
        self.outside = Outside(record)
        self.deadlines = Deadlines(record)
        self.given = Given(record, decode, errors)
        self.compared = Compared(record.recording)
        self.divergence: Divergence | None = None
        self.unavailable: Unavailable | None = None
        self.inside_count = 0
        self.is_over = False
        self.over: asyncio.Future[None] | None = None
        """Done once there is a verdict."""
        self._live: LiveRun | None = None
        self._gates: dict[str, asyncio.Future[None]] = {}
        self._attempts: dict[str, ReplayedAttempt] = {}
        self._begun = Begun(record)
        self._holding = Holding(record)
        self._crossed_count, self._skipped_s = 0, 0.0
        """When something was crossed for the last time, and how much time had been skipped by then."""
        self._taken_over: e.Event | None = None
        """What is being taken over from the record."""

    # What the harness asks (`harness.engine.Script`).

    async def turn(self, boundary: str, given: Mapping[str, Content]) -> None:
        self.compared.given |= {(each, "input_digest"): content for each, content in given.items()}
        gate = self._gates[boundary] = asyncio.get_running_loop().create_future()
        try:
            await gate
        finally:
            self._gates.pop(boundary, None)

    def verdicts(self, boundary: str) -> Sequence[tuple[str, Decision]]:
        decided = self.record.each(e.PolicyDecided, boundary)
        return [(each.policy, Decision(each.allowed, each.reason)) for each in decided]

    def attempt(self, *of: Any) -> Attempt:
        attempt = ReplayedAttempt(self, *of)
        self._attempts[attempt.boundary] = attempt
        return attempt

    async def hold(self, observed: Observed) -> None:
        """As an observer of the harness this is awaited, and cut short by the end of the run."""
        if not self.is_over:
            await self._holding.hold(observed)

    def opened(self, live: LiveRun) -> None:
        """The run has begun again."""
        self._live = live

    # What the attempts ask (`harness.replay.attempt.Stage`).

    def enter(self, attempt: ReplayedAttempt) -> None:
        self._begun.at_work[attempt.boundary] = attempt

    def leave(self, attempt: ReplayedAttempt) -> None:
        self._begun.at_work.pop(attempt.boundary, None)

    def cannot(self, missing: NotOnRecord) -> None:
        self._end(unavailable=missing.unavailable)

    # What the journal tells.

    def submitted(self, submission: Submission) -> None:
        """The harness records: compare, and give what is due right after.

        `RunEnded` for what could not be recorded any more, as its run had been told to stop by then: here the code may
        be a few steps ahead of that.
        """
        if self.is_over or submission.events[0] is self._taken_over:
            return
        if self._is_left_too_late(submission.events[0]):
            return
        self._refuse_if_ended(submission.events[0])
        for content in submission.contents:
            self.compared.note_content(content)
        if self._live is not None and self._live.answer is not None:
            self.compared.given[ANSWER, "answer_digest"] = self._live.answer.content
        pairs = self._paired(submission)
        found = [self._compared(*pair) for pair in pairs]
        diverging = [each for each in found if each is not None]
        if diverging and not self.is_over:
            # What is charged differs because the arguments do.
            by_arguments = (each for each in diverging if each.kind is Kind.ARGUMENTS)
            self._end(divergence=next(by_arguments, diverging[0]))
        if self._live is not None and not self.is_over:
            self.outside.tell_at_once(self._live, self.may_come)

    def _is_left_too_late(self, closed: e.Event) -> bool:
        """Whether a scope was left when the run had been told to stop, so that nothing was recorded of that."""
        return isinstance(closed, e.ScopeClosed) and not self.record.has(closed) and self.record.is_to_be_signalled

    def _refuse_if_ended(self, statement: e.Event) -> None:
        due, live = self.record.due, self._live
        if due is None or live is None or not isinstance(statement, STATEMENTS) or self.record.has(statement):
            return
        if self._is_awaited(due) and self.record.is_last(boundary_of(statement)):
            if boundary_of(statement).startswith("capacity/answer/"):
                live.answer = None
            raise self.outside.ended(live)

    def _is_awaited(self, due: e.Event) -> bool:
        """Whether other code waits for what is due, so that it is not this code that misses it."""
        boundary = boundary_of(due)
        at_gate = any(boundary == at or boundary.startswith(f"{at}/") for at in self._gates)
        return at_gate or boundary in self._begun.at_work or isinstance(due, e.CancellationSignalled)

    def _compared(self, recorded: e.Event, crossed: e.Event) -> Divergence | None:
        differences = self.compared.differences(recorded, crossed)
        if not differences:
            return None
        kind = kind_of(crossed, differences)
        if kind is Kind.ANSWER:
            # Its bytes are charged before it is recorded.
            differences = self.compared.answers(self.record)
        return Divergence(kind, self.record.seq_of(recorded), recorded, crossed, differences)

    def _paired(self, submission: Submission) -> list[tuple[e.Event, e.Event]]:
        pairs: list[tuple[e.Event, e.Event]] = []
        for crossed in submission.events:
            seq, due = self.record.due_seq, self.record.due
            at = self.record.cross(crossed)
            if at is None:
                if not self._is_lost():
                    self._end(divergence=Divergence(Kind.EXTRA, seq, due, crossed))
                return pairs
            pairs.append((self.record.events[at], crossed))
            self.compared.note_ids(*pairs[-1])
            self.deadlines.note(crossed)
            self._begun.note(crossed)
        return pairs

    def _is_lost(self) -> bool:
        """Whether the record has ended before the run: then it is the same as far as it goes."""
        if self.record.due is None and self.record.is_cut:
            self._end()
            return True
        return False

    def may_come(self, due: e.Event) -> bool:
        """Whether what stops work would find everything begun that was begun by then, as it was recorded.

        What was let through waits for its end, but for what was not invoked then either; and an answer was given.
        """
        if isinstance(due, e.ReservationRejected):
            return self.record.is_due_given
        if isinstance(due, e.CancellationSignalled) and self._lacks_answer():
            return False
        return self._begun.is_all_at_work()

    def _lacks_answer(self) -> bool:
        """Whether there is an answer on record that was not given yet."""
        is_missing = self._live is not None and self._live.answer is None
        return is_missing and self.record.only(e.AnswerRecorded, ANSWER) is not None

    # What the loop asks (`harness.replay.loop.Prompter`).

    def act(self) -> bool:
        if self.is_over or self.outside.root is None:
            return False
        due = self.record.due
        if due is None:
            if self.record.is_cut or self.outside.root.done():
                self._end()
            return self.is_over
        acts: tuple[Callable[[e.Event], bool], ...] = (self._tell, self._take_over, self._open_gate, self._give)
        return any(act(due) for act in acts)

    def is_patient(self, skipped_s: float) -> bool:
        patience_s = max(PATIENCE_S, self.record.recording.started.timeout_us / 1e6)
        if self.record.crossed_count != self._crossed_count:
            self._crossed_count, self._skipped_s = self.record.crossed_count, skipped_s
        return skipped_s - self._skipped_s < patience_s

    def be_stuck(self) -> None:
        if self.is_over or self.outside.root is None:
            return
        if any(attempt.give_chunks() for attempt in list(self._begun.at_work.values())):
            return
        if self._holding.release():
            return
        if self._live is not None and self._live.termination is not None and self._gates:
            for gate in self._gates.values():
                gate.set_result(None)
            return
        due, seq, waiting = self.record.due, self.record.due_seq, tuple(self._gates)
        # What came when the run had been told to stop was refused, and is not on record either.
        extra = tuple(at for at in waiting if not self.record.has_start(at) and not self.record.is_last(at))
        if self._is_lost() or due is None:
            self._end()
        elif extra:
            given = self.compared.inputs(extra)
            self._end(divergence=Divergence(Kind.EXTRA, seq, due, None, given, waiting=extra))
        else:
            ended = self.outside.how_ended()
            self._end(divergence=Divergence(Kind.MISSING, seq, due, None, waiting=waiting, ended=ended))

    def _tell(self, due: e.Event) -> bool:
        if isinstance(due, e.CancellationSignalled) and self._lacks_answer() and self._holding.release():
            return True
        return self._live is not None and self.outside.tell(due, self._live)

    def _take_over(self, due: e.Event) -> bool:
        if self._live is None or not self.record.is_inside(due):
            return False
        with self._live.lock:
            self._taken_over = self.compared.drawn_again(due, self._live)
            self.record.cross(due)
            self.inside_count += 1
            self._live.record(self._taken_over, is_awaited=False)
        return True

    def _open_gate(self, due: e.Event) -> bool:
        if not isinstance(due, STARTS):
            return False
        boundary = boundary_of(due)
        for at, gate in self._gates.items():
            if not gate.done() and (boundary == at or boundary.startswith(f"{at}/")):
                self.record.give_due()
                gate.set_result(None)
                return True
        return False

    def _give(self, due: e.Event) -> bool:
        boundary = boundary_of(due)
        attempt = self._begun.at_work.get(boundary)
        if isinstance(due, e.HiddenRetryDetected):
            follows = next(self.record.after_due(), None)
            ends_run = isinstance(follows, e.CancellationSignalled) and follows.reason == "HIDDEN_RETRY"
            known = self._attempts.get(boundary)
            return known is not None and known.request_again(due, ends_run=ends_run)
        if isinstance(due, ENDS):
            if attempt is not None and attempt.give(due):
                self.record.give_due()
                return True
            return False
        if isinstance(due, e.AttemptFinishedLate):
            return self._finish_late(due)
        return False

    def _finish_late(self, due: e.AttemptFinishedLate) -> bool:
        attempt = self._attempts.get(due.boundary)
        if attempt is None:
            return False
        usage = usage_of(self.record.only(e.UsageSettled, due.boundary))
        attempt.finish_late(self.given.late_error(due), usage)
        return True

    def _end(self, *, divergence: Divergence | None = None, unavailable: Unavailable | None = None) -> None:
        """There is a verdict: nothing more is given, and the code is stopped."""
        if self.is_over:
            return
        self.is_over = True
        self.divergence, self.unavailable = divergence, unavailable
        if self.over is not None and not self.over.done():
            self.over.get_loop().call_soon_threadsafe(_complete, self.over)


def _complete(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
