"""`kill -9`: what was acknowledged is there, and the run is ended once (SPEC E3, E7)."""

import random
import signal
import threading

import pytest

from ledger import Ledger
from tests.faults.processes import links_of, start
from tests.ledger.blank import blank_at


def kill_after(process, acknowledgements, delay_s):
    """Kill the program so many acknowledgements after its first, and a moment; what it had acknowledged by then."""
    acknowledged = []
    for line in process.stdout:
        word, seq, link = line.split()
        assert word == "acknowledged"
        acknowledged.append((int(seq), link))
        if len(acknowledged) == acknowledgements:
            threading.Timer(delay_s, process.kill).start()
    assert process.wait(30) == -signal.SIGKILL, process.stderr.read()
    process.stderr.close()
    process.stdin.close()
    process.stdout.close()
    return acknowledged


@pytest.fixture
def path(tmp_path):
    return blank_at(tmp_path / "runs.db")


async def test_everything_acknowledged_before_a_kill_is_there_after_it(path):  # CASES 31, 44
    moments = random.Random(11)
    for round_no in range(3):
        # Two processes on one file, killed one after the other, at any moment of writing.
        processes = {f"run-{round_no}-{name}": start("append", path, f"run-{round_no}-{name}") for name in "ab"}
        for run_id, process in processes.items():
            acknowledged = kill_after(process, moments.randrange(1, 120), moments.random() * 0.02)
            links = links_of(path, run_id)
            assert acknowledged
            assert all(links[seq - 1] == link for seq, link in acknowledged)
        async with await Ledger.open(path) as ledger:
            for run_id in processes:
                trace = await ledger.reader.trace("session-1", run_id)
                assert (trace.run.summary.status, trace.run.outcome_reason) == ("FAILED", "HARNESS_LOST")
                assert {tool.status for tool in trace.tool_invocations} <= {"SUCCESS", "ABANDONED"}
                assert [one["to"] for one in trace.run.orchestration_trace["transitions"]] in ([], ["planner"])
            assert await ledger.recover() == []
            assert (await ledger.rebuild()).is_clean
        for run_id in processes:
            links_of(path, run_id)


async def test_a_run_whose_process_was_killed_is_ended_by_another_that_is_open_already(path):  # CASES 44
    async with await Ledger.open(path) as survivor:
        process = start("append", path, "run-1")
        acknowledged = kill_after(process, 5, 0.0)
        assert await survivor.recover() == ["run-1"]
        assert await survivor.recover() == []
        events = await survivor.reader.events("session-1", "run-1", limit=5_000)
    ends = [event for event in events if event.type == "run.terminated"]
    assert [event.seq for event in ends] == [len(events)]
    assert all(events[seq - 1].link == link for seq, link in acknowledged)
