"""Whatever is done with a ledger, and whenever its process is killed, it holds what a simple model says (E1-E8)."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from harness.errors import AlreadyTerminated, IllegalEvent
from harness.journal import Recorded, Submission
from ledger import AppendConflict, EventIdReused
from ledger.bytes import body_of
from ledger.failpoints import Point
from tests.examples import SOAK, examples
from tests.faults.processes import links_of_all
from tests.faults.served import Refusal, ServedLedger
from tests.ledger.blank import blank_at
from tests.ledger.scripted import Attempt, ScriptedRun

MOMENTS: tuple[Point | None, ...] = (None, "before begin", "between rows", "before commit", "after commit")
numbers = st.integers(0, 50)
ORDER_WITHIN_S = 20.0
"""In a database the public order is given a moment later."""
pytestmark = pytest.mark.timeout(180 * SOAK)


@dataclass
class Taken:
    """An append that was acknowledged, with its position."""

    submission: Submission
    first_seq: int
    last_seq: int


@dataclass
class ModelRun:
    """What a run must be."""

    script: ScriptedRun
    bodies: list[bytes] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    open: list[Attempt] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)
    is_over: bool = False
    is_cancelled: bool = False
    has_case: bool = False

    @property
    def keys(self) -> tuple[str, str]:
        return self.script.session_id, self.script.run_id

    def take(self, submission: Submission) -> None:
        first_seq = len(self.bodies) + 1
        self.bodies += map(body_of, submission.events)
        self.taken.append(Taken(submission, first_seq, len(self.bodies)))


class LedgerMachine(RuleBasedStateMachine):
    """One ledger in a process of its own; a process that ends is followed by another."""

    url: str
    opening: ClassVar[dict[str, Any]] = {}
    moments: tuple[Point | None, ...] = MOMENTS

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[ModelRun] = []
        self.followed: list[tuple[int, str, int]] = []

    @initialize()
    def open(self) -> None:
        self.make()
        self.ledger = ServedLedger(self.url, **self.opening)

    def make(self) -> None:
        """An empty ledger."""
        raise NotImplementedError

    @precondition(lambda self: len(self.runs) < 8)
    @rule(session=st.integers(0, 1))
    def begin(self, session: int) -> None:
        number = len(self.runs)
        run = ModelRun(ScriptedRun(f"run-{number}", f"session-{session}", writer_id=f"w{number}"))
        self.runs.append(run)
        self._append(run, run.script.start())

    @precondition(lambda self: self.runs)
    @rule(pick=numbers, words=st.integers(0, 3))
    def start_a_tool(self, pick: int, words: int) -> None:
        run = self._picked(pick)
        attempt, text = run.script.attempt(), f"<<words {words} of {run.script.run_id}>>"
        if self._append(run, attempt.start(text)):
            run.open.append(attempt)
            run.given.append(text)

    @precondition(lambda self: any(run.open for run in self.runs))
    @rule(pick=numbers)
    def end_a_tool(self, pick: int) -> None:
        busy = [run for run in self.runs if run.open]
        run = busy[pick % len(busy)]
        self._append(run, run.open.pop(0).succeed(f"result {pick}"))

    @precondition(lambda self: self.runs)
    @rule(pick=numbers)
    def go_to_a_node(self, pick: int) -> None:
        run = self._picked(pick)
        self._append(run, run.script.transition(f"node-{pick % 3}"))

    @precondition(lambda self: any(not run.open and not run.is_over for run in self.runs))
    @rule(pick=numbers)
    def end(self, pick: int) -> None:
        idle = [run for run in self.runs if not run.open and not run.is_over]
        run = idle[pick % len(idle)]
        if self._append(run, run.script.end()):
            run.is_over = True

    @precondition(lambda self: self.runs)
    @rule(pick=numbers, off=st.sampled_from((0, 0, 0, -1, 2)))
    def request_cancellation_where_it_is_expected(self, pick: int, off: int) -> None:
        run = self._picked(pick)
        submission, found = run.script.request_cancellation(), len(run.bodies)
        expected = max(0, found + off)
        answer = self.ledger.submit(submission, expected)
        if expected != found:
            assert isinstance(answer, Refusal)
            assert answer.code == AppendConflict.code
            assert (answer.facts["seq_expected"], answer.facts["seq_found"]) == (expected, found)
        elif self._is_taken(run, submission, answer):
            run.is_cancelled = True

    @precondition(lambda self: any(run.taken for run in self.runs))
    @rule(pick=numbers, which=numbers, is_changed=st.booleans())
    def append_again(self, pick: int, which: int, is_changed: bool) -> None:
        known = [run for run in self.runs if run.taken]
        run = known[pick % len(known)]
        taken = run.taken[which % len(run.taken)]
        if not is_changed:
            recorded = self.ledger.submit(taken.submission)
            assert isinstance(recorded, Recorded)
            assert (recorded.first_seq, recorded.last_seq) == (taken.first_seq, taken.last_seq)
            return
        first, *rest = taken.submission.events
        other = first.model_copy(update={"occurred_us": first.occurred_us + 1})
        answer = self.ledger.submit(taken.submission._replace(events=(other, *rest)))
        assert isinstance(answer, Refusal)
        assert answer.code == EventIdReused.code

    @precondition(lambda self: any(run.taken for run in self.runs))
    @rule(pick=numbers, useful=st.booleans())
    def annotate(self, pick: int, useful: bool) -> None:
        known = [run for run in self.runs if run.taken]
        run = known[pick % len(known)]
        self.ledger.do("record_feedback", *run.keys, useful=useful)
        said = ["feedback.recorded"]
        if useful and not run.has_case:
            run.has_case = True
            said.append("case.recorded")
        assert self._news(run) == said

    @precondition(lambda self: any(run.given for run in self.runs))
    @rule(pick=numbers)
    def erase(self, pick: int) -> None:
        told = [run for run in self.runs if run.given]
        run = told[pick % len(told)]
        self.ledger.do("erase", run=run.keys)
        run.erased.update(run.given)
        assert set(self._news(run)) <= {"content.erased"}

    @rule()
    def rebuild(self) -> None:
        assert self.ledger.do("rebuild").is_clean

    @rule()
    def recover(self) -> None:
        assert self.ledger.do("recover").ended == ()

    @rule()
    def follow(self) -> None:
        seen = self.ledger.follow(self.followed[-1][0] if self.followed else -1)
        self.followed += seen
        places = [leaf for leaf, *_ in self.followed]
        assert places == list(range(len(places)))

    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self._open_again()

    @precondition(lambda self: any(not run.is_over for run in self.runs))
    @rule(pick=numbers, moment=numbers, is_end=st.booleans())
    def die(self, pick: int, moment: int, is_end: bool) -> None:
        """Of what was under way at the death, nothing is known but that all of it is there, or nothing."""
        alive = [run for run in self.runs if not run.is_over]
        run = alive[pick % len(alive)]
        ends = is_end and not run.open
        submission = run.script.end() if ends else run.script.transition("node-0")
        self.ledger.submit_and_die(submission, self.moments[moment % len(self.moments)])
        self._open_again(run, submission, ends)

    def teardown(self) -> None:
        try:
            self._check_all()
        finally:
            self.ledger.kill()
            self.throw_away()

    def throw_away(self) -> None:
        """Remove the ledger."""

    def check_file(self) -> None:
        """Look at it without any code of the ledger's."""

    def _picked(self, pick: int) -> ModelRun:
        """Mostly one that goes on, if any does."""
        alive = [run for run in self.runs if not run.is_over]
        chosen = alive if alive and pick % 5 else self.runs
        return chosen[pick // 5 % len(chosen)]

    def _append(self, run: ModelRun, submission: Submission) -> bool:
        return self._is_taken(run, submission, self.ledger.submit(submission))

    def _is_taken(self, run: ModelRun, submission: Submission, answer: Recorded | Refusal) -> bool:
        """Whether it was, which it is unless the run is over."""
        if run.is_over:
            assert isinstance(answer, Refusal)
            assert answer.code in (AlreadyTerminated.code, IllegalEvent.code)
            return False
        run.take(submission)
        assert isinstance(answer, Recorded)
        assert (answer.first_seq, answer.last_seq) == (run.taken[-1].first_seq, run.taken[-1].last_seq)
        return True

    def _news(self, run: ModelRun) -> list[str]:
        """The types of what the ledger itself has added; everything before is as it was."""
        stored = self.ledger.bodies(*run.keys)
        assert [seq for seq, _ in stored] == list(range(1, len(stored) + 1))
        bodies = [body for _, body in stored]
        assert bodies[: len(run.bodies)] == run.bodies
        news = bodies[len(run.bodies) :]
        run.bodies = bodies
        return [orjson.loads(body)["type"] for body in news]

    def _open_again(self, dying: ModelRun | None = None, last: Submission | None = None, ends: bool = False) -> None:
        """Another process opens the ledger; it ends what was open, once, and knows what of the last append is there."""
        self.ledger = ServedLedger(self.url, **self.opening)
        self.ledger.do("recover")
        for run in self.runs:
            is_stored = False
            if run is dying and last is not None:
                stored = [body for _, body in self.ledger.bodies(*run.keys)]
                is_stored = body_of(last.events[0]) in stored
                if is_stored:
                    run.take(last)
                    run.is_over = ends
            if run.is_over:
                assert self._news(run) == []
            else:
                assert self._news(run) == ["attempt.abandoned"] * len(run.open) + ["run.terminated"]
                outcome = orjson.loads(run.bodies[-1])["outcome"]
                assert outcome == ("CANCELLED" if run.is_cancelled else "FAILED")
                run.is_over = True
            run.open.clear()

    def _check_all(self) -> None:
        for run in self.runs:
            assert self._news(run) == []
            # The scripts have one salt for ever: what recurs is the same content, and stays erased.
            expected = [None if text in run.erased else text for text in run.given]
            assert self.ledger.texts(*run.keys) == expected
        self._check_followed()
        self.rebuild()
        self.ledger.close()
        self.check_file()

    def _check_followed(self) -> None:
        expected = sum(len(run.bodies) for run in self.runs)
        until_s = time.monotonic() + ORDER_WITHIN_S
        while sum(stream_id.startswith("r:") for _, stream_id, _ in self.followed) < expected:
            assert time.monotonic() < until_s, "what is stored has no place in the public order"
            self.follow()
        streams: dict[str, list[int]] = {}
        for _, stream_id, seq in self.followed:
            streams.setdefault(stream_id, []).append(seq)
        assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in streams.values())
        assert all(len(streams[f"r:{run.script.run_id}"]) == len(run.bodies) for run in self.runs)


class SqliteMachine(LedgerMachine):
    def make(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.url = str(blank_at(self.folder / "runs.db"))

    def check_file(self) -> None:
        links = links_of_all(Path(self.url))
        assert all(len(links[f"r:{run.script.run_id}"]) == len(run.bodies) for run in self.runs)
        assert sorted(file.name for file in self.folder.iterdir()) == ["runs.db", "runs.db.lock"]

    def throw_away(self) -> None:
        shutil.rmtree(self.folder)


def test_a_ledger_in_a_file_is_what_the_model_says_whatever_happens_to_its_processes():  # CASES 30, 31, 39, 44, 45
    run_state_machine_as_test(SqliteMachine, settings=settings(examples(14), stateful_step_count=30))


def test_a_ledger_in_a_database_is_what_the_model_says_whatever_happens_to_its_processes(
    postgres_server, postgres_template
):  # CASES 30, 31, 39, 44, 45
    class PostgresMachine(LedgerMachine):
        opening: ClassVar[dict[str, Any]] = {"lease_s": 0.3}
        moments = (None,)

        def make(self) -> None:
            self.database = postgres_server.create_database(template=postgres_template)
            self.url = postgres_server.url(self.database)

        def throw_away(self) -> None:
            postgres_server.drop_database(self.database)

    run_state_machine_as_test(PostgresMachine, settings=settings(examples(3), stateful_step_count=20))
