"""`kill -9`: what was acknowledged is there, and the run is ended once (SPEC E3, E7)."""

import random
import signal
import threading

import pytest

from ledger import Ledger
from tests.faults import programs
from tests.faults.processes import links_of, start
from tests.ledger.blank import blank_at


def kill_after(program, acknowledgements, delay_s):
    """Kill it so many acknowledgements after its start, and a moment; what it had acknowledged by then."""
    acknowledged = []
    while True:
        try:
            acknowledged.append(program.pipe.recv())
        except (EOFError, OSError):
            break
        if len(acknowledged) == acknowledgements:
            threading.Timer(delay_s, program.process.kill).start()
    program.process.join(30)
    assert program.process.exitcode == -signal.SIGKILL
    program.pipe.close()
    return acknowledged


@pytest.fixture
def path(tmp_path):
    return blank_at(tmp_path / "runs.db")


async def test_everything_acknowledged_before_a_kill_is_there_after_it(path):  # CASES 31, 44
    moments = random.Random(11)
    total = 0
    for round_no in range(6):
        # Two processes on one file, killed one after the other, at any moment of writing.
        names = [f"run-{round_no}-{name}" for name in "ab"]
        running = {run_id: start(programs.append, str(path), run_id) for run_id in names}
        for run_id, program in running.items():
            acknowledged = kill_after(program, moments.randrange(1, 160), moments.random() * 0.02)
            links = links_of(path, run_id)
            assert acknowledged
            assert all(links[seq - 1] == link for seq, link in acknowledged)
            total += len(acknowledged)
        async with await Ledger.open(path) as ledger:
            for run_id in names:
                trace = await ledger.reader.trace("session-1", run_id)
                assert (trace.run.summary.status, trace.run.outcome_reason) == ("FAILED", "HARNESS_LOST")
                assert {tool.status for tool in trace.tool_invocations} <= {"SUCCESS", "ABANDONED"}
                graph = trace.run.orchestration_trace
                assert graph is None or [one["to"] for one in graph["transitions"]] == ["planner"]
            assert (await ledger.recover()).ended == ()
            assert (await ledger.rebuild()).is_clean
        for run_id in names:
            links_of(path, run_id)
    assert total > 300


async def test_a_run_whose_process_was_killed_is_ended_by_another_that_is_open_already(path):  # CASES 44
    async with await Ledger.open(path) as survivor:
        acknowledged = kill_after(start(programs.append, str(path), "run-1"), 5, 0.0)
        assert (await survivor.recover()).ended == ("run-1",)
        assert (await survivor.recover()).ended == ()
        events = await survivor.reader.events("session-1", "run-1", limit=5_000)
    ends = [event for event in events if event.type == "run.terminated"]
    assert [event.seq for event in ends] == [len(events)]
    assert all(events[seq - 1].link == link.hex() for seq, link in acknowledged)
