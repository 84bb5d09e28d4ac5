"""Named followers go on where they were: nothing is applied twice or skipped, whatever happens (SPEC E8)."""

import asyncio
import contextlib
import sqlite3

import asyncpg
import pytest

from harness.errors import InvalidInput, LedgerUnavailable
from tests.contract.test_following import ordered, record, record_many
from tests.faults import programs
from tests.faults.processes import start
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import PROJECTIONS, dump


class Copy:
    """A table in the ledger's database that a follower fills, in the way of each driver."""

    def __init__(self, database, outsider):
        self.is_postgres = database.is_postgres
        self.outsider = outsider
        self.fails_at = None
        self.pages = []
        outsider.execute("CREATE TABLE applied (leaf_index INTEGER)")

    @property
    def write(self):
        return self._write_async if self.is_postgres else self._write

    def rows(self):
        return [row[0] for row in self.outsider.execute("SELECT leaf_index FROM applied ORDER BY leaf_index")]

    def _write(self, connection, events):
        connection.executemany("INSERT INTO applied VALUES (?)", [(place,) for place, _ in events])
        self._note(events)

    async def _write_async(self, connection, events):
        await connection.executemany("INSERT INTO applied VALUES ($1)", [(place,) for place, _ in events])
        self._note(events)

    def _note(self, events):
        self.pages.append([place for place, _ in events])
        if self.fails_at is not None and events[-1][0] >= self.fails_at:
            raise RuntimeError("on purpose")


@pytest.fixture
def copy(database, ledger, plain):
    return Copy(database, plain())


@pytest.fixture
def run():
    return ScriptedRun()


@contextlib.asynccontextmanager
async def going(work):
    task = asyncio.ensure_future(work)
    yield task
    task.cancel()
    await asyncio.wait([task])


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_what_is_applied_and_the_place_are_one_transaction(ledger, copy, run):  # E8, CASES 35
    await record(ledger, run.start())
    await record_many(ledger, run, 300)
    async with going(ledger.followers.apply("copy", copy.write)):
        await until(lambda: len(copy.rows()) == 302)
        await record(ledger, run.transition("more"))
        await until(lambda: len(copy.rows()) == 303)
    assert copy.rows() == list(range(303))
    assert await ledger.followers.places() == {"copy": 302}


async def test_what_a_follower_raises_undoes_what_it_applied_and_is_told(ledger, copy, run):  # CASES 35
    await record(ledger, run.start())
    await record_many(ledger, run, 300)
    await ordered(ledger, 302)
    copy.fails_at = 290
    with pytest.raises(RuntimeError, match="on purpose"):
        await ledger.followers.apply("copy", copy.write)
    applied = copy.rows()
    assert applied == list(range(len(applied)))
    assert len(applied) < 290
    assert await ledger.followers.places() == ({"copy": applied[-1]} if applied else {})
    copy.fails_at = None
    async with going(ledger.followers.apply("copy", copy.write)):
        await until(lambda: len(copy.rows()) >= 302)
    assert copy.rows() == list(range(302))


async def test_two_under_one_name_apply_each_event_once(database, ledger, copy, run):  # CASES 35
    await record(ledger, run.start())
    async with (
        await database.open() as other,
        going(ledger.followers.apply("copy", copy.write)),
        going(other.followers.apply("copy", copy.write)),
    ):
        for number in range(50):
            await record(ledger, run.transition(f"n{number}"))
        await until(lambda: len(copy.rows()) >= 52)
        await asyncio.sleep(0.2)
    assert copy.rows() == list(range(52))


async def test_followers_of_several_names_go_each_at_its_own_pace(ledger, copy, run):  # E8
    await record(ledger, run.start())
    sent = []

    async def send(events):
        sent.extend(place for place, _ in events)

    async with going(ledger.followers.deliver("export", send)), going(ledger.followers.apply("copy", copy.write)):
        await until(lambda: len(sent) == len(copy.rows()) == 2)
    await record(ledger, run.transition("more"))
    async with going(ledger.followers.deliver("export", send)):
        await until(lambda: len(sent) == 3)
        async with asyncio.timeout(20):
            while (await ledger.followers.places())["export"] != 2:
                await asyncio.sleep(0.01)
    assert await ledger.followers.places() == {"copy": 1, "export": 2}
    assert await ledger.followers.forget("export")
    assert not await ledger.followers.forget("export")
    assert await ledger.followers.places() == {"copy": 1}


async def test_a_named_follower_may_follow_one_run(ledger, copy, run):  # E8
    other = ScriptedRun("run-2", writer_id="w2")
    for submission in (run.start(), other.start(), run.end(), other.end()):
        await record(ledger, submission)
    sent = []

    async def send(events):
        sent.extend(event.event_id for _, event in events)

    async with going(ledger.followers.deliver("one", send, run=("session-1", "run-2"))):
        await until(lambda: len(sent) == 2)
    assert sent == ["w2:1", "w2:2"]


async def test_places_lie_outside_what_a_rebuild_makes_anew(ledger, copy, run, plain):  # E1
    for submission in run.whole():
        await record(ledger, submission)
    async with going(ledger.followers.apply("copy", copy.write)):
        await until(lambda: len(copy.rows()) == run.events_made + 1)
    before = dump(plain(), *PROJECTIONS), await ledger.followers.places()
    assert (await ledger.rebuild()).is_clean
    assert (dump(plain(), *PROJECTIONS), await ledger.followers.places()) == before


async def test_a_follower_killed_between_applying_and_checkpointing_applies_nothing_twice(
    database, ledger, copy, run
):  # CASES 35
    await record(ledger, run.start())
    await record_many(ledger, run, 400)
    await ordered(ledger, 402)
    for stop_at in (100, 300):
        follower = start(programs.apply_until_killed, database.url, stop_at)
        assert await asyncio.to_thread(follower.pipe.poll, 30)
        follower.process.kill()
        await asyncio.to_thread(follower.process.join)
        # A database learns of its client's death in its own time.
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(LedgerUnavailable):
                    places = await ledger.followers.places()
                    break
        applied = copy.rows()
        assert applied == list(range(places.get("copy", -1) + 1))
    async with going(ledger.followers.apply("copy", copy.write)):
        await until(lambda: len(copy.rows()) >= 402)
    assert copy.rows() == list(range(402))


async def test_a_follower_whose_effects_are_elsewhere_skips_nothing_when_it_is_killed(
    database, ledger, run
):  # CASES 35
    await record(ledger, run.start())
    await record_many(ledger, run, 400)
    await ordered(ledger, 402)
    sent = []
    for stop_at in (100, 300, 401):
        follower = start(programs.deliver_until_killed, database.url, stop_at)
        pages = []
        while not pages or pages[-1][-1] < stop_at:
            assert await asyncio.to_thread(follower.pipe.poll, 30)
            pages.append(follower.pipe.recv())
        follower.process.kill()
        await asyncio.to_thread(follower.process.join)
        assert not sent or pages[0][0] <= max(sent) + 1
        sent += [place for page in pages for place in page]
    assert sorted(set(sent)) == list(range(402))


@pytest.mark.parametrize(
    "attack",
    [
        "COMMIT",
        "ROLLBACK",
        "UPDATE diagnosis_run SET status = 'SUCCESS'",
        "DELETE FROM agent_step",
        "DROP TRIGGER event_update",
        "DROP TABLE chat_session",
        "UPDATE follower SET leaf_index = 0",
        "ATTACH ':memory:' AS other",
        "PRAGMA recursive_triggers = ON",
        "CREATE TRIGGER mine AFTER INSERT ON event BEGIN SELECT 1; END",
        "CREATE TEMP TABLE Event (seq)",
        "CREATE TEMP VIEW STREAM AS SELECT 1 AS stream_id",
    ],
)
async def test_in_a_file_a_follower_gets_at_nothing_of_the_ledgers_own(database, ledger, run, attack):  # E1, E2
    def write(connection, events):
        return connection.execute("DELETE FROM event" if database.is_postgres else attack)

    await record(ledger, run.start())
    refused = asyncpg.IntegrityConstraintViolationError if database.is_postgres else sqlite3.DatabaseError
    with pytest.raises(refused, match=r"not authorized|prohibited|event_immutable"):
        await ledger.followers.apply("bad", write)
    assert await ledger.followers.places() == {}
    assert (await record(ledger, run.transition("next"))).first_seq == 2


async def test_what_a_follower_sets_of_its_connection_is_set_for_as_long_as_it_has_it(database, ledger, run):
    def write(connection, events):
        connection.row_factory = lambda cursor, row: {about[0]: row[at] for at, about in enumerate(cursor.description)}
        connection.text_factory = bytes

    async def write_async(connection, events):
        await connection.execute("SET search_path TO pg_catalog")

    await record(ledger, run.start())
    async with going(ledger.followers.apply("odd", write_async if database.is_postgres else write)):
        async with asyncio.timeout(20):
            while await ledger.followers.places() != {"odd": 1}:
                await asyncio.sleep(0.01)
    assert (await record(ledger, run.transition("next"))).first_seq == 2


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt()], ids=repr)
async def test_whatever_a_follower_raises_ends_nothing_but_its_own_call(database, ledger, run, raised):
    def fail(*_):
        raise raised

    async def fail_async(connection, events):
        fail()

    await record(ledger, run.start())
    async with asyncio.timeout(20):
        with pytest.raises(type(raised)):
            await ledger.followers.apply("bad", fail_async if database.is_postgres else fail)
        assert await ledger.followers.places() == {}
        assert (await record(ledger, run.transition("next"))).first_seq == 2


async def test_events_are_not_passed_over_where_a_follower_is_written_for_the_other_engine(database, ledger, run):
    async def write_async(connection, events):
        raise AssertionError("nobody awaits this")

    await record(ledger, run.start())
    with pytest.raises(TypeError if database.is_postgres else InvalidInput, match=r"await"):
        await ledger.followers.apply("bad", (lambda *_: None) if database.is_postgres else write_async)
    assert await ledger.followers.places() == {}


async def test_a_follower_whose_statements_end_its_transaction_has_applied_nothing(database, ledger, run):
    def write(connection, events):
        connection.execute("CREATE TABLE once (n INTEGER UNIQUE)")
        connection.execute("INSERT INTO once VALUES (1)")
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute("INSERT OR ROLLBACK INTO once VALUES (1)")

    async def write_async(connection, events):
        await connection.execute("ROLLBACK")

    await record(ledger, run.start())
    with pytest.raises(InvalidInput, match="has ended the transaction"):
        await ledger.followers.apply("bad", write_async if database.is_postgres else write)
    assert await ledger.followers.places() == {}
    assert (await record(ledger, run.transition("next"))).first_seq == 2
