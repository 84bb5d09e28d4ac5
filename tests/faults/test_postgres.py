"""PostgreSQL treated badly: killed, cut off, and gone for a while (SPEC E3, D22)."""

import asyncio
import contextlib
import random
import signal
import threading

import pytest

from harness.errors import AlreadyTerminated, LedgerUnavailable
from ledger import Ledger
from ledger.audit.notes.checkpoint import SignedCheckpoint
from ledger.audit.signing.anchor import Anchor
from ledger.audit.tree.merkle import leaf_hash
from ledger.bytes import body_hash, genesis_link, next_link
from tests.audit.trees import root_of
from tests.contract.databases import PostgresOutsider
from tests.faults import programs
from tests.faults.processes import start
from tests.ledger.scripted import ScriptedRun
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy


@pytest.fixture(scope="module")
def durable_server():
    """A server that keeps what it says, and may be killed."""
    server = PostgresServer().start()
    yield server
    server.stop()


@pytest.fixture
def durable_url(durable_server):
    return durable_server.url(durable_server.create_database())


@pytest.fixture
def proxy(postgres_server):
    proxy = Proxy(postgres_server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def proxied_url(proxy, postgres_server, postgres_url):
    return postgres_url.replace(f":{postgres_server.port}/", f":{proxy.port}/")


@pytest.fixture
def outsider(postgres_url):
    outsider = PostgresOutsider(postgres_url)
    yield outsider
    outsider.close()


def links_of(outsider, run_id):
    """The links of a run's events, recomputed from what is stored; every row is checked against it."""
    (ledger_id,) = outsider.execute("SELECT value FROM ledger_meta WHERE key = 'ledger_id'").fetchone()
    link, links = genesis_link(ledger_id, f"r:{run_id}"), []
    columns = "seq, recorded_us, body, body_hash, link"
    rows = outsider.execute(f"SELECT {columns} FROM event WHERE run_id = ? ORDER BY seq", (run_id,))
    for seq, recorded_us, body, stored_hash, stored_link in rows:
        assert seq == len(links) + 1
        link = next_link(link, seq, recorded_us, body_hash(body))
        assert (stored_hash, stored_link) == (body_hash(body), link)
        links.append(link)
    head = outsider.execute("SELECT head_seq, head_link FROM stream WHERE run_id = ?", (run_id,)).fetchone()
    assert head == ((len(links), links[-1]) if links else None)
    return links


async def test_everything_acknowledged_before_the_server_was_killed_is_there_after_it(durable_server, durable_url):
    moments = random.Random(5)
    acknowledged = {}
    for round_no in range(5):
        ledger = await Ledger.open(durable_url, lease_s=1.0)
        runs = [ScriptedRun(f"run-{round_no}-{number}") for number in range(6)]
        is_over = threading.Event()

        async def append(run, journal, is_over):
            last = acknowledged[run.run_id] = []
            try:
                last.append(await asyncio.wrap_future(journal.submit(run.start())))
                while not is_over.is_set():
                    tool = run.attempt()
                    last.append(await asyncio.wrap_future(journal.submit(tool.start())))
                    journal.submit(tool.succeed("x" * 500)._replace(is_awaited=False))
            except LedgerUnavailable:
                pass

        work = [asyncio.create_task(append(run, ledger.journal, is_over)) for run in runs]
        await asyncio.sleep(0.3 + moments.random() * 0.3)
        await asyncio.to_thread(durable_server.kill)
        await asyncio.to_thread(durable_server.start)
        await asyncio.sleep(0.1)
        is_over.set()
        await asyncio.gather(*work)
        await ledger.close()
    outsider = PostgresOutsider(durable_url)
    for run_id, recorded in acknowledged.items():
        links = links_of(outsider, run_id)
        assert all(links[one.last_seq - 1] == one.head_link for one in recorded)
    outsider.close()
    assert sum(map(len, acknowledged.values())) > 200
    async with await Ledger.open(durable_url, lease_s=1.0) as ledger:
        await ledger.recover()
        assert {run.status for run in (await ledger.reader.recent_runs()).rows} == {"FAILED"}
        assert (await ledger.rebuild()).is_clean


async def test_everything_acknowledged_before_the_process_was_killed_is_there_and_its_run_ended_once(postgres_url):
    async with await Ledger.open(postgres_url, lease_s=0.5) as survivor:
        program = start(programs.append, postgres_url, "run-1")
        acknowledged = []
        while True:
            try:
                acknowledged.append(program.pipe.recv())
            except (EOFError, OSError):
                break
            if len(acknowledged) == 40:
                program.process.kill()
        program.process.join(30)
        # The program's owner has a lease of its own, of which nobody here knows: its beat has to stand still.
        async with asyncio.timeout(30):
            while (await survivor.reader.trace("session-1", "run-1")).run.summary.status == "RUNNING":
                await asyncio.sleep(0.1)
        events = await survivor.reader.events("session-1", "run-1", limit=5_000)
        assert (await survivor.recover()).ended == ()
    assert [event.seq for event in events if event.type == "run.terminated"] == [len(events)]
    assert all(events[seq - 1].link == link.hex() for seq, link in acknowledged)


async def test_a_death_around_a_statement_leaves_its_append_whole_or_not_there_and_a_retry_says_which(
    postgres_url, outsider
):  # CASES 30, 31, D22
    is_stored = {"before statement": False, "after statement": True, "before acknowledgement": True}
    runs = {point: point.replace(" ", "-") for point in is_stored}
    async with await Ledger.open(postgres_url, lease_s=0.5) as survivor:
        dying = {point: start(programs.append_and_die, postgres_url, run, point, 12) for point, run in runs.items()}
        acknowledged = {point: heard_from(program) for point, program in dying.items()}
        assert {program.process.exitcode for program in dying.values()} == {-signal.SIGKILL}
        async with asyncio.timeout(30):
            while "RUNNING" in {run.status for run in (await survivor.reader.recent_runs()).rows}:
                await asyncio.sleep(0.1)
        for point, run_id in runs.items():
            *before, last = programs.start_and_transitions(run_id, 12)
            assert [survivor.journal.submit(one).result(30) for one in before] == acknowledged[point]
            outcome = survivor.journal.submit(last).exception(30)
            assert (outcome is None) if is_stored[point] else isinstance(outcome, AlreadyTerminated)
            # What recovery has put after them ends the run.
            assert len(links_of(outsider, run_id)) == 12 + is_stored[point]
        assert (await survivor.rebuild()).is_clean


async def test_a_death_while_a_checkpoint_is_signed_leaves_nothing_that_does_not_hold(postgres_url, tmp_path):  # E9
    place = str(tmp_path / "anchored" / "here")
    signing = programs.signing_of(place)
    given = []
    for point in ("checkpoint signed", "checkpoint stored"):
        dying = start(programs.sign_and_die, postgres_url, place, point, 3)
        given += heard_from(dying)
        assert dying.process.exitcode == -signal.SIGKILL
    async with await Ledger.open(postgres_url, lease_s=0.5, signing=signing) as survivor:
        await survivor.checkpoint()
        links = await survivor.reader.on_tree(lambda tree: tree.links(0, 10_000))
    notes = [note.note for note in Anchor(signing.anchor).notes()]
    assert set(given) <= set(notes)
    for note in notes:
        signed = SignedCheckpoint(note).open([signing.key.verifier])
        assert signed.root == root_of(map(leaf_hash, links[: signed.size]))


def heard_from(program):
    """Everything that the program said before it died."""
    said = []
    with contextlib.suppress(EOFError, OSError):
        while True:
            said.append(program.pipe.recv())
    program.process.join(30)
    program.pipe.close()
    return said


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_network_cut_in_mid_commit_is_settled_by_the_ids_of_the_events(proxy, proxied_url, outsider, moment):
    async with await Ledger.open(proxied_url, lease_s=30) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        events = run.events_made
        for number in range(10):
            tool = run.attempt()
            ledger.journal.submit(tool.start()).result(30)
            marker = f"marker {number}"
            to_cut = [marker.encode()]

            def cuts(data, to_cut=to_cut):
                return bool(to_cut) and to_cut[0] in data and bool(to_cut.pop())

            setattr(proxy, moment, cuts)
            recorded = ledger.journal.submit(tool.succeed(marker)).result(30)
            assert not to_cut
            events += 3
            assert recorded.last_seq == events
        assert proxy.cuts == 10
        ledger.journal.submit(run.end()).result(30)
        assert (await ledger.rebuild()).is_clean
    assert len(links_of(outsider, "run-1")) == events + 1


async def test_feedback_whose_answer_was_lost_is_given_once(proxy, proxied_url, outsider):
    async with await Ledger.open(proxied_url, lease_s=30) as ledger:
        for submission in ScriptedRun().whole():
            ledger.journal.submit(submission).result(30)
        to_cut = [b"it was the disk"]
        proxy.after = lambda data: bool(to_cut) and to_cut[0] in data and bool(to_cut.pop())
        assert await ledger.record_feedback("session-1", "run-1", useful=True, comment="it was the disk") is not None
    assert proxy.cuts == 1
    types = outsider.execute("SELECT type, count(*) FROM event WHERE type ~ '^(feedback|case)' GROUP BY 1 ORDER BY 1")
    assert types.fetchall() == [("case.recorded", 1), ("feedback.recorded", 1)]


async def test_while_the_server_is_gone_work_is_refused_and_afterwards_it_goes_on(proxy, proxied_url, outsider):
    async with await Ledger.open(proxied_url, lease_s=30) as ledger:
        ledger._engine.writer._appends._settle_timeout_s = 0.2
        run, other = ScriptedRun("run-1"), ScriptedRun("run-2")
        for one in (run, other):
            ledger.journal.submit(one.start()).result()
        proxy.is_down = True
        proxy.cut_all()
        lost = run.transition("planner")
        assert isinstance(ledger.journal.submit(lost).exception(30), LedgerUnavailable)
        assert isinstance(ledger.journal.submit(run.transition("x")).exception(30), LedgerUnavailable)
        proxy.is_down = False
        assert ledger.journal.submit(other.transition("planner")).result(30).last_seq == 2
        assert isinstance(ledger.journal.submit(run.transition("y")).exception(30), LedgerUnavailable)
        assert ledger.journal.submit(lost._replace(resumes=True)).result(30).last_seq == 2
        assert ledger.journal.submit(run.transition("executor")).result(30).last_seq == 3
        assert len((await ledger.reader.recent_runs()).rows) == 2
    assert len(links_of(outsider, "run-1")) == 3


async def test_cuts_at_any_moment_lose_nothing_that_was_acknowledged(proxy, proxied_url, outsider):
    moments = random.Random(3)
    async with await Ledger.open(proxied_url, lease_s=30) as ledger:
        proxy.before = lambda _: moments.random() < 0.03
        proxy.after = lambda _: moments.random() < 0.03
        runs = [ScriptedRun(f"run-{number}") for number in range(20)]
        acknowledged = {run.run_id: [] for run in runs}

        async def work(run):
            for submission in run.whole():
                acknowledged[run.run_id].append(await asyncio.wrap_future(ledger.journal.submit(submission)))

        await asyncio.gather(*map(work, runs))
        proxy.before = proxy.after = lambda _: False
        assert proxy.cuts > 5
        assert (await ledger.rebuild()).is_clean
    for run_id, recorded in acknowledged.items():
        links = links_of(outsider, run_id)
        assert [links[one.last_seq - 1] for one in recorded] == [one.head_link for one in recorded]
        assert len(links) == recorded[-1].last_seq
