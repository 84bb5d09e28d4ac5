"""Cancellations, losses of the ledger, signals and the deadline, in any order, at every wait (SPEC H3, H5, D1, E3)."""

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import CancelReason, HarnessError, ManualClock
from harness.block import run as block
from tests.harness.fakes import HandJournal, harness_over, limits, types

WORKERS = 3
workers = st.integers(0, WORKERS - 1)
weather = st.one_of(
    st.just(("turn",)),
    st.just(("store",)),
    st.tuples(st.just("go on"), workers),
    st.tuples(st.just("go on"), workers),
    st.just(("lose",)),
    st.just(("grant",)),
    st.just(("no room",)),
    st.just(("signal",)),
    st.just(("late",)),
    st.just(("leave",)),
    st.just(("cancel run",)),
    st.tuples(st.just("finish"), workers),
    st.tuples(st.just("cancel"), workers),
)


class Storm:
    """A run with three workers, each with one tool after the other, in a journal that answers when told to."""

    def __init__(self) -> None:
        self.clock, self.journal = ManualClock(), HandJournal()
        self.harness = harness_over(self.journal, self.clock)
        self.may_finish = [asyncio.Event() for _ in range(WORKERS)]
        self.may_leave = asyncio.Event()
        self.workers: list[asyncio.Task[None]] = []
        self.invoked: list[str] = []
        self.run: Any = None

    async def live(self) -> None:
        async with self.harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            self.run = run
            self.workers = [asyncio.create_task(self.work(run, number)) for number in range(WORKERS)]
            await self.may_leave.wait()

    async def work(self, run: Any, number: int) -> None:
        async def tool(run: Any) -> None:
            started = {event.attempt_id for event in self.journal.events("r") if event.type == "attempt.started"}
            assert run.attempt_id in started, "nothing happens without a record"
            assert run.lifecycle.is_running, "nothing begins in a run that has ended"
            self.invoked.append(run.attempt_id)
            await self.may_finish[number].wait()
            self.may_finish[number].clear()

        while True:
            await self.harness.tool(run.branch(f"{number}"), "work", tool)

    def happen(self, what: tuple[Any, ...], living: asyncio.Task[None]) -> None:
        journal = self.journal
        if what[0] == "store" and journal.waiting:
            journal.store()
        elif what[0] == "lose" and journal.waiting:
            journal.lose()
        elif what[0] == "grant" and journal.permits_waiting:
            journal.grant()
        elif what[0] == "no room" and journal.permits_waiting:
            journal.refuse_permit()
        elif what[0] == "signal" and self.run is not None:
            self.run.cancellation.signal(CancelReason.USER_REQUESTED)
        elif what[0] == "late":
            self.clock.advance(60)
        elif what[0] == "leave":
            self.may_leave.set()
        elif what[0] == "cancel run":
            living.cancel()
        elif what[0] == "go on":
            while journal.waiting:
                journal.store()
            while journal.permits_waiting:
                journal.grant()
            self.may_finish[what[1]].set()
        elif what[0] == "finish":
            self.may_finish[what[1]].set()
        elif what[0] == "cancel" and self.workers:
            self.workers[what[1]].cancel()

    async def clear_up(self, living: asyncio.Task[None]) -> None:
        """The ledger is well again, and everyone leaves."""
        self.journal.holds_permits = False
        self.may_leave.set()
        while not living.done():
            while self.journal.permits_waiting:
                self.journal.grant()
            self.journal.store_all()
            await asyncio.sleep(0)
        for event, worker in zip(self.may_finish, self.workers, strict=False):
            worker.cancel()
            event.set()
        await asyncio.gather(*self.workers, return_exceptions=True)


async def weathered(happenings: list[tuple[Any, ...]]) -> None:
    storm = Storm()
    storm.journal.holds = storm.journal.holds_permits = True
    living = asyncio.create_task(storm.live())
    for what in happenings:
        storm.happen(what, living)
        for _ in range(4):
            await asyncio.sleep(0)
    await storm.clear_up(living)
    with contextlib.suppress(asyncio.CancelledError, HarnessError):
        living.result()
    failures = [worker.exception() for worker in storm.workers if not worker.cancelled()]
    assert [error for error in failures if not isinstance(error, HarnessError)] == []
    assert storm.journal.permits_open == 0
    assert len(set(storm.invoked)) == len(storm.invoked)
    events = storm.journal.events("r")
    if events:
        assert types(events).count("run.terminated") == 1
        state = storm.journal.state("r")
        assert state.open_attempts == {}
        ended_well = {event.attempt_id for event in events if event.type == "attempt.succeeded"}
        assert ended_well <= set(storm.invoked)
        never = {event.attempt_id for event in events if getattr(event, "reason", "") == "NOT_INVOKED"}
        assert never.isdisjoint(storm.invoked)
        assert storm.run is None or storm.run.lifecycle.termination.outcome.value == state.outcome


CALM = [("grant",), ("store",)] + [("grant",), ("store",)] * WORKERS
"""Until the run has begun, and each worker is in its first tool."""


@given(st.sampled_from([*range(len(CALM)), *[len(CALM)] * 2 * len(CALM)]), st.lists(weather, max_size=40))
def test_whatever_comes_a_run_ends_once_and_leaves_nothing_taken(calm: int, happenings: list[tuple[Any, ...]]):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(block, "RETRY_PAUSE_S", 0.0)
        asyncio.run(weathered(CALM[:calm] + happenings))
