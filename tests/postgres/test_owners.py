"""Owners in a database: a beat that others watch, on their own clocks (SPEC E7)."""

import asyncio
import logging

import pytest

from harness.errors import AlreadyTerminated
from ledger import Ledger, OwnedElsewhere
from tests.ledger.scripted import ScriptedRun

LEASE_S = 1.0


@pytest.fixture
async def opened(database):
    ledgers = []

    async def open_another():
        ledgers.append(await Ledger.open(database.url, lease_s=LEASE_S))
        return ledgers[-1]

    yield open_another
    for ledger in ledgers:
        await ledger.close()


async def fall_silent(ledger):
    """As a process that is stopped, or cut off; a dead one is no different to those who watch."""
    engine = ledger._engine

    async def stop():
        for task in (engine.heart._task, engine.recoverer._task):
            task.cancel()

    await asyncio.wrap_future(engine.thread.call(stop()))


def owners(plain):
    return [row[0] for row in plain().execute("SELECT owner_id FROM owner ORDER BY owner_id")]


async def status(ledger, run):
    return (await ledger.reader.trace(run.session_id, run.run_id)).run.summary.status


async def test_an_owner_that_lives_keeps_its_runs_however_long_they_take(opened):
    owner, other = await opened(), await opened()
    run = ScriptedRun()
    owner.journal.submit(run.start()).result()
    for _ in range(3):
        await asyncio.sleep(LEASE_S)
        assert (await other.recover()).ended == ()
    assert owner.journal.submit(run.transition("planner")).result().last_seq == 2


async def test_an_owner_that_is_silent_beyond_its_lease_is_fenced_and_learns_it_at_its_next_append(opened):
    owner, other = await opened(), await opened()
    run = ScriptedRun()
    owner.journal.submit(run.start()).result()
    await fall_silent(owner)
    await other.recover()
    assert await status(other, run) == "FAILED"
    error = owner.journal.submit(run.transition("planner")).exception()
    assert isinstance(error, AlreadyTerminated)
    assert (error.outcome, error.reason) == ("FAILED", "HARNESS_LOST")


async def test_within_its_lease_a_silent_owner_is_left_alone(database, opened):
    owner = await opened()
    run = ScriptedRun()
    owner.journal.submit(run.start()).result()
    await fall_silent(owner)
    async with await Ledger.open(database.url, lease_s=3600):
        assert await status(owner, run) == "RUNNING"
    assert owner.journal.submit(run.transition("planner")).result().last_seq == 2


async def test_whoever_has_the_ledger_open_ends_the_runs_of_the_dead_unasked(opened, caplog):
    owner, other = await opened(), await opened()
    run = ScriptedRun()
    owner.journal.submit(run.start()).result()
    await fall_silent(owner)
    async with asyncio.timeout(20):
        while await status(other, run) == "RUNNING":
            await asyncio.sleep(0.05)
    events = await other.reader.events("session-1", "run-1")
    assert [event.type for event in events] == ["run.started", "run.terminated"]


async def test_of_eight_that_watch_one_ends_the_run(opened):  # E7
    ledgers = [await opened() for _ in range(8)]
    owner = await opened()
    runs = [ScriptedRun(f"run-{number}") for number in range(10)]
    for run in runs:
        owner.journal.submit(run.start()).result()
    await fall_silent(owner)
    found = await asyncio.gather(*(ledger.recover() for ledger in ledgers))
    ended = [run_id for one in found for run_id in one.ended]
    assert len(ended) == len(set(ended))
    for run in runs:
        assert (await ledgers[0].reader.trace("session-1", run.run_id)).run.event_count == 2


async def test_an_owner_that_closes_leaves_no_row_and_its_runs_are_ended_at_once(database, opened, plain):
    run = ScriptedRun()
    async with await Ledger.open(database.url, lease_s=3600) as owner:
        owner.journal.submit(run.start()).result()
    assert owners(plain) == []
    async with await Ledger.open(database.url, lease_s=3600) as other:
        assert await status(other, run) == "FAILED"


async def test_rows_of_owners_without_runs_are_swept_too(opened, plain):
    plain().execute("INSERT INTO owner VALUES ('w-gone', 7)")
    ledger = await opened()
    await ledger.recover()
    assert len(owners(plain)) == 1


async def test_a_lost_connection_costs_an_owner_nothing(opened, plain, caplog):
    owner, other = await opened(), await opened()
    run = ScriptedRun()
    owner.journal.submit(run.start()).result()
    with caplog.at_level(logging.ERROR):
        plain().execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await asyncio.sleep(LEASE_S)
    assert (await other.recover()).ended == ()
    assert owner.journal.submit(run.transition("planner")).result().last_seq == 2
    error = other.journal.submit(ScriptedRun(writer_id="w2").transition("executor")).exception()
    assert isinstance(error, OwnedElsewhere)


async def test_a_run_that_cannot_be_ended_is_named_and_all_others_are_ended(database, opened, plain):
    runs = [ScriptedRun(f"run-{number}") for number in range(3)]
    async with await Ledger.open(database.url) as owner:
        for run in runs:
            owner.journal.submit(run.start()).result()
        plain().script(
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " RAISE EXCEPTION USING ERRCODE = '23000', MESSAGE = 'no: not this one'; END $$;"
            " CREATE TRIGGER no BEFORE INSERT ON event FOR EACH ROW WHEN (NEW.run_id = 'run-1') EXECUTE FUNCTION no()"
        )
    ledger = await opened()
    found = await ledger.recover()
    assert (found.ended, found.unreadable) == ((), ("run-1",))
    assert [await status(ledger, run) for run in runs] == ["FAILED", "RUNNING", "FAILED"]
