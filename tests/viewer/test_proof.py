"""What is said to be proven of a run is what this server looked at, and no more (SPEC E9)."""

import asyncio
import re
import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

import pytest

from ledger import Ledger
from ledger.verifying import Finding, RunCheck
from ledger.verifying.chain import Chain
from tests.contract.databases import SqliteOutsider
from tests.contract.signed import record_signed
from tests.contract.test_verifying import disarm
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun
from tests.viewer.example_runs import budget_run
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of
from tests.viewer.test_pages import PAGE, long_run, read
from viewer import proof

ONE = "/trace?sessionId=session-1&runId=run-1"
LAST = "/trace?sessionId=session-3&runId=run-3"


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed")
    asyncio.run(record_signed(folder, partial(Ledger.open, folder / "runs.db")))
    return (folder / "runs.db").read_bytes()


@pytest.fixture
def file(signed, tmp_path):
    (tmp_path / "runs.db").write_bytes(signed)
    return tmp_path / "runs.db"


@contextmanager
def forged(file):
    with closing(SqliteOutsider(file)) as outsider:
        disarm(outsider, "event")
        disarm(outsider, "diagnosis_run")
        yield outsider


def a_check(run, **changes) -> RunCheck:
    same = {"checkpoint": None, "anchored_count": 0, "findings": (), "is_outdated": False, "checked_us": 1}
    counts = {"event_count": len(run.events), "content_count": 3, "row_count": 9}
    return RunCheck(run.session_id, run.run_id, **(same | counts | changes))


def test_a_run_under_the_newest_checkpoint_holds_and_says_who_checked_it_against_what(file):
    with client_of(file) as client:
        page = read(client, LAST)
    assert re.search(r"Links hold checked by this server .* UTC .*: 5 events, .* against checkpoint \d+ of", page.text)
    assert "not anchored" not in page.text
    assert "Its signature is not checked here" in page.text
    assert "Who audits need not believe this server." in page.text
    assert "tachograph verify session-3/run-3 --db LEDGER" in page.text
    assert "tachograph verify --db LEDGER --checkpoint CHECKPOINT --key PUBLIC-KEY" in page.text


def test_where_the_ledger_lies_is_told_to_no_browser(file):
    with client_of(file) as client:
        assert str(file.parent) not in client.get(f"{LAST}&verify=1").text


def test_what_came_since_the_checkpoint_is_counted(file):
    async def add():
        async with await Ledger.open(file) as ledger:
            for _ in range(3):
                await ledger.record_feedback("session-3", "run-3", useful=False)

    with client_of(file) as client:
        assert "tail not anchored" not in read(client, LAST).text
        asyncio.run(add())
        assert "Links hold, tail not anchored: 3 events since the checkpoint" in read(client, LAST).text


def test_a_ledger_that_signs_nothing_says_so_and_how_to_begin(tmp_path):
    async def record():
        async with await Ledger.open(tmp_path / "runs.db") as ledger:
            for submission in ScriptedRun("run-1", "session-1").whole():
                ledger.journal.submit(submission).result()

    asyncio.run(record())
    with client_of(tmp_path / "runs.db") as client:
        text = read(client, ONE).text
    assert "Links hold, not anchored" in text
    assert "No checkpoint: this ledger signs none" in text
    assert "tachograph key create --db LEDGER" in text


def test_a_changed_event_is_named_and_nothing_is_said_to_hold(file):
    with forged(file) as outsider:
        outsider.execute(
            "UPDATE event SET body = CAST(replace(body, 'SUCCESS', 'SUCCEED') AS BLOB) WHERE stream_id = 'r:run-3'"
        )
    with client_of(file) as client:
        answer, page = client.get(LAST), read(client, LAST)
        assert 'class="seal broken"' in answer.text
        assert re.search(r"Does not hold .* Event \d+: the body is not the one that was hashed", page.text)
        assert "Links hold" not in page.text
        event = next(href for href in page.hrefs if "event=" in href and href.startswith("/trace"))
        assert client.get(event).status_code == 200


def test_a_row_that_says_otherwise_than_its_events_is_told(file):
    with forged(file) as outsider:
        outsider.execute("UPDATE diagnosis_run SET agent = 'somebody' WHERE run_id = 'run-3'")
    with client_of(file) as client:
        text = read(client, LAST).text
    assert "Does not hold" in text
    assert "(row_differs)" in text
    assert "What this page shows of the run may not be what was recorded." in text


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE diagnosis_run SET agent = 'somebody' WHERE run_id = 'run-3'",
        "UPDATE tool_invocation SET tool_name = 'another' WHERE run_id = 'run-3'",
        "UPDATE event SET recorded_us = recorded_us + 1 WHERE stream_id = 'r:run-3' AND seq = 2",
        "UPDATE content SET data = zeroblob(length(data)) WHERE stream_id = 'r:run-3' AND data IS NOT NULL",
    ],
)
def test_what_was_found_before_is_not_told_of_what_is_forged_since(file, forgery):
    with client_of(file) as client:
        assert "Links hold" in read(client, LAST).text
        with forged(file) as outsider:
            for table in ("tool_invocation", "content"):
                disarm(outsider, table)
            outsider.execute(forgery)
        text = read(client, LAST).text
    assert "Does not hold" in text
    assert "Links hold" not in text


def test_words_of_a_forger_are_shown_as_text():
    run = budget_run()
    reader = FakeReader([run])
    reader.check = a_check(run, findings=(Finding("row_differs", "<script>x\u202e</script>" * 90),))
    with client_of(reader) as client:
        text = client.get(PAGE).text
    assert "&lt;script&gt;x" in text
    assert "<script>x" not in text
    assert "\u202e" not in text


def test_a_long_run_is_checked_only_when_somebody_asks():
    run = long_run(proof.UNASKED_EVENTS_MAX + 1)
    reader = FakeReader([run])
    reader.check = a_check(run)
    path = "/trace?sessionId=s&runId=long"
    with client_of(reader) as client:
        page = read(client, path)
        assert "Links not verified here" in page.text
        assert "is checked when somebody asks" in page.text
        asking = next(href for href in page.hrefs if "verify=1" in href)
        assert "Links hold" in read(client, asking).text
        # What was found then is shown with its time, until it is asked for again.
        assert "Links hold" in read(client, path).text


def test_a_run_that_nothing_was_added_to_is_not_checked_again():
    run, looked = budget_run(), []

    class Counted(FakeReader):
        async def check_run(self, session_id, run_id):
            looked.append(run_id)
            return await super().check_run(session_id, run_id)

    reader = Counted([run])
    reader.check = a_check(run)
    with client_of(reader) as client:
        for _ in range(3):
            read(client, PAGE)
        assert len(looked) == 1
        read(client, f"{PAGE}&verify=1")
        assert len(looked) == 2


def test_checks_that_nobody_looks_at_are_forgotten(monkeypatch):
    monkeypatch.setattr(proof, "CHECKS_KEPT_MAX", 2)
    run = budget_run()
    reader = FakeReader([run])
    reader.check = a_check(run)
    proofs = proof.Proofs(reader)

    async def look():
        for number in range(5):
            of = run.trace()
            detail = replace(of.run, summary=replace(of.run.summary, run_id=f"r{number}"))
            await proofs.of(replace(of, run=detail), ())

    asyncio.run(look())
    assert len(proofs._kept) == 2


def test_who_looks_while_others_are_checked_is_told_so(monkeypatch):
    run = budget_run()

    class Slow(FakeReader):
        def __init__(self, runs):
            super().__init__(runs)
            self.entered, self.left = asyncio.Event(), asyncio.Event()

        async def check_run(self, session_id, run_id):
            self.entered.set()
            await self.left.wait()
            return a_check(run)

    async def look():
        monkeypatch.setattr(proof, "CHECKS_AT_ONCE", 1)
        reader = Slow([run])
        proofs = proof.Proofs(reader)
        first = asyncio.create_task(proofs.of(run.trace(), ()))
        await reader.entered.wait()
        assert await proofs.of(run.trace(), ()) == proof.Unchecked("busy")
        reader.left.set()
        assert (await first).holds

    asyncio.run(look())


async def test_appends_go_on_while_a_page_checks_its_run(tmp_path, monkeypatch):  # E9
    run = ScriptedRun()
    held, may_go_on, add_page = threading.Event(), threading.Event(), Chain.add_page

    def hold(chain, page):
        held.set()
        assert may_go_on.wait(30)
        return add_page(chain, page)

    path = blank_at(tmp_path / "runs.db")
    async with await Ledger.open(path) as ledger:
        ledger.journal.submit(run.start()).result(30)
        monkeypatch.setattr(Chain, "add_page", hold)
        with client_of(path) as client:
            looking = asyncio.create_task(asyncio.to_thread(client.get, ONE))
            try:
                # The run's events are read, and the transaction that read them is open.
                assert await asyncio.to_thread(held.wait, 30)
                for number in range(20):
                    await asyncio.wait_for(asyncio.wrap_future(ledger.journal.submit(run.transition(f"n{number}"))), 30)
                assert not looking.done()
            finally:
                may_go_on.set()
            assert "Links hold" in (await looking).text


def test_a_check_that_takes_too_long_is_given_up(monkeypatch):
    class Endless(FakeReader):
        async def check_run(self, session_id, run_id):
            await asyncio.Event().wait()

    monkeypatch.setattr(proof, "CHECK_TIMEOUT_S", 0.01)
    run = budget_run()
    assert asyncio.run(proof.Proofs(Endless([run])).of(run.trace(), ())) == proof.Unchecked("slow")
