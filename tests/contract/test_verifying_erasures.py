"""What the ledger's own stream says of erasures, and what runs say was taken of them, is held against each other."""

from __future__ import annotations

import json

import pytest

from ledger.verifying import verify
from tests.contract.test_verifying import disarm
from tests.contract.test_verifying_rules import forge
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
async def rewrite(ledger, database, plain):
    """Somebody who owns the database writes a stream anew after an erasure; what is found apart from lost triggers."""
    for run_id in ("run-1", "run-2", "run-3"):
        for submission in ScriptedRun(run_id).whole():
            ledger.journal.submit(submission).result()
    await ledger.erase(run=("session-1", "run-1"), actor="ops-1")
    await ledger.erase(session="session-1")
    assert (await verify(database.url)).findings == ()
    outsider = plain()

    async def rewritten(stream_id, event_type, **fields):
        for table in ("event", "stream"):
            disarm(outsider, table)
        rows = outsider.execute("SELECT body FROM event WHERE stream_id = ? ORDER BY seq", [stream_id])
        bodies = [json.loads(bytes(body)) for (body,) in rows]
        at = next(at for at, body in enumerate(bodies) if body["type"] == event_type)
        bodies[at] |= fields
        forge(outsider, stream_id, bodies)
        found = (await verify(database.url)).findings
        return [(one.problem, one.stream_id, one.seq - at - 1) for one in found if one.problem != "rules_missing"]

    return rewritten


@pytest.mark.parametrize(
    "other", [{"erasure_id": "e-9"}, {"reason": "BECAUSE"}, {"actor": "ops-2"}, {"scope": "RETENTION"}]
)
async def test_what_a_run_says_was_taken_must_have_been_decided(rewrite, other):  # D19
    found = await rewrite("r:run-1", "content.erased", **other)
    assert ("erasure_differs", "r:run-1", 0) in found


async def test_what_the_ledger_says_was_taken_must_be_said_by_runs(rewrite):  # D19
    (found,) = await rewrite("r:run-2", "content.erased", size_bytes=1)
    assert found[:2] == ("erasure_differs", "sys")


@pytest.mark.parametrize("other", [{"of_run_id": "run-9"}, {"of_session_id": "session-9"}, {"actor": "ops-2"}])
async def test_a_decision_is_about_what_was_taken(rewrite, other):  # D19
    found = await rewrite("sys", "erasure.decided", **other)
    assert {one[:2] for one in found} == {("erasure_differs", "r:run-1")}


async def test_an_end_of_more_than_was_taken_is_found(rewrite):  # D19
    assert await rewrite("sys", "erasure.finished", run_count=2) == [("erasure_differs", "sys", 0)]
