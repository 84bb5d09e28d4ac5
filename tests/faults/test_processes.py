"""Several processes on one file, and processes that end, or stand still, without a word."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ledger import Ledger, LedgerReader
from tests.faults import programs
from tests.faults.processes import links_of, start
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun

ROOT = Path(__file__).parent.parent.parent
PROCESSES = 8
BOUNDARIES = 60
BUSY_TIMEOUT_S = 5.0


@pytest.fixture
def path(tmp_path):
    return blank_at(tmp_path / "runs.db")


def race(running):
    """Let all of them go at once; what each says at its end."""
    for program in running:
        assert program.pipe.recv() == "ready"
    for program in running:
        program.pipe.send("go")
    said = [program.pipe.recv() for program in running]
    for program in running:
        program.process.join(30)
        program.pipe.close()
    assert [program.process.exitcode for program in running] == [0] * len(running)
    return said


async def test_eight_processes_that_append_to_one_file_never_meet_a_locked_database(path):  # CASES 33
    slowest_s = race([start(programs.race, str(path), str(number), BOUNDARIES) for number in range(PROCESSES)])
    assert max(slowest_s) < BUSY_TIMEOUT_S
    async with await LedgerReader.open(path) as reader:
        runs = (await reader.recent_runs()).rows
        assert [(run.status, run.tool_call_count) for run in runs] == [("SUCCESS", BOUNDARIES)] * PROCESSES
    for run in runs:
        links_of(path, run.run_id)


async def test_four_processes_that_make_one_new_ledger_at_once_all_succeed(tmp_path):
    path = tmp_path / "new.db"
    assert race([start(programs.open_once, str(path)) for _ in range(4)]) == ["opened"] * 4
    async with await LedgerReader.open(path) as reader:
        assert (await reader.session("session-1")).message_pair_count == 0


async def test_a_process_that_stands_still_for_a_while_keeps_its_run(path):  # E7: as when a laptop's lid is closed
    owner = start(programs.work_until_told, str(path), "run-1")
    assert owner.pipe.recv() == "working"
    os.kill(owner.process.pid, signal.SIGSTOP)
    try:
        async with await Ledger.open(path) as other:
            assert (await other.recover()).ended == ()
            assert await other.cancel("session-1", "run-1")
    finally:
        os.kill(owner.process.pid, signal.SIGCONT)
    assert owner.pipe.recv() == "CANCELLED"
    owner.process.join(30)
    owner.pipe.close()


def test_a_forked_child_can_neither_use_nor_harm_its_parents_ledger(path):
    program = start(programs.fork, str(path))
    assert [program.pipe.recv() for _ in range(3)] == [("child", 0), ("recovered", []), ("next", 2)]
    program.process.join(30)
    assert program.process.exitcode == 0
    program.pipe.close()
    assert len(links_of(path, "run-1")) == 2


async def test_a_closed_ledger_can_be_read_by_those_who_cannot_write_its_folder(path):
    with tempfile.TemporaryDirectory() as name:  # the folders of pytest are open to their owner only
        folder = Path(name)
        closed = blank_at(folder / "runs.db")
        async with await Ledger.open(closed) as ledger:
            for submission in ScriptedRun().whole():
                ledger.journal.submit(submission).result()
        closed.chmod(0o444)
        folder.chmod(0o555)
        program = start(programs.read_as_guest, str(path), str(closed))
        assert program.pipe.recv() == ["SUCCESS"]
        program.process.join(30)
        program.pipe.close()
        assert sorted(file.name for file in folder.iterdir()) == ["runs.db", "runs.db.lock"]
        folder.chmod(0o755)


@pytest.mark.parametrize("how", ["return", "raise"])
async def test_a_process_that_leaves_its_ledger_open_ends_and_has_written_what_it_submitted(path, how):  # CASES 38
    command = [sys.executable, "-W", "error", "-m", "tests.faults.programs", str(path), how]
    left = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert left.returncode == (1 if how == "raise" else 0)
    assert left.stderr.count("RuntimeError: on purpose") == left.returncode
    async with await Ledger.open(path) as ledger:
        trace = await ledger.reader.trace("session-1", "run-1")
        assert trace.run.orchestration_trace["transitionCount"] == 200
        assert trace.run.outcome_reason == "HARNESS_LOST"
