"""Runs an agent's code again against the record of a run (SPEC D7): nothing goes out, and everything is compared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from harness.block.run import RunBlock
from harness.budget.prices import PriceTable
from harness.calls import Calls
from harness.content import CapturePolicy
from harness.context import RunContext
from harness.deadline import MAX_TIMEOUT_S
from harness.engine import Engine
from harness.errors import RunningLoop
from harness.events import AttemptStarted
from harness.journal import Recorded, Submission
from harness.memory_journal import MemoryJournal
from harness.recording import Recording
from harness.replay.clock import RecordedClock, RecordedIds
from harness.replay.director import Director
from harness.replay.loop import QUIET_S, ReplayLoop
from harness.replay.outcome import Reexecution
from harness.replay.record import Record
from harness.replay.results import Decoders, Errors
from harness.retry import Classifier
from harness.run import Harness

Agent = Callable[[Harness], Awaitable[Any]]
"""The code of an agent: it opens its run with the harness that it is given, and works as it did."""


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
    with it.
    `prices`, `capture` and `classifiers` are those of the harness that recorded the run. `quiet_s` is how long a loop
    in which nothing can go on is given to be woken from elsewhere. It blocks, and raises `RunningLoop` on the thread of
    a running loop, where `asyncio.to_thread` helps.
    """
    _refuse_in_a_loop()
    record = Record(recording)
    director = Director(record, decode=decode or {}, errors=errors or {})
    loop = ReplayLoop(director, quiet_s)
    clock = RecordedClock(record)
    engine = Engine(
        _Journal(director),
        monotonic_clock=clock,
        wall_clock=clock,
        ids=RecordedIds(recording.started.run_id),
        prices=prices,
        capture=capture or CapturePolicy(),
        classifiers=(director.given.tell, *classifiers),
        sleep=_no_pause,
        observers=(director.hold,),
        hook_timeout_s=MAX_TIMEOUT_S,
        script=director,
    )
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            root = runner.run(_lead(director, agent, _ReplayHarness(engine, director)))
        finally:
            # What stands in for operations ends as the record says until then, whoever cancels it.
            director.is_over = True
        return _outcome(director, root)


async def _lead(director: Director, agent: Agent, harness: Harness) -> asyncio.Task[Any]:
    director.over = asyncio.get_running_loop().create_future()
    root = director.outside.root = asyncio.ensure_future(_awaited(agent(harness)))
    await director.over
    return root


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def _no_pause(delay_s: float) -> None:
    """The next attempt waits for its turn in the record anyway."""
    await asyncio.sleep(0)


def _outcome(director: Director, root: asyncio.Task[Any]) -> Reexecution:
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


class _ReplayHarness(Harness):
    """Everything is as in any harness, but for the engine."""

    def __init__(self, engine: Engine, director: Director) -> None:
        Calls.__init__(self, engine)
        self._director = director

    def run(self, **fields: Any) -> RunBlock:
        return _ReplayBlock(self._engine, super().run(**fields)._opening, self._director)


class _ReplayBlock(RunBlock):
    def __init__(self, engine: Engine, opening: Any, director: Director) -> None:
        super().__init__(engine, opening)
        self._director = director

    async def __aenter__(self) -> RunContext:
        run = await super().__aenter__()
        self._director.opened(run.live)
        return run


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


def _refuse_in_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RunningLoop
