"""A process that ends while its ledger is open says nothing of what its threads cannot do any more (SPEC E9)."""

import subprocess
import sys

import pytest

UNTIL_S = 120
SIGNS_AT_THE_END = """
import asyncio, atexit, sys
from ledger import Ledger, Signing
from ledger.audit.notes.notes import SigningKey

async def open_ledger():
    signing = Signing(key=SigningKey("log.example/1", bytes(32)), every_s=3_600)
    ledger = await Ledger.open(sys.argv[1], signing=signing)
    await ledger.checkpoint()
    return ledger

def sign():
    # By now thread pools take no more work, and the signer's own thread goes on.
    checkpoints = ledger._checkpoints
    asyncio.run_coroutine_threadsafe(checkpoints._try(), checkpoints._thread.loop).result({until_s})
    print(*checkpoints.measures().refused, flush=True)

ledger = asyncio.run(open_ledger())
atexit.register(sign)
"""


@pytest.mark.timeout(UNTIL_S + 10)
def test_a_checkpoint_that_the_end_of_the_process_forbids_is_no_error(tmp_path):
    command = [sys.executable, "-c", SIGNS_AT_THE_END.format(until_s=UNTIL_S), tmp_path / "runs.db"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=UNTIL_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "internal_error\n"
