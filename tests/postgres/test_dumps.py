"""A ledger that `pg_dump` and `pg_restore` carried elsewhere is whole, and goes on only when somebody says so (D19)."""

import json

import pytest
from click.testing import CliRunner

from ledger import Ledger, LedgerNotLive, LedgerReader, Signing, failpoints
from ledger.audit.notes.notes import SigningKey
from ledger.cli.backup import adopt as adopt_command
from ledger.copies.adopting import adopt
from ledger.doctor import examine
from ledger.erasing.erasures import ErasureList, lines_of
from ledger.errors import InvalidErasureList, LedgerDamaged, LedgerNotRestored, UnsupportedUrl
from ledger.verifying import verify
from tests.contract.databases import PostgresOutsider
from tests.contract.test_following import all_ordered, ordered
from tests.ledger.scripted import ScriptedRun
from tests.servers.postgres import PostgresServer

SECRET = "the password is hunter2"
LOG = "SELECT leaf_index, stream_id, seq, event_id, body, link FROM leaf JOIN event USING (stream_id, seq)"


@pytest.fixture(scope="module")
def other_server():
    """Another cluster."""
    server = PostgresServer(is_durable=False).start()
    yield server
    server.stop()


@pytest.fixture
async def source(postgres_server):
    """A ledger that is open while it is dumped: a run that has ended and one that goes on."""
    name = postgres_server.create_database()
    async with await Ledger.open(postgres_server.url(name)) as ledger:
        run = ScriptedRun()
        for submission in (run.start(), run.answer(SECRET), run.end()):
            ledger.journal.submit(submission).result()
        ledger.journal.submit(ScriptedRun("run-2", writer_id="w2").start()).result()
        await ordered(ledger, 5)
        yield ledger, name
    postgres_server.drop_database(name)


@pytest.fixture
def restored(request, source, postgres_server, other_server):
    """The address of the database that a dump was restored into, in another cluster unless a test names one."""
    _, name = source
    dump = postgres_server.dump(name)
    server = postgres_server if getattr(request, "param", None) == "the same cluster" else other_server
    restored = server.restore(dump)
    yield server.url(restored)
    server.drop_database(restored)


@pytest.fixture
async def erasures(source, restored, tmp_path):
    """What was erased in the other ledger since."""
    ledger, _ = source
    await ledger.erase(run=("session-1", "run-1"), actor="dpo-1")
    path = tmp_path / "erasures.jsonl"
    path.write_bytes(b"".join([line async for line in lines_of(ledger.reader, await ledger.reader.ledger_id())]))
    return path


def rows(url, statement):
    outsider = PostgresOutsider(url)
    found = outsider.execute(statement).fetchall()
    outsider.close()
    return found


@pytest.mark.parametrize("restored", ["another cluster", "the same cluster"], indirect=True)
async def test_what_was_restored_is_whole_and_can_be_read_but_not_written(restored):
    assert (await verify(restored)).findings == ()
    async with await LedgerReader.open(restored) as reader:
        assert (await reader.trace("session-1", "run-1")).answer.text == SECRET
    with pytest.raises(LedgerNotLive, match="tachograph adopt"):
        await Ledger.open(restored)
    assert "run `tachograph adopt`" in {fact.name: fact.advice for fact in await examine(restored)}["standing"]


async def test_no_token_of_a_dump_opens_what_is_adopted(source, postgres_server):
    ledger, name = source
    _, bearer = await ledger.tokens.make("ops-1", ["read"])
    restored = postgres_server.restore(postgres_server.dump(name))
    await adopt(postgres_server.url(restored))
    async with await Ledger.open(postgres_server.url(restored)) as adopted:
        assert await adopted.tokens.by_bearer(bearer) is None
        assert await adopted.tokens.are_any()
    assert await ledger.tokens.by_bearer(bearer) is not None
    postgres_server.drop_database(restored)


async def test_what_is_adopted_goes_on_by_itself_without_what_was_erased_since(source, restored, erasures):
    before = rows(restored, LOG + " ORDER BY leaf_index")
    report = await adopt(restored, erasures=ErasureList(erasures))
    assert report.erasures_repeated == 1
    async with await Ledger.open(restored) as ledger:
        said = await ledger.reader.system_events()
        assert [event.type for event in said] == ["ledger.restored", "erasure.decided", "erasure.finished"]
        assert said[0].fields["event_count"] == len(before)
        ended, going = [await ledger.reader.trace("session-1", f"run-{number}") for number in (1, 2)]
        assert (ended.answer.state, ended.answer.erasure.actor) == ("erased", "dpo-1")
        assert going.run.outcome_reason == "HARNESS_LOST"
        ledger.journal.submit(ScriptedRun("run-3", writer_id="w3").start()).result()
        await all_ordered(ledger)
    after = rows(restored, LOG + " ORDER BY leaf_index")
    assert after[: len(before)] == before
    assert [row[0] for row in after] == list(range(len(after)))
    assert (await verify(restored)).findings == ()
    # The other one has heard of nothing.
    source[0].journal.submit(ScriptedRun("run-4", writer_id="w4").start()).result()


async def test_an_adoption_that_was_cut_short_is_ended_by_the_next_one(source, restored, erasures, tmp_path):
    ledger, _ = source
    run = ScriptedRun("run-2", writer_id="w2", epoch_us=0)
    run.start()
    ledger.journal.submit(run.end()).result()
    await ledger.erase_older_than(0)
    # In what was restored the run goes on, and ends only as its owner is found to be dead: after all that was erased.
    erasures.write_bytes(b"".join([line async for line in lines_of(ledger.reader, await ledger.reader.ledger_id())]))

    class CutShort(Exception):
        pass

    def cut_short():
        raise CutShort

    failpoints.arm("erasures decided again", cut_short)
    try:
        with pytest.raises(CutShort):
            await adopt(restored, erasures=ErasureList(erasures))
    finally:
        failpoints.disarm()
    report = await adopt(restored, erasures=ErasureList(erasures))
    async with await Ledger.open(restored) as adopted:
        said = await adopted.reader.system_events()
        assert [event.type for event in said].count("ledger.restored") == 1
        assert said[0].fields["restore_id"] == report.restore_id
        for number in (1, 2):
            events = await adopted.reader.events("session-1", f"run-{number}")
            digests = [event.fields["query_digest"] for event in events if event.type == "run.started"]
            found = await adopted.reader.contents("session-1", f"run-{number}", digests)
            assert {content.state for content in found.values()} == {"erased"}


async def test_what_is_adopted_is_signed_under_an_origin_of_its_own(source, restored, postgres_server, tmp_path):
    key = SigningKey("log.example/1", bytes(32))
    signing = Signing(key=key, anchor=tmp_path / "anchor")
    report = await adopt(restored)
    for name, url in (
        ("log.example/1", postgres_server.url(source[1])),
        (f"log.example/1/{report.restore_id}", restored),
    ):
        async with await Ledger.open(url, signing=signing) as ledger:
            assert (await ledger.checkpoint()).open([key.verifier]).origin == name


async def test_only_what_was_restored_and_is_right_is_adopted(source, restored, postgres_server, tmp_path):
    with pytest.raises(LedgerNotRestored, match="is where it was made"):
        await adopt(postgres_server.url(source[1]))
    with pytest.raises(UnsupportedUrl, match="tachograph restore"):
        await adopt(str(tmp_path / "runs.db"))
    (tmp_path / "list").write_text("{}")
    with pytest.raises(InvalidErasureList):
        await adopt(restored, erasures=ErasureList(tmp_path / "list"))
    rows(restored, "UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'")
    with pytest.raises(LedgerDamaged, match=r"diagnosis_run\.status"):
        await adopt(restored)
    with pytest.raises(LedgerNotLive):
        await Ledger.open(restored)
    rows(restored, "UPDATE diagnosis_run SET status = 'SUCCESS' WHERE run_id = 'run-1'")
    assert (await adopt(restored)).verified.is_right
    await (await Ledger.open(restored)).close()


def test_the_command_says_what_became_of_it(restored, erasures):
    result = CliRunner().invoke(adopt_command, ["--db", restored, "--erasures", str(erasures), "--json"])
    assert (result.exit_code, json.loads(result.stdout)["erasures_repeated"]) == (0, 1)
    again = CliRunner().invoke(adopt_command, ["--db", restored])
    assert (again.exit_code, "is where it was made" in again.stderr) == (2, True)
