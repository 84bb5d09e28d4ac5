"""Threads for synchronous operations, and what becomes of them (SPEC H3)."""

import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

from harness.concurrency.threads import ToolThreads
from tests.harness.fakes import race

ROOT = Path(__file__).parents[2]


def test_a_call_runs_on_a_thread_of_its_own_and_gives_its_result():
    threads = ToolThreads(idle_s=0.0)
    assert threads.submit(threading.get_ident).result(timeout=30) != threading.get_ident()


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(1)], ids=repr)
def test_whatever_a_call_raises_is_for_whoever_waits(error: BaseException):
    def call() -> None:
        raise error

    assert ToolThreads(idle_s=0.0).submit(call).exception(timeout=30) is error


def test_no_more_than_the_limit_run_at_once_and_the_rest_in_order():
    threads, running, order = ToolThreads(3, idle_s=0.0), threading.Semaphore(0), []
    go_on = threading.Event()

    def work(number: int) -> int:
        order.append(number)
        running.release()
        go_on.wait(timeout=30)
        return number

    futures = [threads.submit(lambda number=number: work(number)) for number in range(10)]
    for _ in range(3):
        assert running.acquire(timeout=30)
    assert sorted(order) == [0, 1, 2]
    go_on.set()
    assert [future.result(timeout=30) for future in futures] == list(range(10))
    assert sorted(order) == list(range(10))


def test_a_call_that_was_cancelled_before_its_turn_never_runs():
    threads, go_on, ran = ToolThreads(1, idle_s=0.0), threading.Event(), []
    busy = threads.submit(lambda: go_on.wait(timeout=30))
    waiting = threads.submit(lambda: ran.append(1))
    assert waiting.cancel()
    go_on.set()
    busy.result(timeout=30)
    assert threads.submit(lambda: 7).result(timeout=30) == 7
    assert ran == []


def test_a_thread_that_cannot_be_started_takes_no_place(monkeypatch: pytest.MonkeyPatch):
    threads = ToolThreads(1, idle_s=0.0)

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            threads.submit(lambda: 1)
    assert threads.submit(lambda: 7).result(timeout=30) == 7


def test_a_thread_is_used_again_and_ends_when_idle():
    threads, used = ToolThreads(idle_s=2.0), set()
    for _ in range(20):
        used.add(threads.submit(threading.current_thread).result(timeout=30))
        while not threads._idle:  # it gives the result before it waits for the next call
            time.sleep(0)
    (thread,) = used
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert threads.submit(lambda: 7).result(timeout=30) == 7


@pytest.mark.parametrize("idle_s", [0.0, 0.001])
def test_no_call_is_forgotten_however_often_threads_come_and_go(idle_s: float):
    threads = ToolThreads(4, idle_s=idle_s)

    def submit_many() -> list[int]:
        return [threads.submit(partial(int, number)).result(timeout=30) for number in range(200)]

    assert race([submit_many] * 6) == [list(range(200))] * 6


def test_a_thread_that_is_given_a_call_as_its_patience_ends_takes_it():
    threads, given = ToolThreads(idle_s=0.1), Future[int]()
    while True:
        threads.submit(int).result(timeout=30)
        with threads._lock:
            if threads._idle:
                place = threads._idle.pop()
                time.sleep(0.2)
                place.put((lambda: 7, given))
                break
    assert given.result(timeout=30) == 7


STUCK = """
import asyncio, threading
from harness import Harness, Limits, MemoryJournal, RunEnded

async def main():
    journal = MemoryJournal()
    limits = Limits(model_calls=1, tool_calls=1, input_tokens=1, output_tokens=1, total_tokens=1, run_bytes=1000,
                    per_tool_default=1)
    try:
        async with Harness(journal).run(session_id="s", run_id="r", limits=limits, timeout_s=0.5) as run:
            await Harness(journal).tool(run, "hang", lambda run: threading.Event().wait())
    except RunEnded as ended:
        print(ended.outcome, [event.type for event in journal.events("r")][-3:])

asyncio.run(main())
"""


def test_a_tool_that_never_returns_does_not_keep_the_process():  # CASES 38
    done = subprocess.run([sys.executable, "-c", STUCK], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.stdout == "TIMED_OUT ['attempt.abandoned', 'cancellation.signalled', 'run.terminated']\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fork_is_refused_threads_that_are_its_parents():
    program = """
import asyncio, os, signal
from harness import Harness, Limits, MemoryJournal, OtherProcess

def plain(run): return os.getpid()

async def call(harness, run_id):
    limits = Limits(model_calls=1, tool_calls=1, input_tokens=1, output_tokens=1, total_tokens=1, run_bytes=100,
        per_tool_default=1)
    async with harness.run(session_id="s", run_id=run_id, limits=limits, timeout_s=60) as run:
        return await harness.tool(run, "plain", plain)

harness = Harness(MemoryJournal())
asyncio.run(call(harness, "parent"))
child = os.fork()
if not child:
    signal.alarm(20)
    try:
        asyncio.run(call(harness, "child"))
    except OtherProcess:
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("7\n", "")
