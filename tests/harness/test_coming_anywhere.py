"""A signal handler or a garbage collection may come in the middle of a decision, and must not take another there."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from harness import CancelReason, Harness, MemoryJournal, RunContext, RunEnded
from harness.state import RunState, begin, evolve
from tests.harness.fakes import HandJournal, harness_over, limits, say, types, until

STEP = 7
"""Calls within the harness between one moment that is tried and the next."""


class Comes:
    """Something that comes once, at the call numbered `at` within the harness."""

    def __init__(self, at: int, action: Callable[[], object]) -> None:
        self.came = False
        self._left = at
        self._action = action

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and f"{os.sep}harness{os.sep}" in frame.f_code.co_filename:
            self._left -= 1
            if self._left == 0:
                sys.setprofile(None)
                self.came = True
                self._action()


def folded(journal: MemoryJournal, run_id: str) -> RunState:
    first, *others = journal.events(run_id)
    state = begin(first)
    for event in others:
        state = evolve(state, event)
    return state


async def work(harness: Harness, run: RunContext) -> None:
    await harness.tool(run, "say", say, args={"a": 1})
    with harness.scope(run, "inner", timeout_s=5) as inner:
        await harness.tool(inner, "say", say, args={"a": 2})
    harness.answer(run, "done")


def is_signalled(at: int) -> bool:
    """The program with a signal handler that comes at that call; whether it came that far."""
    journal = MemoryJournal()
    runs: list[RunContext] = []
    comes = Comes(at, lambda: runs[0].cancellation.signal(CancelReason.SHUTDOWN))

    async def main() -> None:
        harness = harness_over(journal, close_timeout_s=0.1)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            runs.append(run)
            sys.setprofile(comes)
            try:
                await work(harness, run)
            finally:
                sys.setprofile(None)

    with contextlib.suppress(RunEnded):
        asyncio.run(main())
    events = journal.events("r")
    assert len({event.event_id for event in events}) == len(events)
    assert types(events).count("run.terminated") == 1
    assert folded(journal, "r") == runs[0].live.state
    assert (runs[0].cancellation.reason is CancelReason.SHUTDOWN) == comes.came
    return comes.came


def test_a_signal_handler_may_stop_its_run_at_any_moment():  # H3, H5
    at = 1
    while is_signalled(at):
        at += STEP
    assert at > 100


def is_collected(at: int) -> bool:
    """The same, with a collection at that call, which throws another run away."""
    journal = HandJournal()
    runs: list[RunContext] = []
    dropped: list[Any] = []

    def collect() -> None:
        dropped.clear()
        gc.collect()

    comes = Comes(at, collect)

    async def other(harness: Harness) -> None:
        async with harness.run(session_id="s", run_id="other", limits=limits(), timeout_s=60):
            await asyncio.get_running_loop().create_future()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        harness = harness_over(journal, close_timeout_s=0.1)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            runs.append(run)
            dropped.append(asyncio.ensure_future(other(harness)))
            await until(lambda: journal.events("other"))
            await asyncio.sleep(0)
            sys.setprofile(comes)
            try:
                await work(harness, run)
            finally:
                sys.setprofile(None)
                dropped.clear()
                gc.collect()

    asyncio.run(main())
    for run_id in ("r", "other"):
        assert types(journal.events(run_id)).count("run.terminated") == 1
        assert folded(journal, run_id) == journal.state(run_id)
    assert folded(journal, "r") == runs[0].live.state
    assert journal.permits_open == 0
    return comes.came


def test_a_collection_may_throw_another_run_away_at_any_moment():  # H5
    at = 1
    gc.freeze()  # What was there before need not be looked at each time.
    try:
        while is_collected(at):
            at += STEP
    finally:
        gc.unfreeze()
    assert at > 100
