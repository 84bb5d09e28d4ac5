"""Files that are locked, read-only, cut short or taken away: a clear error, and nothing is acknowledged in vain."""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from harness.errors import LedgerUnavailable
from ledger import Ledger, LedgerError
from tests.faults import programs
from tests.faults.processes import links_of, links_of_all, start
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
def path(tmp_path):
    return blank_at(tmp_path / "runs.db")


def refused(ledger, run):
    """Why the run's next append is not taken."""
    error = ledger.journal.submit(run.transition("planner")).exception()
    assert isinstance(error, LedgerUnavailable)
    return str(error)


@pytest.mark.parametrize("also_folder", [False, True])
def test_a_file_that_may_only_be_read_is_refused_by_name_and_left_alone(path, also_folder):
    with tempfile.TemporaryDirectory() as name:  # the folders of pytest are open to their owner only
        folder = Path(name)
        closed = blank_at(folder / "runs.db")
        closed.chmod(0o444)
        folder.chmod(0o555 if also_folder else 0o777)
        before = closed.read_bytes()
        program = start(programs.open_as_guest, str(path), str(closed))
        code, text = program.pipe.recv()
        assert code == "ledger_unreadable"
        assert str(closed) in text
        assert "\n" not in text
        program.process.join(30)
        program.pipe.close()
        assert closed.read_bytes() == before
        assert {file.name for file in folder.iterdir()} <= {"runs.db", "runs.db.lock", "runs.db.owners"}
        folder.chmod(0o755)


async def test_a_program_that_keeps_the_database_locked_is_waited_for_and_then_named(path):  # CASES 33
    other = sqlite3.connect(path, isolation_level=None)
    async with await Ledger.open(path, lock_timeout_s=0.1) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        other.execute("BEGIN IMMEDIATE")
        assert "another program keeps the file locked" in refused(ledger, run)
        other.execute("ROLLBACK")
        other.close()
        resumed = run.submission(*run.transition("planner").events, resumes=True)
        assert ledger.journal.submit(resumed).result().first_seq == 2
    assert len(links_of(path, "run-1")) == 2


async def test_a_log_that_is_taken_away_takes_nothing_more_and_loses_nothing(path):  # E3
    async with await Ledger.open(path) as ledger:
        run = ScriptedRun()
        acknowledged = [ledger.journal.submit(one).result() for one in (run.start(), run.transition("planner"))]
        path.with_name("runs.db-wal").unlink()
        assert "the write-ahead log was replaced or removed" in refused(ledger, run)
    links = links_of(path, "run-1")
    assert [links[one.last_seq - 1] for one in acknowledged] == [one.head_link for one in acknowledged]
    async with await Ledger.open(path) as ledger:
        assert (await ledger.reader.trace("session-1", "run-1")).run.outcome_reason == "HARNESS_LOST"


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
async def test_a_file_that_is_cut_short_takes_nothing_more(path, part):  # E3
    async with await Ledger.open(path) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        os.truncate(path, int(path.stat().st_size * part))
        assert "the file was cut short" in refused(ledger, run)
    if part < 0.9:  # else what was cut off is still in the log, and comes back from there
        with pytest.raises(LedgerError) as caught:
            await Ledger.open(path)
        assert caught.value.place == path


async def test_a_file_that_others_have_written_anew_and_shorter_is_still_the_ledger(path):
    plain = sqlite3.connect(path, isolation_level=None)
    plain.execute("CREATE TABLE ballast (data BLOB)")
    plain.execute("INSERT INTO ballast VALUES (randomblob(1000000))")
    plain.execute("DROP TABLE ballast")
    plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.stat().st_size
    async with await Ledger.open(path) as ledger, await Ledger.open(path) as other:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        await other.erase(run=("session-1", "run-1"))
        assert path.stat().st_size < before / 2
        assert ledger.journal.submit(run.transition("planner")).result().first_seq > 1
    plain.close()
    assert len(links_of(path, "run-1")) > 3


async def test_a_copy_of_files_in_use_is_never_taken_for_more_than_it_holds(path, tmp_path):
    async with await Ledger.open(path) as ledger:
        run = ScriptedRun()
        recorded = [ledger.journal.submit(one).result() for one in run.whole()]
        copy = tmp_path / "copy.db"
        for side in ("", "-wal"):
            shutil.copy(f"{path}{side}", f"{copy}{side}")
    assert links_of_all(copy)["r:run-1"][-1] == recorded[-1].head_link
