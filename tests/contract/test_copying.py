"""A ledger goes on elsewhere as it was: same positions, links, contents and rows, and only one of the two goes on."""

import asyncio

import asyncpg
import pytest

from ledger import Ledger, LedgerNotLive, LedgerReader, LedgerUnreadable, schema
from ledger.copies.copying import copy
from ledger.errors import LedgerDamaged, LedgerInUse, UnsupportedUrl
from ledger.store.postgres import copying
from ledger.verifying import verify
from tests.contract.databases import PostgresOutsider, SqliteOutsider
from tests.contract.test_following import ordered
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun

MADE_THERE = {"ledger_meta", "alembic_version", "owner", "leaf", "tree_head", "run_text"}
"""Who is alive is not copied; the public order follows from the positions, and the search index from contents."""
LOG = "SELECT pos, stream_id, seq, event_id, body, link FROM event ORDER BY pos"


@pytest.fixture
def source(tmp_path):
    return blank_at(tmp_path / "source.db")


@pytest.fixture(params=["sqlite", "postgres"])
def target(request, tmp_path):
    """Where there is no ledger yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'target.db'}"
        return
    server = request.getfixturevalue("postgres_server")
    name = server.create_database()
    yield server.url(name)
    server.drop_database(name)


@pytest.fixture
async def recorded(source):
    """Runs that take turns in the log, one of them open, one erased; feedback, and more than one piece of events."""
    async with await Ledger.open(source) as ledger:
        runs = [ScriptedRun(f"run-{number}", f"session-{number % 3}", writer_id=f"w{number}") for number in range(20)]
        for submissions in zip(*(run.whole() for run in runs), strict=True):
            for submission in submissions:
                ledger.journal.submit(submission)
        big = ScriptedRun("run-big")
        for submission in (big.start(), big.answer("x" * 100_000), *(big.transition(f"n{n}") for n in range(1_200))):
            ledger.journal.submit(submission)
        await ledger.record_feedback("session-1", "run-1", useful=True, comment="it was the disk")
        await ledger.erase(run=("session-2", "run-2"))
    return source


def rows(url, statement):
    outsider = (
        PostgresOutsider(url) if url.startswith("postgresql:") else SqliteOutsider(url.removeprefix("sqlite:///"))
    )
    found = outsider.execute(statement).fetchall()
    outsider.close()
    return found


async def test_the_log_is_the_same_at_every_position_and_goes_on(recorded, target):
    heard = []
    report = await copy(recorded, target, on_progress=lambda done, of: heard.append((done, of)))
    assert report.verified.is_right
    assert rows(target, LOG) == rows(str(recorded), LOG)
    assert heard
    before = report.verified.event_count
    async with await Ledger.open(target) as ledger:
        ledger.journal.submit(ScriptedRun("run-99").start()).result()
        trace = await ledger.reader.trace("session-1", "run-1")
        assert (trace.answer.text, trace.run.summary.status) == ("The disk is full.", "SUCCESS")
    assert [row[0] for row in rows(target, LOG)][: before + 1] == [*range(1, before + 2)]
    assert (await verify(target)).findings == ()


async def test_of_two_copies_only_one_goes_on(recorded, target):
    await copy(recorded, target)
    with pytest.raises(LedgerNotLive, match="was moved elsewhere"):
        await Ledger.open(recorded)
    with pytest.raises(LedgerNotLive):
        await copy(recorded, target + "2")
    async with await LedgerReader.open(recorded) as reader:
        assert len((await reader.recent_runs()).rows) == 21


async def test_the_public_order_goes_on_and_so_do_its_followers(recorded, target):  # E8
    sent = []

    async def send(events):
        sent.extend((place, event.event_id) for place, event in events)

    async def follow(url, count):
        async with await Ledger.open(url) as ledger:
            following = asyncio.ensure_future(ledger.followers.deliver("export", send))
            async with asyncio.timeout(20):
                while (await ledger.followers.places()).get("export", -1) < count - 1:
                    await asyncio.sleep(0.01)
            following.cancel()
            await asyncio.wait([following])

    count = len(rows(str(recorded), LOG))
    await follow(recorded, count)
    there = list(sent)
    await copy(recorded, target)
    async with await Ledger.open(target) as ledger:
        ledger.journal.submit(ScriptedRun("run-99").start()).result()
        await ordered(ledger, count + 1)
        page = await ledger.reader.follow().page(count)
        assert [(place, event.event_id) for place, event in page] == there[: len(page)]
    await follow(target, count + 1)
    assert [place for place, _ in sent] == list(range(len(sent)))


async def test_tokens_go_along_and_so_do_those_who_have_signed_in(recorded, target):
    async with await Ledger.open(recorded) as ledger:
        made, bearer = await ledger.tokens.make("ops-1", ["read"])
        session = await ledger.tokens.enter(await ledger.tokens.link(made.token_id))
    await copy(recorded, target)
    async with await Ledger.open(target) as ledger:
        assert await ledger.tokens.by_bearer(bearer) == made
        assert await ledger.tokens.by_session(session) == made


async def test_tables_that_are_not_the_ledgers_are_named_where_they_stay_behind(recorded, target, tmp_path):
    outsider = SqliteOutsider(str(recorded))
    outsider.execute("CREATE TABLE applied (leaf_index INTEGER)")
    outsider.close()
    report = await copy(recorded, target)
    if not target.startswith("postgresql:"):
        assert report.left_behind == ()
        assert rows(target, "SELECT count(*) FROM applied") == [(0,)]
        return
    assert report.left_behind == ("applied",)
    outsider = PostgresOutsider(target)
    outsider.execute("CREATE TABLE applied_there (leaf_index INTEGER)")
    outsider.close()
    assert (await copy(target, tmp_path / "back.db")).left_behind == ("applied_there",)


async def test_the_source_may_be_kept_on_ones_own_responsibility(recorded, target):
    assert not (await copy(recorded, target, keeps_source=True)).is_moved
    await (await Ledger.open(recorded)).close()


async def test_an_empty_ledger_can_be_copied(source, target):
    await copy(source, target)
    async with await Ledger.open(target) as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
    assert rows(target, LOG)[0][0] == 1


async def test_what_is_there_already_is_not_overwritten(recorded, target):
    await (await Ledger.open(target)).close()
    with pytest.raises(LedgerUnreadable, match="nothing is overwritten"):
        await copy(recorded, target)
    assert rows(target, LOG) == []
    await (await Ledger.open(recorded)).close()


async def test_a_ledger_that_a_process_has_open_is_not_copied(recorded, target):
    async with await Ledger.open(recorded):
        with pytest.raises(LedgerInUse):
            await copy(recorded, target)


async def test_a_wrong_ledger_is_not_moved(recorded, target):
    outsider = SqliteOutsider(recorded)
    outsider.execute("UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'")
    outsider.close()
    with pytest.raises(LedgerDamaged, match=r"diagnosis_run\.status"):
        await copy(recorded, target)
    await (await Ledger.open(recorded)).close()


async def test_what_fails_on_the_way_leaves_nothing_in_the_database(recorded, postgres_server):
    url = postgres_server.url(postgres_server.create_database())

    def fail(done, of):
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError):
        await copy(recorded, url, on_progress=fail)
    assert rows(url, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == [(0,)]
    await copy(recorded, url)


async def test_what_the_database_made_of_the_rows_is_read_back(recorded, postgres_server, monkeypatch):
    url = postgres_server.url(postgres_server.create_database())
    copy_records = asyncpg.Connection.copy_records_to_table

    async def alter(connection, table, *, records, columns):
        records = [("other", *row[1:]) if table == "case_library" else row for row in records]
        return await copy_records(connection, table, records=records, columns=columns)

    monkeypatch.setattr(asyncpg.Connection, "copy_records_to_table", alter)
    with pytest.raises(LedgerUnreadable, match="other rows of case_library"):
        await copy(recorded, url)


async def test_in_a_database_every_event_has_at_once_the_place_that_it_had(recorded, postgres_server):  # E8
    url = postgres_server.url(postgres_server.create_database())
    async with await LedgerReader.open(recorded) as reader:
        page = await reader.follow().page(5_000)
    await copy(recorded, url)
    async with await LedgerReader.open(url) as reader:
        vitals = await reader.vitals()
        assert (vitals.last_leaf, vitals.unsequenced) == (page[-1][0], 0)
        assert await reader.follow().page(5_000) == page
    order = rows(url, "SELECT leaf_index, pos - 1 FROM event LEFT JOIN leaf USING (stream_id, seq) ORDER BY pos")
    assert order == [(place, place) for place in range(len(order))]
    async with await Ledger.open(url) as ledger:
        ledger.journal.submit(ScriptedRun("run-99").start()).result()
        await ordered(ledger, len(order) + 1)
    (head,) = rows(url, "SELECT size FROM tree_head")
    places = rows(url, "SELECT leaf_index FROM leaf ORDER BY leaf_index")
    assert places == [(place,) for place in range(head[0])]
    assert rows(url, "SELECT leaf_index FROM leaf LEFT JOIN event USING (stream_id, seq) WHERE pos IS NULL") == []


async def test_every_table_is_copied_or_is_made_there(postgres_url):
    there = rows(postgres_url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    copied = {table.name for table in copying.WHOLE}
    assert copied | {"ledger_meta"} == set(schema.metadata.tables)
    assert {name for (name,) in there} - copied == MADE_THERE


IN_ORDER = "SELECT leaf_index + 1, stream_id, seq, event_id, body, link FROM leaf JOIN event USING (stream_id, seq)"
SAME_ELSEWHERE = [table for table in copying.WHOLE if table.name not in ("event", "stream")]


@pytest.fixture
async def grown(recorded, postgres_url, postgres_server):
    """A ledger in a database, copied there, in which more happened; its positions have a gap."""
    url = postgres_server.url(postgres_server.create_database())
    await copy(recorded, url)
    rows(url, "SELECT nextval(pg_get_serial_sequence('event', 'pos')) FROM generate_series(1, 7)")
    async with await Ledger.open(url) as ledger:
        for submission in ScriptedRun("run-99").whole():
            ledger.journal.submit(submission).result()
        await ledger.erase(run=("session-0", "run-3"))
    yield url
    postgres_server.drop_database(url.rpartition("/")[2])


async def test_out_of_a_database_every_event_comes_to_its_place_in_the_public_order(grown, tmp_path):  # E8
    target, heard = tmp_path / "back.db", []
    report = await copy(grown, target, on_progress=lambda done, of: heard.append((done, of)))
    assert report.verified.is_right
    assert list(tmp_path.glob("back.db*")) == [target]
    assert (report.verified.event_count,) * 2 in heard
    assert rows(str(target), LOG) == rows(grown, IN_ORDER + " ORDER BY leaf_index")
    assert rows(str(target), LOG) != rows(grown, LOG)
    for table in SAME_ELSEWHERE:
        statement = copying.read_all(table)
        there = copying.read_all(table, json="::text")
        assert rows(str(target), statement) == rows(grown, there), table.name
    with pytest.raises(LedgerNotLive, match="was moved elsewhere"):
        await Ledger.open(grown)
    async with await Ledger.open(target) as ledger:
        ledger.journal.submit(ScriptedRun("run-100").start()).result()
        assert (await ledger.reader.trace("session-1", "run-1")).answer.text == "The disk is full."
    assert (await verify(target)).findings == ()


async def test_a_database_that_a_process_has_open_is_not_copied_and_nobody_can_open_it_meanwhile(grown, tmp_path):
    async with await Ledger.open(grown):
        with pytest.raises(LedgerInUse):
            await copy(grown, tmp_path / "back.db")
    opening = []

    def open_it(done, of):
        if not opening:
            opening.append(asyncio.ensure_future(Ledger.open(grown)))

    await copy(grown, tmp_path / "back.db", on_progress=open_it)
    with pytest.raises(LedgerNotLive, match="was moved elsewhere"):
        await opening[0]


async def test_what_fails_on_the_way_out_leaves_no_file_and_the_database_as_it_was(grown, tmp_path):
    def fail(done, of):
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError):
        await copy(grown, tmp_path / "folder" / "back.db", on_progress=fail)
    assert list((tmp_path / "folder").iterdir()) == []
    await (await Ledger.open(grown)).close()


async def test_from_one_database_to_another_pg_dump_copies(postgres_url):
    with pytest.raises(UnsupportedUrl, match="pg_dump"):
        await copy(postgres_url, postgres_url + "2")
