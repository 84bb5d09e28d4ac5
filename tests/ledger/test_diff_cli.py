"""`tachograph diff`: text, JSON, and an exit code that says which."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from ledger import Ledger
from ledger.cli.diff import diff
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
def recorded(path):
    """Three runs: two that are alike, and one that asks one tool more."""

    async def record():
        async with await Ledger.open(path) as ledger:
            for run_id in ("run-1", "run-2"):
                for submission in ScriptedRun(run_id).whole():
                    ledger.journal.submit(submission).result()
            run = ScriptedRun("run-3")
            more = run.attempt("tool", "%1B[31mred", ordinal=1)
            *before, end = run.whole()
            for submission in (*before, more.start(), more.succeed(), end):
                ledger.journal.submit(submission).result()

    asyncio.run(record())
    return path


def call(a, b, path, *args):
    return CliRunner().invoke(diff, [f"session-1/{a}", f"session-1/{b}", "--db", str(path), *args])


def test_two_runs_that_are_alike_have_no_difference(recorded):
    result = call("run-1", "run-2", recorded)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-3:] == [
        "",
        "7 boundaries alike, 0 different, 0 only in A, 0 only in B",
        "no difference was found",
    ]
    assert len([line for line in call("run-1", "run-2", recorded, "--all").stdout.splitlines() if "tool" in line]) == 1


def test_what_is_added_is_shown_between_what_is_alike(recorded):
    result = call("run-1", "run-3", recorded)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    place = lines.index("  … 6 alike")
    assert lines[place + 1].split()[:3] == ["+", "13", "tool"]
    assert lines[place + 2] == "  … 1 alike"
    assert "\x1b" not in result.stdout  # CASES 46
    assert ["Tool", "calls", "1", "2", "+1"] in [line.split() for line in lines]


def test_a_comparison_as_json_has_both_sides_of_every_boundary(recorded):
    result = call("run-1", "run-3", recorded, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["is_same"], found["is_longest"]) == (1, False, True)
    added = [each for each in found["boundaries"] if each["sign"] == "only_b"]
    assert [(each["a"], each["b"]["kind"], each["b"]["outcome"]) for each in added] == [(None, "tool", "success")]
    assert {each["name"] for each in found["usage"]} >= {"tool_calls", "elapsed_us"}


def test_what_cannot_be_compared_is_one_line_and_exit_code_two(recorded):
    result = call("run-1", "run-9", recorded)
    assert (result.exit_code, result.stderr) == (2, "Error: there is no run run-9 in session session-1\n")


def test_attempts_that_failed_otherwise_are_a_difference_also_where_a_later_one_succeeded(path):
    async def record():
        async with await Ledger.open(path) as ledger:
            for run_id, failure in (("run-1", "TRANSPORT"), ("run-2", "INVALID_RESPONSE")):
                run = ScriptedRun(run_id)
                first, second = (run.attempt("tool", "ask", ordinal=1, attempt=number) for number in (1, 2))
                before = (run.start(), first.start(), first.fail(failure, will_retry=True))
                for submission in (*before, second.start(), second.succeed(), run.end()):
                    ledger.journal.submit(submission).result()

    asyncio.run(record())
    result = call("run-1", "run-2", path)
    assert result.exit_code == 1
    assert "failures" in result.stdout
