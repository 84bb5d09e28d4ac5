"""A reader tells how far the public order is behind the log, and named followers behind the public order (SPEC E8)."""

import asyncio

import pytest

from harness.clock import ManualClock
from harness.errors import InvalidInput
from ledger import Ledger, LedgerReader
from ledger.doctor import examine
from ledger.store.postgres.sequencing import Sequencer
from tests.contract.databases import PostgresOutsider
from tests.contract.test_following import ordered, record
from tests.ledger.scripted import ScriptedRun


async def deliver_all(ledger, name, last, **wanted):
    """Let the follower of that name come to the last event, and end."""

    async def send(events):
        pass

    following = asyncio.ensure_future(ledger.followers.deliver(name, send, **wanted))
    async with asyncio.timeout(20):
        while (await ledger.followers.places()).get(name) != last:
            await asyncio.wait([following], timeout=0.01)
            if following.done():
                following.result()
    following.cancel()
    await asyncio.wait([following])


async def test_a_follower_that_stopped_falls_behind_by_each_event(ledger, database):  # E8
    run = ScriptedRun()
    await record(ledger, run.start())
    assert (await ledger.reader.vitals()).follower_lags == {}
    await deliver_all(ledger, "export", 1)
    assert (await ledger.reader.vitals()).follower_lags == {"export": 0}
    for number in range(3):
        await record(ledger, run.transition(f"n{number}"))
    await ordered(ledger, 5)
    async with await LedgerReader.open(database.url) as reader:
        vitals = await reader.vitals()
    assert (vitals.last_leaf, vitals.follower_lags) == (4, {"export": 3})
    await deliver_all(ledger, "export", 4)
    assert (await ledger.reader.vitals()).follower_lags == {"export": 0}


async def test_a_follower_of_one_run_or_session_is_behind_only_by_the_events_of_that(ledger, database):  # E8
    run, sister, other = (
        ScriptedRun(),
        ScriptedRun("run-2", writer_id="w2"),
        ScriptedRun("run-3", "session-3", writer_id="w3"),
    )
    await record(ledger, run.start())
    await ordered(ledger, 2)
    await deliver_all(ledger, "of run", 1, run=("session-1", "run-1"))
    await deliver_all(ledger, "of session", 1, session="session-1")
    await deliver_all(ledger, "of all", 1)
    for submission in (other.start(), *(other.transition(f"n{number}") for number in range(5)), sister.start()):
        await record(ledger, submission)
    await record(ledger, run.transition("next"))
    await ordered(ledger, 11)
    assert (await ledger.reader.vitals()).follower_lags == {"of all": 9, "of run": 1, "of session": 2}
    lags = {fact.name: fact.value for fact in await examine(database.url) if "lag_of" in fact.name}
    assert lags == {"follower_lag_of of all": 9, "follower_lag_of of run": 1, "follower_lag_of of session": 2}
    await deliver_all(ledger, "of run", 10, run=("session-1", "run-1"))
    assert (await ledger.reader.vitals()).follower_lags["of run"] == 0


async def test_a_name_stands_for_what_it_followed_first(ledger):  # E8
    await record(ledger, ScriptedRun().start())
    await ordered(ledger, 2)
    await deliver_all(ledger, "export", 1, session="session-1")
    for wanted in ({}, {"session": "session-2"}, {"run": ("session-1", "run-1")}):
        with pytest.raises(InvalidInput, match="export follows session session-1, not"):
            await asyncio.wait_for(ledger.followers.deliver("export", print, **wanted), 20)


async def test_where_every_event_has_its_place_nothing_waits_for_it(ledger, database):  # E8
    await record(ledger, ScriptedRun().start())
    await ordered(ledger, 2)
    vitals = await ledger.reader.vitals()
    assert (vitals.unsequenced, vitals.unsequenced_s) == ((0, 0.0) if database.is_postgres else (None, None))


@pytest.mark.parametrize("cluster", ["this", "another"])
async def test_events_without_a_place_are_counted_from_the_first_of_them(
    postgres_url, monkeypatch, postgres_outsider, cluster
):  # E8
    monkeypatch.setattr(Sequencer, "start", lambda self: None)
    clock, run = ManualClock(), ScriptedRun()
    async with await Ledger.open(postgres_url, wall_clock=clock) as ledger:
        await record(ledger, run.start())
        if cluster == "another":
            # A head that was restored from elsewhere: its watermark says nothing here.
            postgres_outsider.execute("UPDATE tree_head SET watermark = '9000000000', system_identifier = 7")
        clock.advance(7.0)
        await record(ledger, run.transition("late"))
        vitals = await ledger.reader.vitals()
        assert (vitals.last_leaf, vitals.unsequenced, vitals.unsequenced_s) == (-1, 3, 7.0)
    monkeypatch.undo()
    async with await Ledger.open(postgres_url) as ledger:
        await ordered(ledger, 3)
        assert (await ledger.reader.vitals()).unsequenced == 0


@pytest.fixture
def postgres_outsider(postgres_url):
    outsider = PostgresOutsider(postgres_url)
    yield outsider
    outsider.close()
