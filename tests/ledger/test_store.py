"""What the store remembers between transactions is right, and its log stays small."""

import sqlite3
from pathlib import Path

import pytest

from harness.errors import LedgerUnavailable
from ledger import ConstraintViolated, Ledger
from ledger.append import remembered
from ledger.store import heads, sqlite
from ledger.store.rows import insert_rows
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import dump

PAGE_BYTES = 4096


async def test_two_ledgers_that_take_turns_on_one_run_both_know_where_it_stands(path):
    async with await Ledger.open(path) as owner, await Ledger.open(path) as other:
        run, guest = ScriptedRun(), ScriptedRun(writer_id="w2")
        owner.journal.submit(run.start()).result()
        positions = []
        for _ in range(10):
            tool = run.attempt()
            positions.append(owner.journal.submit(tool.start()).result().last_seq)
            positions.append(other.journal.submit(guest.request_cancellation()).result().last_seq)
            positions.append(owner.journal.submit(tool.succeed()).result().last_seq)
        assert positions == [position for round_no in range(10) for position in (4 * round_no + n for n in (3, 4, 5))]
        owner.journal.submit(run.end("CANCELLED", "USER_REQUESTED")).result()
        assert (await other.rebuild()).is_clean


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 255, 256, 257, 1_000])
def test_any_number_of_rows_is_inserted_in_their_order(count):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE said (pos INTEGER PRIMARY KEY, what TEXT)")
    rows = [(pos, f"word {pos}") for pos in range(count)]
    insert_rows(connection, "INSERT INTO said (pos, what) VALUES (?, ?) ON CONFLICT (pos) DO NOTHING", rows)
    assert connection.execute("SELECT pos, what FROM said ORDER BY rowid").fetchall() == rows
    connection.close()


async def test_a_run_that_was_forgotten_is_folded_again_from_its_events(ledger, plain, monkeypatch):
    monkeypatch.setattr(remembered, "MAX_RUNS", 2)
    runs = [ScriptedRun(f"run-{number}") for number in range(6)]
    whole = [list(run.whole()) for run in runs]
    for submissions in zip(*whole, strict=True):
        for submission in submissions:
            ledger.journal.submit(submission).result()
    rows = dump(plain())
    assert len(rows["diagnosis_run"]) == len(rows["agent_step"]) == len(rows["tool_invocation"]) == 6
    assert (await ledger.rebuild()).is_clean


async def test_a_running_run_of_ones_own_is_never_forgotten_however_many_there_are(ledger, path, monkeypatch):
    monkeypatch.setattr(remembered, "MAX_RUNS", 2)
    runs = [ScriptedRun(f"run-{number}") for number in range(10)]
    for run in runs:
        ledger.journal.submit(run.start()).result()
    async with await Ledger.open(path) as other:
        for number in range(5):
            other.journal.submit(ScriptedRun(f"other-{number}").start()).result()
            other.journal.submit(ScriptedRun(f"other-{number}", writer_id="w2").request_cancellation()).result()
        folded = []
        stored_pages = heads.stored_pages
        monkeypatch.setattr(heads, "stored_pages", lambda *place: (folded.append(place[2]), stored_pages(*place))[1])
        for run in runs:
            ledger.journal.submit(run.transition("planner")).result()
        assert folded == []
        known = ledger.journal.run(lambda batch: batch._heads.remembered.counts)
        assert known.result() == (10, 0)
        for run in runs:
            ledger.journal.submit(run.end()).result()
        known = ledger.journal.run(lambda batch: batch._heads.remembered.counts)
        assert known.result() == (0, 2)


async def test_a_refused_annotation_does_not_make_the_store_forget_anything(ledger, monkeypatch):
    run = ScriptedRun()
    for submission in (run.start(), run.transition("planner")):
        ledger.journal.submit(submission).result()
    with pytest.raises(LookupError):
        await ledger.record_feedback("session-1", "run-9", useful=True)

    def fail(*_):
        raise AssertionError("the run was folded again")

    monkeypatch.setattr(heads, "stored_pages", fail)
    assert ledger.journal.submit(run.transition("executor")).result().first_seq == 3


async def test_the_write_ahead_log_is_used_again_and_does_not_grow_for_ever(ledger, path, monkeypatch):
    monkeypatch.setattr(sqlite, "CHECKPOINT_COMMITS", 10)
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    for number in range(200):
        ledger.journal.submit(run.transition(f"n{number}")).result()
    assert path.with_name("runs.db-wal").stat().st_size < 40 * 10 * PAGE_BYTES


async def test_a_reader_in_the_way_of_a_checkpoint_holds_nobody_up(ledger, plain, monkeypatch):
    monkeypatch.setattr(sqlite, "CHECKPOINT_COMMITS", 5)
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    reader = plain()
    reader.execute("BEGIN")
    (before,) = reader.execute("SELECT count(*) FROM event").fetchone()
    for number in range(50):
        ledger.journal.submit(run.transition(f"n{number}")).result(1.0)
    assert reader.execute("SELECT count(*) FROM event").fetchone() == (before,)
    reader.execute("COMMIT")
    assert reader.execute("SELECT count(*) FROM event").fetchone() == (before + 50,)


@pytest.mark.parametrize("replace", [Path.unlink, lambda path: blank_at(path.with_name("new.db")).replace(path)])
async def test_nothing_is_acknowledged_once_the_file_was_removed_or_replaced(path, replace):  # E3
    async with await Ledger.open(path) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        replace(path)
        before = path.read_bytes() if path.exists() else None
        error = ledger.journal.submit(run.transition("planner")).exception()
        assert isinstance(error, LedgerUnavailable)
        assert "replaced or removed" in str(error)
    assert (path.read_bytes() if path.exists() else None) == before


class FailsToCheckpoint:
    """A connection whose checkpoints fail."""

    def __init__(self, connection):
        self._connection = connection

    def execute(self, statement, *values):
        if "wal_checkpoint" in statement:
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(statement, *values)

    def __getattr__(self, name):
        return getattr(self._connection, name)


async def test_after_a_checkpoint_that_failed_the_store_still_waits_for_others(path, monkeypatch, caplog):
    connect = sqlite.connect
    monkeypatch.setattr(sqlite, "connect", lambda *args: FailsToCheckpoint(connect(*args)))
    monkeypatch.setattr(sqlite, "CHECKPOINT_COMMITS", 1)
    async with await Ledger.open(path) as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
        job = ledger.journal.run(lambda batch: batch.connection.execute("PRAGMA busy_timeout").fetchone())
        assert job.result() == (5_000,)
    assert "could not be checkpointed" in caplog.text


def test_what_the_database_refuses_is_our_error_with_the_rule_it_broke(ledger):
    def spoil(batch):
        batch.connection.execute("UPDATE event SET body = x'00' WHERE pos = 1")

    ledger.journal.submit(ScriptedRun().start()).result()
    error = ledger.journal.run(spoil).exception()
    assert isinstance(error, ConstraintViolated)
    assert (error.rule, error.detail) == ("event_immutable", "an event is never changed")
