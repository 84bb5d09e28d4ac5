"""What a harness may rely on, whichever journal it is given (`harness.journal`)."""

import queue
import random
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness import events as e
from harness.errors import AlreadyTerminated, IllegalEvent, LedgerUnavailable
from harness.journal import Journal
from harness.memory_journal import MemoryJournal
from tests.contract.databases import Database
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun, seal


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def database(request, tmp_path: Path) -> Iterator[Database | None]:
    if request.param == "memory":
        yield None
        return
    blank = f"sqlite:///{blank_at(tmp_path / 'runs.db')}"
    database = Database(blank if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    yield database
    database.close()


@pytest.fixture
async def journal(database) -> AsyncIterator[Journal]:
    if database is None:
        yield MemoryJournal()
        return
    async with await database.open() as ledger:
        yield ledger.journal


@pytest.fixture
def run() -> ScriptedRun:
    return ScriptedRun()


def test_events_of_a_run_are_numbered_from_one_without_a_gap(journal, run):  # E5
    numbered = [journal.submit(submission).result() for submission in run.whole()]
    positions = [number for recorded in numbered for number in range(recorded.first_seq, recorded.last_seq + 1)]
    assert positions == list(range(1, run.events_made + 1))


def test_a_head_link_has_32_bytes_and_is_another_after_each_submission(journal, run):
    links = [journal.submit(submission).result().head_link for submission in run.whole()]
    assert {len(link) for link in links} == {32}
    assert len(set(links)) == len(links)


def test_runs_are_numbered_each_by_itself(journal):
    runs = [ScriptedRun(f"run-{number}") for number in range(3)]
    firsts = [journal.submit(one.start()).result() for one in runs]
    assert [(first.first_seq, first.last_seq) for first in firsts] == [(1, 1)] * 3


def test_acknowledgements_of_a_run_come_in_the_order_of_its_submissions(journal, run):
    came = []
    all_there = threading.Event()

    def acknowledged(number):
        came.append(number)
        if number == 49:
            all_there.set()

    journal.submit(run.start())
    for number in range(50):
        future = journal.submit(run.transition(f"node-{number}"))
        future.add_done_callback(lambda _, number=number: acknowledged(number))
    assert all_there.wait(30)
    assert came == list(range(50))


def test_a_callback_may_submit(journal, run):
    later = []
    called = threading.Event()

    def submit_more(_):
        later.append(journal.submit(run.transition("planner")))
        called.set()

    journal.submit(run.start()).add_done_callback(submit_more)
    assert called.wait(30)
    assert later[0].result().first_seq == 2


def test_a_run_begins_with_run_started(journal, run):
    with pytest.raises(IllegalEvent):
        journal.submit(run.transition("planner")).result()


def test_an_end_without_a_start_is_refused(journal, run):  # CASES 29
    journal.submit(run.start()).result()
    with pytest.raises(IllegalEvent):
        journal.submit(run.attempt().succeed()).result()


def test_a_refused_submission_leaves_nothing_behind(journal, run):
    journal.submit(run.start()).result()
    good = run.event(e.FlowSelected, boundary="flow/x/1/1", flow="CHAT_GRAPH")
    bad = run.attempt().succeed().events
    with pytest.raises(IllegalEvent):
        journal.submit(run.submission(good, *bad)).result()
    assert journal.submit(run.transition("planner")).result().first_seq == 2


def test_a_refused_submission_does_not_close_the_run_to_others(journal, run):
    journal.submit(run.start()).result()
    refused = journal.submit(run.attempt().succeed())
    following = journal.submit(run.transition("planner"))
    assert isinstance(refused.exception(), IllegalEvent)
    assert following.result().first_seq == 2


def test_a_run_ends_once(journal, run):  # E6
    for submission in run.whole():
        journal.submit(submission).result()
    with pytest.raises(AlreadyTerminated) as caught:
        journal.submit(run.end("FAILED", "ANYTHING")).result()
    assert (caught.value.outcome, caught.value.reason) == ("SUCCESS", "COMPLETED")


def test_work_after_the_end_is_refused_with_the_outcome_that_counts(journal, run):  # E6
    for submission in run.whole():
        journal.submit(submission).result()
    with pytest.raises(AlreadyTerminated):
        journal.submit(run.attempt().start()).result()


def test_a_late_result_is_taken_after_the_end(journal, run):  # E6, D4
    model = run.attempt("model", "planner")
    submissions = [run.start(), model.start(), model.abandon(), run.end("TIMED_OUT", "DEADLINE_EXCEEDED")]
    for submission in submissions:
        journal.submit(submission).result()
    recorded = journal.submit(model.finish_late(usage={"output_tokens": 3})).result()
    assert recorded.last_seq - recorded.first_seq == 1


def test_a_run_does_not_end_while_an_attempt_is_open(journal, run):
    journal.submit(run.start()).result()
    journal.submit(run.attempt().start()).result()
    with pytest.raises(IllegalEvent):
        journal.submit(run.end()).result()


def test_two_runs_submitted_from_two_threads_do_not_mix(journal):
    runs = [ScriptedRun(f"run-{number}", f"session-{number}") for number in range(2)]
    ready = threading.Barrier(2)
    results = {}

    def submit_all(one):
        ready.wait()
        results[one.run_id] = [journal.submit(submission).result().last_seq for submission in one.whole()]

    threads = [threading.Thread(target=submit_all, args=(one,)) for one in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results["run-0"] == results["run-1"]


def test_a_permit_is_given_while_there_is_room_and_may_be_released_twice(journal):
    permit = journal.request_permit(1.0).result()
    permit.release()
    permit.release()
    assert journal.request_permit(1.0).result() is not None


class TestAfterALostSubmission:
    """The lane rule: what comes after a lost submission is lost too, until one resumes."""

    @pytest.fixture
    def lose(self, journal, database):
        """Submits while nothing can be stored."""

        def submit(*submissions):
            if isinstance(journal, MemoryJournal):
                journal.fail_with = LedgerUnavailable("no")
                futures = [journal.submit(submission) for submission in submissions]
                journal.fail_with = None
                return futures
            if database.is_postgres:
                return lose_on_a_servers_full_disk(journal, database.outsider(), submissions)
            return lose_on_a_full_disk(journal, submissions)

        return submit

    def test_nothing_is_taken_of_the_run(self, journal, run, lose):
        journal.submit(run.start()).result()
        (lost,) = lose(run.transition("planner"))
        assert isinstance(lost.exception(), LedgerUnavailable)
        with pytest.raises(LedgerUnavailable):
            journal.submit(run.transition("executor")).result()

    def test_a_submission_that_resumes_opens_the_run_again(self, journal, run, lose):
        journal.submit(run.start()).result()
        lose(run.transition("planner"))[0].exception()
        resumed = run.submission(*run.transition("planner").events, resumes=True)
        assert journal.submit(resumed).result().first_seq == 2
        assert journal.submit(run.transition("executor")).result().first_seq == 3

    def test_other_runs_go_on(self, journal, run, lose):
        other = ScriptedRun("run-2")
        journal.submit(run.start()).result()
        lose(run.transition("planner"))[0].exception()
        assert journal.submit(other.start()).result().first_seq == 1


def test_whoever_watches_a_run_hears_a_request_once_and_from_then_on_nothing(journal, run):  # E7
    heard = queue.SimpleQueue()
    journal.submit(run.start()).result()
    journal.submit(ScriptedRun("run-2", writer_id="w2").start()).result()
    journal.watch("run-1", heard.put)
    journal.watch("run-2", heard.put)
    journal.watch("run-1", heard.put)()
    journal.submit(run.request_cancellation("SHUTDOWN")).result()
    assert heard.get(timeout=5) == "SHUTDOWN"
    journal.submit(run.request_cancellation("USER_REQUESTED")).result()
    journal.watch("run-1", heard.put)
    assert heard.get(timeout=5) == "SHUTDOWN"
    with pytest.raises(queue.Empty):
        heard.get(timeout=0.5)


def lose_on_a_full_disk(journal, submissions):
    """The futures of submissions that the database has no room for."""
    size = journal.run(lambda batch: batch.connection.execute("PRAGMA page_count").fetchone()[0]).result()
    limit = "PRAGMA max_page_count = {}"
    journal.run(lambda batch: batch.connection.execute(limit.format(size))).result()
    futures = [journal.submit(enlarged(submission)) for submission in submissions]
    for future in futures:
        future.exception()
    journal.run(lambda batch: batch.connection.execute(limit.format(2**30))).result()
    return futures


def lose_on_a_servers_full_disk(journal, outsider, submissions):
    """The same with a server that says so of every event."""
    outsider.script(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'could not extend file'; END $$;"
        " CREATE TRIGGER full_disk BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION full_disk()"
    )
    futures = [journal.submit(submission) for submission in submissions]
    for future in futures:
        assert "disk is full" in str(future.exception())
    outsider.script("DROP TRIGGER full_disk ON event; DROP FUNCTION full_disk")
    return futures


def enlarged(submission):
    """The submission with a content that needs new pages."""
    return submission._replace(contents=(*submission.contents, seal(random.Random(7).randbytes(100_000))))
