"""A promise is a future to everybody who waits for one, in whatever way."""

import asyncio
import gc
import os
import signal
import sys
import threading
from concurrent.futures import FIRST_COMPLETED, Future, as_completed, wait

import pytest

from harness import promise as promises_of_all
from harness.concurrency.waiting import result_of
from harness.promise import Promise

RACES = 300


def at_once(*actions):
    """Do them in threads of their own, from one moment on; what each returned."""
    barrier, said = threading.Barrier(len(actions)), [None] * len(actions)

    def do(number, action):
        barrier.wait(30)
        said[number] = action()

    threads = [threading.Thread(target=do, args=numbered) for numbered in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return said


def wait_for_first(promise):
    return wait([promise, Future()], 30, FIRST_COMPLETED).done == {promise}


def called_back(promise):
    called = threading.Event()
    promise.add_done_callback(lambda _: called.set())
    return called.wait(30)


def test_whoever_comes_in_the_moment_in_which_it_is_kept_hears_of_it():
    for number in range(RACES):
        promise = Promise()
        waiting = (
            lambda promise=promise: promise.result(30),
            lambda promise=promise: wait_for_first(promise),
            lambda promise=promise: called_back(promise),
        )
        said = at_once(*waiting, lambda promise=promise, number=number: promise.set_result(number))
        assert said[:3] == [number, True, True]


@pytest.mark.parametrize("kept", [False, True])
async def test_every_way_of_waiting_gives_its_result(kept):
    promise = Promise()
    assert not promise.done()
    if kept:
        promise.set_result("stored")
    else:
        threading.Timer(0.02, promise.set_result, ["stored"]).start()
    told = []
    promise.add_done_callback(lambda done: told.append(done.result()))
    assert await asyncio.to_thread(promise.result, 30) == "stored"
    assert await asyncio.wrap_future(promise) == await result_of(promise) == "stored"
    assert list(as_completed([promise], 30)) == [promise]
    assert promise.exception(30) is None
    assert promise.done()
    assert told == ["stored"]


async def test_an_error_is_raised_however_it_is_waited_for():
    promise = Promise()
    promise.set_exception(KeyError("lost"))
    for waiting in (asyncio.to_thread(promise.result, 30), asyncio.wrap_future(promise), result_of(promise)):
        with pytest.raises(KeyError):
            await waiting
    assert isinstance(promise.exception(30), KeyError)


def test_it_cannot_be_cancelled_and_a_wait_for_it_ends_in_time():
    promise = Promise()
    assert not promise.cancel()
    assert not promise.cancelled()
    with pytest.raises(TimeoutError):
        promise.result(0.01)
    promise.set_result(1)
    assert promise.result() == 1


def raise_it(error):
    raise error


@pytest.mark.parametrize("raised", [ZeroDivisionError(), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
def test_what_a_callback_raises_keeps_the_others_from_nothing(caplog, raised):
    promise, told = Promise(), []
    promise.add_done_callback(lambda _: raise_it(raised))
    promise.add_done_callback(told.append)
    promise.set_result(1)
    assert told == [promise]


async def test_one_that_is_kept_from_its_beginning_is_like_any_other():
    promise, told = Promise.kept("stored"), []
    promise.add_done_callback(lambda done: told.append(done.result()))
    assert told == [await asyncio.wrap_future(promise)] == [await result_of(promise)] == ["stored"]
    assert wait_for_first(promise)
    assert promise.exception(30) is None


def test_where_no_thread_waits_none_is_prepared_for():
    promises = [Promise() for _ in range(100)]
    for promise in promises:
        promise.set_result(1)
        assert promise.result() == 1
        assert promise.exception() is None
    gc.collect()
    assert not any(isinstance(one, threading.Condition) for promise in promises for one in vars(promise).values())


def whole_life():
    """A promise from its making to its end, with whoever waits for it."""
    promise, told = Promise(), []
    promise.add_done_callback(told.append)
    with pytest.raises(TimeoutError):
        promise.result(0)
    promise.set_result(1)
    promise.add_done_callback(told.append)
    assert told == [promise, promise]


def at_every_line(do):
    """Live a promise's life in a thread, and `do` something before each line of it, as a signal handler might."""

    def trace(frame, event, _):
        if frame.f_code.co_filename != promises_of_all.__file__:
            return None
        do()
        return trace

    def live():
        sys.settrace(trace)
        try:
            whole_life()
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    return thread


def test_what_interrupts_a_thread_anywhere_in_it_may_make_and_keep_others():
    count = []

    def interrupt():
        whole_life()
        count.append(1)

    thread = at_every_line(interrupt)
    thread.join(30)
    assert not thread.is_alive()
    assert len(count) > 20


def test_a_child_that_was_forked_while_a_thread_was_anywhere_in_it_has_promises_too():
    here, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def halt():
        here.release()
        go_on.acquire()

    thread, statuses = at_every_line(halt), set()
    while here.acquire(timeout=0.2):
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            whole_life()
            os._exit(0)
        statuses.add(os.waitpid(child, 0)[1])
        go_on.release()
    thread.join(30)
    assert statuses == {0}
