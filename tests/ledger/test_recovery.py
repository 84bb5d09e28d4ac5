"""Owners of an SQLite ledger: a lock that each holds for life."""

import pytest

from harness.errors import AlreadyTerminated
from ledger import Ledger
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
async def opened(path):
    """Opens further ledgers on the same file."""
    ledgers = []

    async def open_another():
        ledgers.append(await Ledger.open(path))
        return ledgers[-1]

    yield open_another
    for ledger in ledgers:
        await ledger.close()


async def abandon(path, *submissions):
    async with await Ledger.open(path) as ledger:
        for submission in submissions:
            ledger.journal.submit(submission).result()


async def outcome(ledger, run):
    trace = await ledger.reader.trace(run.session_id, run.run_id)
    return trace.run.summary.status, trace.run.outcome_reason


async def test_an_owner_that_was_fenced_learns_the_outcome_at_its_next_append(path, opened):
    ledger, other = await opened(), await opened()
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    (folder,) = path.parent.glob("*.owners")
    for file in folder.iterdir():  # as a restore of the database without its side files would
        file.unlink()
    assert (await other.recover()).ended == ("run-1",)
    error = ledger.journal.submit(run.transition("planner")).exception()
    assert isinstance(error, AlreadyTerminated)
    assert (error.outcome, error.reason) == ("FAILED", "HARNESS_LOST")


async def test_the_files_of_the_dead_are_removed_and_those_of_the_living_are_not(path, opened):
    folder = path.with_name("runs.db.owners")
    first = await opened()
    (folder / "left-behind").touch()
    second = await opened()
    assert len(list(folder.iterdir())) == 2
    await first.recover(), await second.recover()
    assert len(list(folder.iterdir())) == 2


async def test_nothing_is_left_beside_a_ledger_that_was_closed(path):
    async with await Ledger.open(path) as ledger:
        await ledger.open_session("session-1")
    assert sorted(file.name for file in path.parent.iterdir()) == ["runs.db", "runs.db.lock"]


async def test_a_run_whose_end_the_database_refuses_is_named_and_all_others_are_ended(path, opened, plain):
    runs = [ScriptedRun(f"run-{number}") for number in range(3)]
    await abandon(path, *(run.start() for run in runs))
    plain().execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON event WHEN NEW.run_id = 'run-1'"
        " BEGIN SELECT RAISE(ABORT, 'no: not this one'); END"
    )
    ledger = await opened()
    found = await ledger.recover()
    assert (found.ended, found.unreadable) == ((), ("run-1",))
    assert await outcome(ledger, runs[2]) == ("FAILED", "HARNESS_LOST")
    ledger.journal.submit(ScriptedRun("run-4").start()).result()
    assert (await ledger.rebuild()).is_clean
