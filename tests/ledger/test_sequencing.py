"""The public order of a database with many writers: no gap, nothing twice, nothing missed (SPEC E8)."""

import asyncio
import itertools

import asyncpg
import pytest

from ledger import Ledger, LedgerReader
from ledger.store.postgres import sequencing
from ledger.store.postgres.sequencing import BY_INDEX, IS_BEHIND, Progress, Sequencer, here_of, sequence
from tests.contract.test_following import record, take
from tests.ledger.scripted import ScriptedRun

SLOW_COMMITS = """
CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.event_id = 'w-slow:2') EXECUTE FUNCTION be_slow()
"""
GAPS = "SELECT count(*), min(leaf_index), max(leaf_index) FROM leaf"
MISSED = "SELECT count(*) FROM event LEFT JOIN leaf USING (stream_id, seq) WHERE leaf_index IS NULL"
ROWS_READ = """
SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables WHERE relname IN ('event', 'leaf')
"""
DISORDER = """
SELECT count(*) FROM leaf AS a JOIN leaf AS b ON a.stream_id = b.stream_id AND a.seq < b.seq
WHERE a.leaf_index > b.leaf_index
"""


@pytest.fixture
async def connect(postgres_url):
    opened = []

    async def connection():
        opened.append(await asyncpg.connect(postgres_url))
        return opened[-1]

    yield connection
    for one in opened:
        await one.close()


@pytest.fixture
def no_sequencer(monkeypatch):
    monkeypatch.setattr(Sequencer, "start", lambda self: None)


async def write_runs(ledger, number, count=5):
    for round_no in range(count):
        run = ScriptedRun(f"run-{number}-{round_no}", f"session-{number}", writer_id=f"w{number}-{round_no}")
        for submission in run.whole():
            await record(ledger, submission)


async def sequence_all(connection, limit=5_000):
    numbered, progress = 0, Progress()
    while True:
        added, has_more = await sequence(connection, await here_of(connection), limit, progress)
        numbered += added
        if not has_more:
            return numbered


async def check_order(connection):
    """Every event has one number, from 0 without a gap, and each stream's are in its order."""
    count, first, last = await connection.fetchrow(GAPS)
    assert (first, last) == (0, count - 1)
    assert await connection.fetchval(MISSED) == 0
    assert await connection.fetchval(DISORDER) == 0
    assert await connection.fetchval("SELECT size FROM tree_head") == count
    return count


async def test_what_commits_late_gets_a_later_place_and_nobody_misses_it(postgres_url, connect):  # CASES 34
    outsider = await connect()
    async with await Ledger.open(postgres_url) as ledger:
        await outsider.execute(SLOW_COMMITS)
        slow, quick = ScriptedRun("slow", writer_id="w-slow"), ScriptedRun("quick", writer_id="w-quick")
        await record(ledger, slow.start())
        await record(ledger, quick.start())
        seen = []

        async def follow():
            async for _, event in ledger.reader.follow():
                seen.append(event.event_id)

        following = asyncio.ensure_future(follow())
        late = asyncio.ensure_future(record(ledger, slow.transition("late")))
        await asyncio.sleep(0.2)
        for number in range(20):
            await record(ledger, quick.transition(f"n{number}"))
        assert not late.done()
        async with asyncio.timeout(20):
            while "w-quick:21" not in seen:
                await asyncio.sleep(0.01)
            assert "w-slow:2" not in seen
            await late
            while "w-slow:2" not in seen:
                await asyncio.sleep(0.01)
        following.cancel()
        pos = dict(await outsider.fetch("SELECT event_id, pos FROM event"))
        assert pos["w-slow:2"] < pos["w-quick:21"]
        assert seen.index("w-slow:2") > seen.index("w-quick:21")
        assert len(seen) == len(set(seen)) == len(pos)
        await check_order(outsider)


async def test_sixteen_writers_two_ledgers_and_two_more_sequencers_make_one_order(postgres_url, connect):  # E8
    first, second = await connect(), await connect()
    async with await Ledger.open(postgres_url) as ledger, await Ledger.open(postgres_url) as other:
        is_done = False

        async def keep_sequencing(connection):
            while not is_done:
                await sequence(connection, await here_of(connection), 7)

        extra = [asyncio.ensure_future(keep_sequencing(connection)) for connection in (first, second)]
        async with await LedgerReader.open(postgres_url) as reader:
            following = asyncio.ensure_future(take(reader.follow(), 16 * 3 * len(list(ScriptedRun().whole()))))
            await asyncio.gather(*(write_runs((ledger, other)[number % 2], number, 3) for number in range(16)))
            seen = await following
        is_done = True
        await asyncio.gather(*extra)
    assert [place for place, _ in seen] == list(range(len(seen)))
    assert await check_order(first) >= len(seen)
    rows = await first.fetch(
        "SELECT event_id FROM leaf JOIN event USING (stream_id, seq) ORDER BY leaf_index LIMIT $1", len(seen)
    )
    assert [event.event_id for _, event in seen] == [row[0] for row in rows]


async def test_a_write_that_stays_open_elsewhere_holds_nobody_up(postgres_url, connect):  # E8
    holding, looking = await connect(), await connect()
    await holding.execute("CREATE TABLE other (n int)")
    async with await Ledger.open(postgres_url) as ledger, holding.transaction():
        await holding.execute("INSERT INTO other VALUES (1)")
        await write_runs(ledger, 1)
        events = await looking.fetchval("SELECT count(*) FROM event")
        seen = await take(ledger.reader.follow(), events)
        assert len(seen) == events
    await check_order(looking)


@pytest.mark.parametrize("limit", [1, 3, 1_000])
@pytest.mark.usefixtures("no_sequencer")
async def test_what_waited_is_numbered_in_passes_of_any_size(postgres_url, connect, limit):  # E8
    connection = await connect()
    async with await Ledger.open(postgres_url) as ledger:
        await write_runs(ledger, 1, 2)
        run = ScriptedRun("big", writer_id="w-big")
        await record(ledger, run.start())
        await record(ledger, run.submission(*(run.transition(f"n{number}").events[0] for number in range(50))))
        await write_runs(ledger, 2, 2)
        assert await sequence_all(connection, limit) == await connection.fetchval("SELECT count(*) FROM event")
        assert await sequence_all(connection, limit) == 0
    await check_order(connection)


@pytest.mark.usefixtures("no_sequencer")
async def test_in_another_cluster_nothing_is_taken_for_numbered(postgres_url, connect):  # E8
    connection = await connect()
    async with await Ledger.open(postgres_url) as ledger:
        await write_runs(ledger, 1, 1)
        before = await sequence_all(connection)
        await write_runs(ledger, 2, 1)
        await connection.execute("UPDATE tree_head SET watermark = '9000000000', system_identifier = 7")
        assert await sequence_all(connection) > 0
        assert await check_order(connection) > before
        head = await connection.fetchrow("SELECT watermark::text::bigint, system_identifier FROM tree_head")
        assert head[0] < 9_000_000_000
        assert head[1] == await connection.fetchval("SELECT system_identifier FROM pg_control_system()")


async def test_while_another_sequencer_is_at_work_one_does_nothing(postgres_url, connect):
    holding, other = await connect(), await connect()
    async with await Ledger.open(postgres_url) as ledger:
        async with holding.transaction():
            await holding.fetch("SELECT * FROM tree_head FOR UPDATE")
            await write_runs(ledger, 1, 1)
            assert await sequence(other, await here_of(other)) == (0, False)
            assert await ledger.reader.last_leaf() == -1
        events = await other.fetchval("SELECT count(*) FROM event")
        assert len(await take(ledger.reader.follow(), events)) == events


async def test_while_nothing_happens_nothing_is_written(postgres_url, connect):
    connection = await connect()
    async with await Ledger.open(postgres_url) as ledger:
        await write_runs(ledger, 1, 1)
        events = await connection.fetchval("SELECT count(*) FROM event")
        await take(ledger.reader.follow(), events)
        heads = set()
        for _ in itertools.repeat(None, 10):
            heads.add(tuple(await connection.fetchrow("SELECT xmin::text, xmax::text, size FROM tree_head")))
            await asyncio.sleep(0.05)
        assert len(heads) <= 2


async def test_what_is_appended_last_is_numbered_before_the_ledger_is_closed(postgres_url, connect):
    connection = await connect()
    async with await Ledger.open(postgres_url) as ledger:
        for submission in ScriptedRun().whole():
            ledger.journal.submit(submission)
    await check_order(connection)


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE leaf SET leaf_index = leaf_index + 1000",
        "DELETE FROM leaf",
        "TRUNCATE leaf",
        "DELETE FROM tree_head",
        "TRUNCATE tree_head",
        "UPDATE tree_head SET size = size - 1",
        "INSERT INTO leaf SELECT 10000, stream_id, seq FROM leaf LIMIT 1",
        "SET session_replication_role = replica; DELETE FROM leaf",
    ],
)
async def test_a_place_that_was_given_never_changes(postgres_url, connect, attack):  # E8
    connection = await connect()
    async with await Ledger.open(postgres_url) as ledger:
        await write_runs(ledger, 1, 1)
    before = await connection.fetch("SELECT * FROM leaf ORDER BY leaf_index")
    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await connection.execute(attack)
    assert await connection.fetch("SELECT * FROM leaf ORDER BY leaf_index") == before


async def test_while_no_order_can_be_given_it_is_said_once_and_then_all_is_made_up_for(postgres_url, connect, caplog):
    def warnings():
        return [record for record in caplog.records if "public order" in record.message]

    connection = await connect()
    async with await Ledger.open(postgres_url) as ledger:
        run = ScriptedRun()
        for times in (1, 2):
            await connection.execute("ALTER TABLE tree_head RENAME TO hidden")
            ledger.journal.submit(run.start() if times == 1 else run.transition("n")).result()
            await asyncio.sleep(1)
            await connection.execute("ALTER TABLE hidden RENAME TO tree_head")
            async with asyncio.timeout(5):
                while await connection.fetchval(MISSED):
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.2)
            assert len(warnings()) == times


async def test_while_a_long_transaction_is_open_events_go_on_to_be_numbered_however_many(postgres_url, connect):  # E8
    async with await Ledger.open(postgres_url) as ledger:
        other, connection = await connect(), await connect()
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        await other.execute("BEGIN; SELECT pg_current_xact_id()")
        here = await here_of(connection)
        async with asyncio.timeout(20):
            for number in range(12):
                ledger.journal.submit(run.transition(f"n{number}")).result()
                while await connection.fetchval(MISSED):
                    await sequence(connection, here, limit=2)
            while (await sequence(connection, here, limit=2))[1]:
                pass
        await other.execute("ROLLBACK")


async def rows_read(connection, work):
    """How many events and numbers of events the server looks at for it, and what it says."""
    async with connection.transaction():
        before = await connection.fetchval(ROWS_READ)
        said = await work
        return await connection.fetchval(ROWS_READ) - before, said


@pytest.mark.usefixtures("no_sequencer")
async def test_a_pass_looks_at_what_came_since_the_last_one_however_long_a_transaction_stays_open(
    postgres_url, connect
):  # E8
    connection, other = await connect(), await connect()
    for name, value in BY_INDEX.items():
        await connection.execute(f"SET {name} = {value}")
    here, progress = await here_of(connection), Progress()
    async with await Ledger.open(postgres_url) as ledger:
        await other.execute("BEGIN; SELECT pg_current_xact_id()")
        run = ScriptedRun()
        await record(ledger, run.start())
        for _ in range(3):
            for number in range(100):
                await record(ledger, run.transition(f"n{number}"))
            await sequence(connection, here, progress=progress)
        await record(ledger, run.transition("one more"))
        is_behind = connection.fetchval(IS_BEHIND, *progress.from_watermark(0), here.cluster)
        looked_at, said = await rows_read(connection, is_behind)
        assert said is True
        assert looked_at < 20
        looked_at, said = await rows_read(connection, sequence(connection, here, progress=progress))
        assert said == (1, False)
        assert looked_at < 20
        # Who has seen nothing yet looks at everything since that transaction began.
        looked_at, said = await rows_read(connection, sequence(connection, here))
        assert said == (0, False)
        assert looked_at > 300
        await other.execute("ROLLBACK")
    await check_order(connection)


async def test_what_comes_while_a_sequencer_rests_has_its_number_when_the_ledger_is_closed(
    postgres_url, connect, monkeypatch
):  # E8
    monkeypatch.setattr(sequencing, "REST_S", 1.0)
    connection, run = await connect(), ScriptedRun()
    async with await Ledger.open(postgres_url) as ledger:
        await record(ledger, run.start())
        async with asyncio.timeout(20):
            while await connection.fetchval(MISSED):
                await asyncio.sleep(0.01)
        await record(ledger, run.transition("while it rests"))
        assert await connection.fetchval(MISSED) == 1
    await check_order(connection)
