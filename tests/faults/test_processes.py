"""Several processes on one file, and processes that end without a word."""

import pytest

from ledger import Ledger, LedgerReader
from tests.faults.processes import links_of, start
from tests.ledger.blank import blank_at

PROCESSES = 4
BOUNDARIES = 100
BUSY_TIMEOUT_S = 5.0


@pytest.fixture
def path(tmp_path):
    return blank_at(tmp_path / "runs.db")


def ended(process, timeout_s=30):
    out, err = process.communicate(timeout=timeout_s)
    return process.returncode, out, err


async def test_processes_that_append_to_one_file_never_meet_a_locked_database(path):  # CASES 33
    processes = [start("race", path, number, BOUNDARIES) for number in range(PROCESSES)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        code, out, err = ended(process)
        assert (code, err) == (0, "")
        word, slowest_s = out.split()
        assert word == "slowest"
        assert float(slowest_s) < BUSY_TIMEOUT_S
    async with await LedgerReader.open(path) as reader:
        runs = (await reader.recent_runs()).rows
        assert [(run.status, run.tool_call_count) for run in runs] == [("SUCCESS", BOUNDARIES)] * PROCESSES
    for run in runs:
        links_of(path, run.run_id)


@pytest.mark.parametrize("how", ["return", "exit", "raise"])
async def test_a_process_that_leaves_its_ledger_open_ends_and_has_written_what_it_submitted(path, how):  # CASES 38
    code, _, err = ended(start("leave", path, how))
    assert code == (1 if how == "raise" else 0)
    assert ("on purpose" in err) == (how == "raise")
    async with await Ledger.open(path) as ledger:
        trace = await ledger.reader.trace("session-1", "run-1")
        assert trace.run.orchestration_trace["transitionCount"] == 200
        assert trace.run.outcome_reason == "HARNESS_LOST"


def test_a_forked_child_can_neither_use_nor_harm_its_parents_ledger(path):
    code, out, err = ended(start("fork", path))
    assert (code, err) == (0, "")
    assert out.split("\n")[:-1] == ["child 0", "recovered 0", "next 2"]
    assert len(links_of(path, "run-1")) == 2
