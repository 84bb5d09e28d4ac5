"""The commands that keep a ledger safe: what they say, what they refuse, and how they end."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from ledger import Ledger, cli
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
def recorded(path):
    async def record():
        async with await Ledger.open(path) as ledger:
            for number in range(3):
                for submission in ScriptedRun(f"run-{number}", f"session-{number % 2}").whole():
                    ledger.journal.submit(submission).result()

    asyncio.run(record())
    return path


@pytest.fixture
def call():
    def invoke(command, *args):
        return CliRunner().invoke(command, [str(arg) for arg in args], env={"TACHOGRAPH_DB": ""})

    return invoke


def test_verify_never_says_more_than_it_looked_at(call, recorded):  # E9
    result = call(cli.verify, "--db", recorded)
    assert result.exit_code == 0
    assert "links, columns, contents and rows agree" in result.stdout
    assert "tail not anchored" in result.stdout


def test_verify_names_the_run_and_the_field_that_differ(call, recorded, plain):  # E1
    plain().execute("UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'")
    result = call(cli.verify, "--db", recorded)
    assert result.exit_code == 1
    assert "r:run-1: not as its events add up to: diagnosis_run.status (row 1) (row_differs)" in result.stdout
    report = json.loads(call(cli.verify, "--db", recorded, "--json").stdout)
    assert (report["finding_count"], report["findings"][0]["problem"]) == (1, "row_differs")
