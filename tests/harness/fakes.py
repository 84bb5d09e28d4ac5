"""What the harness's tests stand on: ids that count, a journal that answers when told to, and threads that race."""

import asyncio
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from harness import Harness, Limits, ManualClock, MemoryJournal, SyncHarness
from harness.concurrency.threads import ToolThreads
from harness.errors import AlreadyTerminated, HarnessError, LedgerUnavailable
from harness.events import Event
from harness.journal import Permit, Recorded, Submission

T = TypeVar("T")
B = TypeVar("B", bound=BaseException)

PLENTY: dict[str, Any] = {
    "model_calls": 100,
    "tool_calls": 100,
    "input_tokens": 100_000,
    "output_tokens": 100_000,
    "total_tokens": 200_000,
    "run_bytes": 1_000_000,
    "per_tool_default": 100,
}
LOST = LedgerUnavailable("the disk is full")


def limits(**changed: Any) -> Limits:
    """Limits that no test reaches but by those it changes."""
    return Limits(**(PLENTY | changed))


class CountingIds:
    """Ids that count up, so that two runs with the same steps have the same events."""

    def __init__(self, fraction: float = 0.0) -> None:
        self._count = 0
        self._fraction = fraction

    def run_id(self) -> str:
        self._count += 1
        return f"run-{self._count}"

    def writer_id(self) -> str:
        self._count += 1
        return f"w{self._count}"

    def salt(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(32, "big")

    def fraction(self) -> float:
        return self._fraction


class CountedPermit:
    def __init__(self, journal: "HandJournal") -> None:
        self._journal = journal
        self._is_open = True

    def release(self) -> None:
        with self._journal.condition:
            self._journal.permits_open -= self._is_open
            self._is_open = False


class HandJournal(MemoryJournal):
    """A journal in memory that counts its permits, and, while it holds, answers only when the test says so.

    Answers come from a thread of their own, as a ledger's do.
    """

    def __init__(self) -> None:
        super().__init__()
        self.condition = threading.Condition(threading.RLock())
        self.holds = False
        self.holds_permits = False
        self.waiting: deque[tuple[Submission, Future[Recorded]]] = deque()
        self.permits_waiting: deque[Future[Permit]] = deque()
        self.permits_open = 0
        self.refuses_with: ValueError | None = None
        self.submissions: list[Submission] = []

    def events(self, run_id: str) -> list[Any]:
        """The run's events so far; a test knows of which type each is."""
        return list(super().events(run_id))

    def request_permit(self, timeout_s: float) -> Future[Permit]:
        future: Future[Permit] = Future()
        with self.condition:
            if self.holds_permits:
                self.permits_waiting.append(future)
                return future
            self.permits_open += 1
        future.set_result(CountedPermit(self))
        return future

    def grant(self) -> None:
        """Give the permit that was asked for first, if it is still wanted."""
        with self.condition:
            future = self.permits_waiting.popleft()
            self.permits_open += 1
        on_thread(lambda: future.set_result(CountedPermit(self)))

    def refuse_permit(self) -> None:
        future = self.permits_waiting.popleft()
        on_thread(lambda: future.set_exception(LedgerUnavailable("no room in the queue")))

    def submit(self, submission: Submission) -> Future[Recorded]:
        if self.refuses_with is not None:
            raise self.refuses_with
        with self.condition:
            self.submissions.append(submission)
            if not self.holds and not self.waiting:
                return super().submit(submission)
            future: Future[Recorded] = Future()
            self.waiting.append((submission, future))
            return future

    def store(self) -> None:
        """Store the submission that has waited longest."""
        with self.condition:
            submission, future = self.waiting.popleft()
            stored = super().submit(submission)
        on_thread(lambda: _copy(stored, future))

    def store_all(self) -> None:
        """Store everything, and hold nothing any more."""
        self.holds = False
        while self.waiting:
            self.store()

    def lose(self, error: LedgerUnavailable = LOST) -> None:
        """Fail the submission that has waited longest; nothing of it is stored."""
        self.fail_with = error
        self.store()
        self.fail_with = None

    def end_elsewhere(self, run_id: str, outcome: str, reason: str) -> None:
        """Answer what has waited longest, and all later submissions, as if someone else had ended the run."""
        _, future = self.waiting.popleft()
        ended = AlreadyTerminated(run_id, outcome=outcome, reason=reason)
        on_thread(lambda: future.set_exception(ended))
        self.answer_all_with(ended)

    def answer_all_with(self, error: HarnessError) -> None:
        def refuse(submission: Submission) -> Future[Recorded]:
            future: Future[Recorded] = Future()
            future.set_exception(error)
            return future

        self.submit = refuse  # type: ignore[method-assign]


def _copy(done: Future[Recorded], future: Future[Recorded]) -> None:
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(error)


def on_thread(action: Callable[[], T]) -> T:
    """Do `action` on another thread, and wait for it."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(action()))
    thread.start()
    thread.join(timeout=30)
    return results[0]


def race(actions: Iterable[Callable[[], T]]) -> list[T | Exception]:
    """Do all actions at the same moment, each on its own thread; their results or exceptions, in order."""
    todo = list(actions)
    barrier = threading.Barrier(len(todo))
    results: list[Any] = [None] * len(todo)

    def act(index: int) -> None:
        barrier.wait(timeout=30)
        try:
            results[index] = todo[index]()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[index] = error

    threads = [threading.Thread(target=act, args=(index,)) for index in range(len(todo))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return results


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until the condition holds."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.0002)


def harness_over(journal: MemoryJournal, clock: ManualClock | None = None, **settings: Any) -> Harness:
    """A harness on a clock that is moved by hand, with ids that count."""
    return Harness(journal, **(_fakes(clock or ManualClock()) | settings))


def sync_over(journal: MemoryJournal, **settings: Any) -> SyncHarness:
    """The same for plain threads."""
    return SyncHarness(journal, **(_fakes(ManualClock()) | settings))


def _fakes(clock: ManualClock) -> dict[str, Any]:
    threads = ToolThreads(idle_s=0.0)
    return {"monotonic_clock": clock, "wall_clock": clock, "ids": CountingIds(), "threads": threads}


def harness_in_real_time(journal: MemoryJournal) -> Harness:
    return Harness(journal, threads=ToolThreads(idle_s=0.0))


def left_with(kind: type[B] | tuple[type[B], ...], match: str | None = None) -> pytest.RaisesExc[B]:
    """`pytest.raises` for a whole block: what leaves it is the claim, whichever of its lines began it."""
    return pytest.raises(kind, match=match)


def shown(value: object) -> str:
    """A parameter as a part of its test's name, which is the same in every process: without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def types(events: Iterable[Event]) -> list[str]:
    return [event.type for event in events]


def only(events: Iterable[Event], event_type: str) -> Any:
    """The one event of this type."""
    (found,) = [event for event in events if event.type == event_type]
    return found


def each(events: Iterable[Event], event_type: str) -> list[Any]:
    return [event for event in events if event.type == event_type]


@dataclass(frozen=True)
class Reply:
    """A model's reply that reports usage, and nothing else."""

    usage: Any


async def say(run: object, **args: object) -> dict[str, object]:
    """An asynchronous operation that returns what it is given."""
    return args


def say_on_thread(run: object, **args: object) -> dict[str, object]:
    """A synchronous operation that returns what it is given."""
    return args


async def fail(run: object, **args: object) -> None:
    raise ValueError("no such index")
