"""Whoever interrupts a verification that has helpers hears of that in one line, and no process stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from ledger import Ledger
from tests.ledger.scripted import ScriptedRun

RUNS = 60
COMMAND = """
import sys
from ledger.cli.verify import verify
from ledger.verifying import processes, sharing
processes.ALONE_BELOW_EVENTS, sharing.SHARE_STREAMS = 0, 1
verify(["--db", sys.argv[1], "--jobs", "3"])
"""
UNTIL_S = 30.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "runs.db"

    async def record():
        async with await Ledger.open(path) as ledger:
            for number in range(RUNS):
                for submission in ScriptedRun(f"run-{number}", writer_id=f"w{number}").whole():
                    ledger.journal.submit(submission).result()

    asyncio.run(record())
    return path


@pytest.fixture
def verifying(recorded):
    """A verification with its helpers just born; all of them in a group, as a terminal has it."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, recorded],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process, helpers_of(process)
    process.kill()
    process.communicate()


def helpers_of(process):
    until_s = time.monotonic() + UNTIL_S
    while time.monotonic() < until_s:
        children = psutil.Process(process.pid).children()
        if len(children) >= 3:
            return children
    raise AssertionError("it has no helpers")


@pytest.mark.parametrize("later_s", [0.0, 0.2, 0.5])
def test_an_interrupt_leaves_no_traceback_and_no_process(verifying, later_s):
    process, helpers = verifying
    time.sleep(later_s)
    os.killpg(process.pid, signal.SIGINT)
    assert "Traceback" not in process.communicate(timeout=UNTIL_S)[1]
    assert psutil.wait_procs(helpers, timeout=UNTIL_S)[1] == []


def test_helpers_end_when_whoever_asked_is_killed(verifying):
    process, helpers = verifying
    process.kill()
    assert psutil.wait_procs(helpers, timeout=UNTIL_S)[1] == []
