"""The commands that keep a ledger safe: what they say, what they refuse, and how they end."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from ledger import Ledger
from ledger.migrate import OPEN_TIMEOUT_S, lock_of
from tests.ledger import commands as cli
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
    assert "links, columns, contents, rows and the course of every run agree" in result.stdout
    assert "tail not anchored" in result.stdout


def test_verify_does_not_say_that_there_are_no_events_where_none_is_right(call, recorded, plain):
    somebody = plain()
    for (name,) in somebody.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        somebody.execute(f"DROP TRIGGER {name}")
    somebody.execute("UPDATE event SET recorded_us = 7")
    result = call(cli.verify, "--db", recorded)
    assert result.exit_code == 1
    assert "vouches for" in result.stdout.splitlines()[-1]
    assert "when they were recorded cannot be told" in result.stdout.splitlines()[-1]


def test_verify_names_the_run_and_the_field_that_differ(call, recorded, plain):  # E1
    plain().execute("UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'")
    result = call(cli.verify, "--db", recorded)
    assert result.exit_code == 1
    assert "r:run-1: not as its events add up to: diagnosis_run.status (row 1) (row_differs)" in result.stdout
    report = json.loads(call(cli.verify, "--db", recorded, "--json").stdout)
    assert (report["finding_count"], report["findings"][0]["problem"]) == (1, "row_differs")


def test_a_ledger_is_backed_up_listed_and_restored(call, recorded, tmp_path):
    result = call(cli.backup, tmp_path / "b.db", "--db", recorded, "--verify")
    assert (result.exit_code, "verified: " in result.stdout) == (0, True)
    assert call(cli.erase, "session-1/run-1", "--db", recorded, "--yes").exit_code == 0
    assert "1 erasure" in call(cli.erasures, "--db", recorded, "-o", tmp_path / "list").stdout
    result = call(cli.restore, tmp_path / "b.db", tmp_path / "r.db", "--erasures", tmp_path / "list")
    assert (result.exit_code, "erased again: 1 decisions" in result.stdout) == (0, True)
    assert (
        "what was erased since the backup is there again"
        in call(cli.restore, tmp_path / "b.db", tmp_path / "r2.db").stdout
    )


def test_what_cannot_be_backed_up_or_overwritten_is_one_line(call, recorded, tmp_path):
    (tmp_path / "b.db").write_text("mine")
    for result in (
        call(cli.backup, tmp_path / "b.db", "--db", recorded),
        call(cli.backup, tmp_path / "c.db", "--db", tmp_path / "none.db"),
        call(cli.backup, tmp_path / "c.db", "--db", "postgresql://nobody@127.0.0.1:1/none"),
        call(cli.erasures, "--db", recorded, "-o", tmp_path / "b.db"),
        call(cli.restore, tmp_path / "none.db", tmp_path / "r.db"),
    ):
        assert (result.exit_code, result.stderr.count("\n"), result.stderr[:7]) == (2, 1, "Error: ")


def test_the_doctor_names_what_needs_attention_and_where_settings_come_from(call, recorded, monkeypatch):
    monkeypatch.setattr("ledger.store.examining.FREE_WARN_BYTES", 0)
    result = call(cli.doctor, "--db", recorded)
    assert (result.exit_code, "nothing needs attention" in result.stdout, "option --db" in result.stdout) == (
        0,
        True,
        True,
    )
    monkeypatch.setattr("ledger.store.examining.FREE_WARN_BYTES", 2**62)
    result = call(cli.doctor, "--db", recorded)
    assert (result.exit_code, "attention: free_bytes: make room on the disk" in result.stdout) == (1, True)
    assert json.loads(call(cli.doctor, "--db", recorded, "--json").stdout)["needs_attention"] is True


@pytest.mark.parametrize("command", ["migrate", "rebuild"])
def test_a_command_that_is_interrupted_says_so_and_not_that_something_is_wrong(recorded, command):
    tachograph = shutil.which("tachograph", path=Path(sys.executable).parent)
    lock = lock_of(recorded)
    with lock.held(5):
        waiting = subprocess.Popen(
            [tachograph, command, "--db", recorded], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until_s = time.monotonic() + 30
        while not any(file.path == str(lock.path) for file in psutil.Process(waiting.pid).open_files()):
            assert time.monotonic() < until_s
            time.sleep(0.01)
        waiting.send_signal(signal.SIGINT)
        assert waiting.communicate(timeout=OPEN_TIMEOUT_S / 2) == ("", "Interrupted\n")
    assert waiting.returncode == 130
    lock.close()
