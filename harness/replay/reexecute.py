"""Runs an agent's code again against the record of a run (SPEC D7): nothing goes out, and everything is compared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from harness.budget.prices import PriceTable
from harness.content import CapturePolicy
from harness.deadline import MAX_TIMEOUT_S
from harness.engine import Engine
from harness.events import AttemptStarted
from harness.journal import Recorded, Submission
from harness.memory_journal import MemoryJournal
from harness.recording import Recording
from harness.replay.clock import RecordedClock, RecordedIds
from harness.replay.director import Director
from harness.replay.harnesses import ReplayHarness, ReplaySyncHarness
from harness.replay.loop import QUIET_S, ReplayLoop
from harness.replay.outcome import Reexecution
from harness.replay.record import Record
from harness.replay.results import Decoders, Errors
from harness.retry import Classifier
from harness.run import Harness
from harness.sync.harness import SyncHarness
from harness.sync.loop_thread import refuse_in_a_loop

Agent = Callable[[Harness], Awaitable[Any]]
"""The code of an agent: it opens its run with the harness that it is given, and works as it did."""
SyncAgent = Callable[[SyncHarness], Any]
"""The same for plain threads."""


def reexecute(
    recording: Recording,
    agent: Agent,
    *,
    decode: Decoders | None = None,
    errors: Errors | None = None,
    prices: PriceTable | None = None,
    capture: CapturePolicy | None = None,
    classifiers: tuple[Classifier, ...] = (),
    quiet_s: float = QUIET_S,
) -> Reexecution:
    """Whether the code does what the record says, or the first boundary at which it does something else.

    No operation is called: what it returned comes from the record, through `decode`, by the operation's name or kind;
    what it raised through `errors`, by the name of the exception's class. What lies inside an operation is taken over
    with it. `prices`, `capture` and `classifiers` are those of the harness that recorded the run. `quiet_s` is how long
    a loop in which nothing can go on is given to be woken from elsewhere. It blocks, and raises `RunningLoop` on the
    thread of a running loop, where `asyncio.to_thread` helps.
    """
    replay = _Replay(recording, decode, errors, quiet_s)
    engine = replay.engine(prices=prices, capture=capture, classifiers=classifiers)
    return replay.run(lambda: asyncio.create_task(_awaited(agent(ReplayHarness(engine, replay.director)))))


def reexecute_sync(
    recording: Recording,
    agent: SyncAgent,
    *,
    decode: Decoders | None = None,
    errors: Errors | None = None,
    prices: PriceTable | None = None,
    capture: CapturePolicy | None = None,
    classifiers: tuple[Classifier, ...] = (),
    quiet_s: float = QUIET_S,
) -> Reexecution:
    """As `reexecute`, for code that uses a `SyncHarness`: it runs on a thread, which waits as it did.

    Further threads of its own are given `quiet_s` to come to a boundary when nothing else can go on.
    """
    replay = _Replay(recording, decode, errors, quiet_s)
    engine = replay.engine(prices=prices, capture=capture, classifiers=classifiers)
    harness = ReplaySyncHarness(engine, replay.director, replay.loop)
    return replay.run(lambda: replay.loop.run_in_executor(None, agent, harness))


class _Replay:
    """One re-execution, from its parts to its outcome."""

    def __init__(self, recording: Recording, decode: Decoders | None, errors: Errors | None, quiet_s: float) -> None:
        refuse_in_a_loop()
        self.director = Director(Record(recording), decode=decode or {}, errors=errors or {})
        self.loop = ReplayLoop(self.director, quiet_s)

    def engine(
        self, *, prices: PriceTable | None, capture: CapturePolicy | None, classifiers: tuple[Classifier, ...]
    ) -> Engine:
        """An engine whose journal, clocks, ids and script are the record's."""
        director = self.director
        clock = RecordedClock(director.record, director.deadlines, director.may_come)
        return Engine(
            _Journal(director),
            monotonic_clock=clock,
            wall_clock=clock,
            ids=RecordedIds(director.record.recording.started.run_id),
            prices=prices,
            capture=capture or CapturePolicy(),
            classifiers=(director.given.tell, *classifiers),
            sleep=_no_pause,
            observers=(director.hold,),
            hook_timeout_s=MAX_TIMEOUT_S,
            script=director,
        )

    def run(self, start: Callable[[], asyncio.Future[Any]]) -> Reexecution:
        """The outcome, once there is a verdict and the code has stopped."""
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            try:
                root = runner.run(self._lead(start))
            finally:
                # What stands in for operations ends as the record says until then, whoever cancels it.
                self.director.is_over = True
            return _outcome(self.director, root)

    async def _lead(self, start: Callable[[], asyncio.Future[Any]]) -> asyncio.Future[Any]:
        self.director.over = asyncio.get_running_loop().create_future()
        root = self.director.outside.root = start()
        await self.director.over
        return root


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def _no_pause(delay_s: float) -> None:
    """The next attempt waits for its turn in the record anyway."""
    await asyncio.sleep(0)


def _outcome(director: Director, root: asyncio.Future[Any]) -> Reexecution:
    record, is_done = director.record, root.done() and not root.cancelled()
    error = root.exception() if is_done else None
    ambiguous = (event for event in record.events if isinstance(event, AttemptStarted) and event.ambiguous)
    return Reexecution(
        run_id=record.recording.started.run_id,
        divergence=director.divergence,
        unavailable=director.unavailable,
        event_count=len(record.events),
        crossed_count=record.crossed_count - director.inside_count,
        inside_count=director.inside_count,
        others_count=record.others_count,
        uncompared=tuple(director.compared.uncompared),
        ambiguous=tuple(event.boundary for event in ambiguous),
        is_cut=record.is_cut,
        result=root.result() if is_done and error is None else None,
        error=error,
    )


class _Journal(MemoryJournal):
    """Compares what it is given, and keeps nothing."""

    def __init__(self, director: Director) -> None:
        super().__init__()
        self._director = director

    def submit(self, submission: Submission) -> Future[Recorded]:
        self._director.submitted(submission)
        stored: Future[Recorded] = Future()
        stored.set_result(Recorded(1, 1, bytes(32)))
        return stored

    def watch(self, run_id: str, on_request: Callable[[str], object]) -> Callable[[], None]:
        return lambda: None
