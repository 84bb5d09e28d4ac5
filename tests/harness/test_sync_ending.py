"""A harness for plain threads ends well: interrupted, closed, forgotten, forked, and with its process."""

import asyncio
import contextlib
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness import (
    RunContext,
    RunEnded,
    SyncHarness,
)
from harness.errors import HarnessClosed
from tests.harness.fakes import (
    HandJournal,
    left_with,
    limits,
    only,
    say,
    sync_over,
    types,
)

RUN: dict[str, Any] = {"session_id": "s", "run_id": "r", "limits": limits(), "timeout_s": 60}


@pytest.fixture
def sync(journal: HandJournal) -> Iterator[SyncHarness]:
    with sync_over(journal) as harness:
        yield harness
    assert [thread.name for thread in threading.enumerate() if thread.name == "harness-loop"] == []


def interrupt_main_thread() -> None:
    """What Ctrl-C does: a signal to the main thread, which wakes it even where it waits."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def test_an_interrupted_thread_cancels_what_it_waits_for_and_ends_the_run(journal, sync):
    seen: list[str] = []

    async def work(run: RunContext) -> None:
        interrupt_main_thread()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with left_with(KeyboardInterrupt), sync.run(**RUN) as run:
        try:
            sync.tool(run, work)()
        finally:
            seen.append("let go")
    end = only(journal.events("r"), "run.terminated")
    assert (seen, end.outcome, end.reason) == (["cancelled", "let go"], "CANCELLED", "SHUTDOWN")
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"


def test_an_interrupted_thread_leaves_a_plain_function_to_itself(journal, sync):  # D4
    free = threading.Event()

    def work(run: RunContext) -> None:
        interrupt_main_thread()
        free.wait(30)

    with left_with(KeyboardInterrupt), sync.run(**RUN) as run:
        sync.tool(run, work)()
    free.set()
    assert only(journal.events("r"), "attempt.abandoned").reason == "NOT_AWAITED"
    assert only(journal.events("r"), "run.terminated").reason == "SHUTDOWN"


def test_a_second_interruption_does_not_wait_for_what_will_not_stop(journal):
    free = threading.Event()

    async def stubborn(run: RunContext) -> None:
        interrupt_main_thread()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            interrupt_main_thread()
        while not free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)

    sync = sync_over(journal, drain_timeout_s=0.02)
    with left_with(KeyboardInterrupt), sync.run(**RUN) as run:
        sync.tool(run, stubborn)()
    assert only(journal.events("r"), "attempt.abandoned").reason == "RUN_ENDED"
    assert only(journal.events("r"), "run.terminated").reason == "SHUTDOWN"
    free.set()
    sync.close()


def test_an_interruption_while_the_end_is_recorded_waits_for_it(journal, sync):
    def interrupt() -> None:
        while not journal.waiting:
            pass
        interrupt_main_thread()
        journal.store_all()

    helper = threading.Thread(target=interrupt)
    with left_with(KeyboardInterrupt), sync.run(**RUN):
        journal.holds = True
        helper.start()
    helper.join()
    assert types(journal.events("r")) == ["run.started", "run.terminated"]


def test_an_interruption_while_the_beginning_is_recorded_ends_the_run(journal, sync):
    def interrupt() -> None:
        while not journal.waiting:
            pass
        interrupt_main_thread()
        while len(journal.waiting) < 2:
            pass
        journal.store_all()

    journal.holds = True
    helper = threading.Thread(target=interrupt)
    helper.start()
    with left_with(KeyboardInterrupt), sync.run(**RUN):
        raise AssertionError("the block was entered")
    helper.join()
    assert only(journal.events("r"), "run.terminated").outcome == "CANCELLED"


def test_an_exit_in_the_loop_reaches_who_called_and_leaves_the_loop_to_the_others(sync):
    async def leave(run: RunContext) -> None:
        raise SystemExit(7)

    with sync.run(**RUN) as run:
        with pytest.raises(SystemExit):
            sync.tool(run, leave)()
        assert sync.tool(run, "look", say, args={"n": 1}) == {"n": 1}


def test_after_closing_no_run_begins_but_an_open_one_goes_on_to_its_end(journal, sync):
    with sync.run(**RUN) as run:
        sync.close()
        sync.close()
        assert sync.tool(run, "look", say, args={"n": 1}) == {"n": 1}
    with pytest.raises(HarnessClosed) as refused, sync.run(**(RUN | {"run_id": "r2"})):
        pass
    assert (refused.value.code, journal.events("r2")) == ("harness_closed", [])
    with pytest.raises(RunEnded):
        sync.tool(run, "look", say)


def test_what_an_application_left_in_the_loop_is_cancelled_at_the_end(journal):
    seen: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")

    async def begin(run: RunContext) -> None:
        left.append(asyncio.create_task(forever()))
        await asyncio.sleep(0)

    left: list[asyncio.Task[None]] = []
    with sync_over(journal) as sync, sync.run(**RUN) as run:
        sync.tool(run, begin)()
    assert seen == ["cancelled"]


def test_a_harness_that_is_forgotten_keeps_no_thread(journal):
    sync = sync_over(journal)
    with sync.run(**RUN):
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "harness-loop"]
    del sync
    gc.collect()
    thread.join(timeout=30)
    assert not thread.is_alive()


PROGRAM = """
import os, sys, threading
from harness import HarnessError, Limits, MemoryJournal, SyncHarness

LIMITS = Limits(model_calls=9, tool_calls=9, input_tokens=9, output_tokens=9, total_tokens=9, run_bytes=999,
                per_tool_default=9)
journal = MemoryJournal()
harness = SyncHarness(journal)

async def say(run, n):
    return n

def run(run_id):
    return harness.run(session_id="s", run_id=run_id, limits=LIMITS, timeout_s=60)

def code_of(action):
    try:
        return action()
    except HarnessError as error:
        return error.code

def in_a_fork(action):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print(code_of(action), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def outcome_of_program(steps: str) -> tuple[int, str, str]:
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", PROGRAM + steps]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


def test_a_process_exits_although_its_harness_was_not_closed():  # CASES 38
    done = outcome_of_program("""
with run("r1") as one:
    print(harness.tool(one, say)(1))
""")
    assert done == (0, "1\n", "")


def test_a_fork_is_told_that_the_threads_are_not_its_own_and_ends_no_run_of_its_parent():
    done = outcome_of_program("""
def whole(run_id):
    with run(run_id) as one:
        return harness.tool(one, say)(1)

in_a_fork(lambda: whole("r0"))      # Nothing was used yet: the child's own.
with run("r1") as one:
    in_a_fork(lambda: harness.tool(one, say)(1))
    in_a_fork(lambda: whole("r2"))
    if os.fork() == 0:
        try:
            with run("r1"):
                pass
        except HarnessError:
            os._exit(0)
        os._exit(1)
    assert os.wait()[1] == 0
    child = os.fork()
    if child == 0:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    print(harness.tool(one, say)(2))
print([event.type for event in journal.events("r1")][-1])
""")
    assert done == (0, "1\nother_process\nother_process\n2\nrun.terminated\n", "")
