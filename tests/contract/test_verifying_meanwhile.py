"""A ledger is verified while others append, erase, rebuild and sign, and nobody is accused of that (SPEC E9)."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from ledger import Signing
from ledger.audit.notes.notes import SigningKey
from ledger.verifying import verify
from tests.contract.test_following import record
from tests.ledger.scripted import ScriptedRun

KEY = SigningKey("log.example/1", b"\x01" * 32)
ROUNDS = 5


@pytest.fixture
async def busy(database):
    """A ledger in which always something happens."""
    async with await database.open(signing=Signing(key=KEY)) as ledger:
        working = asyncio.create_task(work(ledger))
        yield ledger
        assert not working.done()
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


async def work(ledger):
    number = 0
    while True:
        number += 1
        run_id, session_id = f"run-{number}", f"session-{number % 3}"
        for submission in ScriptedRun(run_id, session_id, writer_id=f"w{number}").whole():
            await record(ledger, submission)
        await ledger.record_feedback(session_id, run_id, useful=True, comment="it was the disk")
        if number % 3 == 0:
            await ledger.erase(run=(session_id, run_id))
        elif number % 3 == 1:
            await ledger.checkpoint()
        else:
            await ledger.rebuild()


async def test_what_is_appended_meanwhile_is_no_fault(busy, database):
    trusted = (await busy.checkpoint()).open([KEY.verifier])
    counts = []
    for _ in range(ROUNDS):
        report = await verify(database.url, trusted=[trusted])
        assert report.findings == ()
        counts.append(report.event_count)
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
