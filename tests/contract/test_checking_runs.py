"""One run is looked at from all sides, and under the newest checkpoint it says how far that vouches for it (E9)."""

from __future__ import annotations

import json

import pytest

from ledger import RunNotFound, Signing
from ledger.audit.notes.notes import SigningKey
from tests.contract.test_following import all_ordered
from tests.contract.test_verifying import disarm
from tests.contract.test_verifying_rules import forge
from tests.ledger.scripted import ScriptedRun

KEY = SigningKey("ledger.example", b"\x01" * 32)


@pytest.fixture
async def signed(database, clock):
    """Two runs under a checkpoint; nothing is signed any more."""
    async with await database.open(wall_clock=clock, signing=Signing(key=KEY)) as ledger:
        for number in (1, 2):
            for submission in ScriptedRun(f"run-{number}", writer_id=f"w{number}").whole():
                ledger.journal.submit(submission).result()
        await ledger.checkpoint()
    async with await database.open(wall_clock=clock) as ledger:
        yield ledger


async def checked(ledger, run_id="run-1"):
    return await ledger.reader.check_run("session-1", run_id)


async def test_a_run_under_the_newest_checkpoint_is_proven_to_its_last_event(signed, clock):
    check = await checked(signed)
    assert (check.findings, check.anchored_count, check.checked_us) == ((), check.event_count, clock.now_us())
    assert check.checkpoint == await signed.reader.newest_checkpoint()
    assert check.event_count > 5
    assert check.content_count > 0
    assert check.row_count > 0


async def test_what_came_since_the_checkpoint_is_not_said_to_be_under_it(signed):
    before = await checked(signed)
    await signed.record_feedback("session-1", "run-1", useful=False)
    await all_ordered(signed)
    after = await checked(signed)
    assert (after.findings, after.anchored_count) == ((), before.event_count)
    assert after.event_count == before.event_count + 1


async def test_a_run_begun_since_the_checkpoint_is_under_none_of_it(signed):
    for submission in ScriptedRun("run-3", writer_id="w3").whole():
        signed.journal.submit(submission).result()
    await all_ordered(signed)
    check = await checked(signed, "run-3")
    assert (check.findings, check.anchored_count) == ((), 0)
    assert check.checkpoint is not None


async def test_a_ledger_that_signs_nothing_has_nothing_that_vouches(ledger):
    for submission in ScriptedRun("run-1").whole():
        ledger.journal.submit(submission).result()
    check = await checked(ledger)
    assert (check.findings, check.checkpoint, check.anchored_count) == ((), None, 0)


async def test_a_run_of_another_session_is_not_found(signed):  # CASES 43
    for keys in (("session-9", "run-1"), ("session-1", "run-9")):
        with pytest.raises(RunNotFound):
            await signed.reader.check_run(*keys)


async def test_a_changed_body_is_named_by_its_event_and_nothing_is_proven(signed, plain):
    outsider = plain()
    disarm(outsider, "event")
    outsider.execute("UPDATE event SET body = ? WHERE stream_id = 'r:run-1' AND seq = 3", [b"{}"])
    check = await checked(signed)
    assert [(found.problem, found.seq) for found in check.findings] == [("body_changed", 3)]
    assert (check.holds, check.anchored_count) == (False, 0)
    assert (await checked(signed, "run-2")).holds


async def test_a_row_that_its_events_do_not_add_up_to_is_found(signed, plain):
    outsider = plain()
    disarm(outsider, "diagnosis_run")
    outsider.execute("UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'")
    assert [found.problem for found in (await checked(signed)).findings] == ["row_differs"]


async def test_a_run_written_anew_with_all_its_hashes_is_not_the_one_that_was_signed(signed, plain):
    outsider = plain()
    for table in ("event", "stream", "diagnosis_run"):
        disarm(outsider, table)
    rows = outsider.execute("SELECT body FROM event WHERE stream_id = 'r:run-1' ORDER BY seq")
    bodies = [json.loads(bytes(body)) for (body,) in rows]
    bodies[0]["agent"] = "somebody"
    forge(outsider, "r:run-1", bodies)
    outsider.execute("UPDATE diagnosis_run SET agent = 'somebody' WHERE run_id = 'run-1'")
    check = await checked(signed)
    assert [found.problem for found in check.findings] == ["checkpoint_differs"]
    assert check.anchored_count == 0


async def test_a_checkpoint_that_is_not_what_its_note_says_vouches_for_nothing(signed, plain):
    outsider = plain()
    disarm(outsider, "checkpoint")
    outsider.execute("UPDATE checkpoint SET root = ? ", [b"\x07" * 32])
    assert [found.problem for found in (await checked(signed)).findings] == ["checkpoint_differs"]
