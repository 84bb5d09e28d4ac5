"""The writer: room, order, one transaction for what waits together, and its end."""

import random
import threading

import pytest

from harness.errors import LedgerUnavailable
from harness.journal import Recorded
from ledger.append.front import WriterLimits
from ledger.append.permits import Permits
from ledger.append.writer import Writer
from tests.ledger.scripted import ScriptedRun, seal


class FakeStore:
    """Acknowledges everything, once the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.groups: list[int] = []
        self.fail_next = False
        self.is_closed = False
        self.tidied = 0
        self.is_tidy = threading.Event()

    def append_all(self, appends):
        assert self.gate.wait(30)
        self.groups.append(len(appends))
        if self.fail_next:
            self.fail_next = False
            raise LedgerUnavailable("the disk is full")
        return [Recorded(1, len(append.events), bytes(32)) for append in appends]

    def run(self, job, run_ids=()):
        return job(None)

    def tidy(self, *, is_idle):
        if is_idle:
            self.tidied += 1
            if self.tidied < 3:
                raise LedgerUnavailable("another process has held the lock")
            self.is_tidy.set()
        return True

    def close(self):
        self.is_closed = True


@pytest.fixture
def store():
    return FakeStore()


@pytest.fixture
def writer(store):
    writer = Writer(store, WriterLimits(permits_max=4, queue_bytes_max=10_000, batch_appends_max=10, rest_after_s=0.01))
    yield writer
    store.gate.set()
    writer.close()


@pytest.fixture
def run():
    return ScriptedRun()


def test_what_waits_together_is_written_together(writer, store, run):
    futures = [writer.submit(run.transition(f"n{number}")) for number in range(25)]
    store.gate.set()
    for future in futures:
        future.result()
    # The first found the writer idle, and the others waited for it.
    assert store.groups in ([1, 10, 10, 4], [10, 10, 5])


def test_a_job_takes_its_turn(writer, store, run):
    order = []
    writer.submit(run.start()).add_done_callback(lambda _: order.append("append"))
    job = writer.run(lambda _: order.append("job"))
    writer.submit(run.transition("x")).add_done_callback(lambda _: order.append("append"))
    store.gate.set()
    job.result()
    writer.close()
    assert order == ["append", "job", "append"]


def test_a_job_that_raises_harms_nobody_else(writer, store, run):
    store.gate.set()
    error = writer.run(lambda _: 1 / 0).exception()
    assert isinstance(error, ZeroDivisionError)
    assert writer.submit(run.start()).result().first_seq == 1


def test_a_store_that_fails_in_an_unknown_way_fails_the_group_and_not_the_writer(writer, store, run, caplog):
    store.append_all, working = lambda appends: 1 / 0, store.append_all
    assert isinstance(writer.submit(run.start()).exception(), LedgerUnavailable)
    store.append_all = working
    store.gate.set()
    resumed = run.submission(*run.start().events, resumes=True)
    assert writer.submit(resumed).result().first_seq == 1


def test_within_one_group_a_run_that_resumes_is_taken_and_what_it_lost_is_not(writer, store, run):
    store.fail_next = True
    lost = writer.submit(run.start())
    store.gate.set()
    lost.exception()
    store.gate.clear()
    blocker = writer.submit(ScriptedRun("run-2").start())
    futures = [
        writer.submit(run.transition("a")),
        writer.submit(run.submission(*run.start().events, resumes=True)),
        writer.submit(run.transition("b")),
    ]
    store.gate.set()
    blocker.result()
    assert [future.exception() is None for future in futures] == [False, True, True]


def test_a_future_cannot_be_cancelled_by_whoever_waits_for_it(writer, store, run):  # CASES 37
    future = writer.submit(run.start())
    assert not future.cancel()
    store.gate.set()
    assert future.result().first_seq == 1


def test_a_permit_is_room_and_the_next_waits_until_one_is_given_back(writer):
    permits = [writer.request_permit(30).result() for _ in range(4)]
    waiting = writer.request_permit(30)
    assert not waiting.done()
    permits[0].release()
    assert waiting.result(30) is not None


def test_a_permit_released_twice_makes_room_once(writer):
    permits = [writer.request_permit(30).result() for _ in range(4)]
    permits[0].release()
    permits[0].release()
    writer.request_permit(30).result(30)
    assert not writer.request_permit(30).done()


def test_a_permit_that_does_not_come_in_time_is_an_error(writer):
    held = [writer.request_permit(30).result() for _ in range(4)]
    with pytest.raises(LedgerUnavailable, match=r"no room for 0\.02 s"):
        writer.request_permit(0.02).result(30)
    assert len(held) == 4


def test_permits_are_given_in_the_order_they_were_asked_for(writer):
    held = [writer.request_permit(30).result() for _ in range(4)]
    waiting = [writer.request_permit(30) for _ in range(3)]
    order = []
    for number, future in enumerate(waiting):
        future.add_done_callback(lambda _, number=number: order.append(number))
    for permit in held:
        permit.release()
    assert order == [0, 1, 2]


def test_a_request_that_was_cancelled_costs_no_room(writer):
    held = [writer.request_permit(30).result() for _ in range(4)]
    gone, waiting = writer.request_permit(30), writer.request_permit(30)
    assert gone.cancel()
    held[0].release()
    assert waiting.result(30) is not None


def test_nobody_is_let_in_while_too_many_bytes_wait_but_ends_still_are(writer, store, run):
    permit = writer.request_permit(30).result()
    big = writer.submit(run.submission(*run.start().events, contents=(seal(random.Random(7).randbytes(20_000)),)))
    waiting = writer.request_permit(30)
    end = writer.submit(run.end())
    assert not waiting.done()
    store.gate.set()
    big.result(), end.result()
    assert waiting.result(30) is not None
    permit.release()


def test_a_permit_may_be_given_back_from_the_callback_of_another():
    permits = Permits(permits_max=1, bytes_max=1)
    chained = []
    first = permits.request(30).result()
    for _ in range(100):
        permits.request(30).add_done_callback(lambda done: (chained.append(1), done.result().release()))
    first.release()
    assert len(chained) == 100
    permits.close()


def test_closing_writes_what_was_submitted(writer, store, run):
    futures = [writer.submit(run.transition(f"n{number}")) for number in range(30)]
    store.gate.set()
    writer.close()
    assert all(future.result().first_seq == 1 for future in futures)
    assert store.is_closed


def test_after_closing_everything_fails(writer, store, run):
    held = [writer.request_permit(30).result() for _ in range(4)]
    waiting = writer.request_permit(30)
    store.gate.set()
    writer.close()
    for future in (waiting, writer.request_permit(30), writer.submit(run.start()), writer.run(lambda _: 1)):
        assert isinstance(future.exception(30), LedgerUnavailable)
    assert len(held) == 4


def test_closing_twice_is_closing_once(writer, store):
    store.gate.set()
    writer.close()
    writer.close()
    assert store.is_closed


def test_a_tidying_that_was_put_off_is_tried_again_while_nothing_else_is_to_do(writer, store, run):
    store.gate.set()
    writer.submit(run.start()).result()
    assert store.is_tidy.wait(30)
    assert store.tidied == 3


@pytest.mark.parametrize("raised", [SystemExit(1), KeyboardInterrupt(), ValueError("x")], ids=repr)
def test_nothing_that_a_waiter_raises_ends_the_writer(writer, store, run, raised):
    def leave(_):
        raise raised

    first, second = writer.submit(run.start()), writer.submit(run.transition("planner"))
    first.add_done_callback(leave)
    store.gate.set()
    assert second.result(timeout=30).last_seq == 1
    assert writer.submit(run.transition("executor")).result(timeout=30).last_seq == 1
