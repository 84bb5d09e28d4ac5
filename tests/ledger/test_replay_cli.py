"""`tachograph replay`: a walk on a terminal, text elsewhere, JSON for programs."""

import asyncio
import json
import os
import pty
import subprocess
import sys
import termios
import time

import pytest
from click.testing import CliRunner

from ledger import Ledger
from ledger.cli.replay import replay
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
def recorded(path):
    """A run in which a tool fails, at its seventh event."""
    run = ScriptedRun()
    step, tool = run.attempt("model", "planner"), run.attempt()

    async def record():
        async with await Ledger.open(path) as ledger:
            for submission in (
                *(run.start(), run.transition("\x1b[2Jplanner".replace("\x1b", "%1B")), step.start()),
                *(step.succeed(usage={"input_tokens": 3}), tool.start(), tool.fail(), run.end()),
            ):
                ledger.journal.submit(submission).result()

    asyncio.run(record())
    return path


def call(*args):
    return CliRunner().invoke(replay, [str(arg) for arg in args])


def test_elsewhere_than_on_a_terminal_all_events_are_printed_with_what_they_changed(recorded):
    lines = call("session-1/run-1", "--db", recorded).stdout.splitlines()
    assert [line.split()[:3] for line in lines if line[:6].strip()][:2] == [
        ["1", "+0.001", "run.started"],
        ["2", "+0.002", "graph.transitioned"],
    ]
    assert "                   model calls: 0 → 1 of 100" in lines


def test_what_an_event_changed_takes_as_many_lines_as_it_needs_and_none_is_long(path):
    async def record():
        async with await Ledger.open(path) as ledger:
            limits = {f"tool:tool_number_{number}": number for number in range(30)}
            ledger.journal.submit(ScriptedRun().start(limits=limits)).result()

    asyncio.run(record())
    lines = call("session-1/run-1", "--db", path).stdout.splitlines()
    assert max(map(len, lines)) <= 120
    assert sum(line.count("tool_number_") for line in lines[1:]) == 30


def test_a_run_as_json_is_one_object_a_line(recorded):
    steps = [json.loads(line) for line in call("session-1/run-1", "--db", recorded, "--json").stdout.splitlines()]
    assert [step["seq"] for step in steps] == list(range(1, 11))
    assert steps[2]["changes"] == [
        {"what": "model calls", "before": "0", "after": "1", "words": "model calls: 0 → 1 of 100"}
    ]
    assert [attempt["name"] for attempt in steps[7]["state"]["open_attempts"]] == ["query_logs"]
    assert json.loads(call("session-1/run-1", "--db", recorded, "--at", 3, "--json").stdout) == steps[2]


def test_the_first_failure_is_shown_with_all_of_the_state(recorded):
    shown = call("session-1/run-1", "--db", recorded, "--to-first-failure").stdout
    assert shown.startswith("event 9 of 10, +0.009 s  attempt.failed  query_logs")
    assert "time      9 ms of 1 min, 1 min left" in shown
    assert " ".join(shown.split("Tool calls")[1].split()[:2]) == "1 100"


@pytest.mark.parametrize(
    ("args", "exit_code", "said"),
    [
        (("session-1/run-1", "--at", 99), 1, "there is no event 99: the run has 10, from 1"),
        (("session-1/run-9",), 1, "there is no run run-9 in session session-1"),
        (("run-1",), 2, "name the run as SESSION/RUN"),
        (("session-1/run-1", "--at", 2, "--to-first-failure"), 2, "are two places"),
    ],
)
def test_what_is_not_there_is_one_line_and_an_exit_code(recorded, args, exit_code, said):
    result = call(*args, "--db", recorded)
    assert (result.exit_code, said in result.stderr, result.stdout) == (exit_code, True, "")


def test_nothing_went_wrong_is_an_answer_too(path):
    async def record():
        async with await Ledger.open(path) as ledger:
            for submission in ScriptedRun().whole():
                ledger.journal.submit(submission).result()

    asyncio.run(record())
    result = call("session-1/run-1", "--db", path, "--to-first-failure")
    assert (result.exit_code, "nothing went wrong in the" in result.stderr) == (1, True)


def test_on_a_terminal_keys_lead_forward_back_to_a_number_and_to_what_went_wrong(recorded):
    walk = f"from ledger.cli.replay import replay; replay(['session-1/run-1', '--db', {str(recorded)!r}])"
    terminal, its_side = pty.openpty()
    walker = subprocess.Popen([sys.executable, "-c", walk], stdin=its_side, stdout=its_side, stderr=its_side)
    os.close(its_side)
    for key, place in (
        ("", "event 1 of 10"),
        ("n", "event 2 of 10"),
        ("f", "event 9 of 10"),
        ("f", "nothing goes wrong after this event"),
        ("p", "event 8 of 10"),
        ("z", "event 10 of 10"),
        ("n", "this is the last event"),
        ("g", "event 1 to 10"),
        ("4\n", "event 4 of 10"),
        ("a", "event 1 of 10"),
        ("q", "\x1b[?1049l"),
    ):
        os.write(terminal, key.encode())
        shown = ""
        while place not in shown:
            shown += os.read(terminal, 65_536).decode("utf-8", "replace")
        assert "\x1b[2Jplanner" not in shown
        # A key is taken once the terminal gives each by itself.
        while key not in ("g", "q") and termios.tcgetattr(terminal)[3] & termios.ICANON:
            time.sleep(0.001)
    os.close(terminal)
    assert walker.wait() == 0
