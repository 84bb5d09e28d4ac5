"""What a ledger has of a run is enough to execute it again, until it is erased (SPEC D7, E10)."""

import asyncio

import pytest

from harness import Harness
from harness.replay import Difference, Verdict, reexecute
from ledger import RunNotFound
from ledger.audit.recording import read_recording
from tests.contract.test_with_harness import Reply, work

# A plain object is kept by how it looks, so nothing but the code knows what it was.
DECODE = {"planner": lambda data: Reply("reply to r-1")}


@pytest.fixture
async def recorded(ledger):
    await work(Harness(ledger.journal), "r-1")

    async def read():
        return await read_recording(ledger.reader, "session-1", "r-1")

    return read


def again(harness):
    return work(harness, "r-1")


def otherwise(harness):
    return work(harness, "r-1", "session-2")


async def test_a_run_is_executed_again_from_a_ledger(recorded):
    recording = await recorded()
    done = await asyncio.to_thread(reexecute, recording, again, decode=DECODE)
    assert str(done) == f"same\n{len(recording.events)} of {len(recording.events)} events crossed again"
    done = await asyncio.to_thread(reexecute, recording, otherwise, decode=DECODE)
    assert done.divergence.differences == (Difference("session_id", "session-1", "session-2"),)


async def test_content_of_which_only_the_digest_was_kept_has_its_salt(recorded):  # D10
    recording = await recorded()
    given = next(event for event in recording.events if event.type == "attempt.started" and event.kind == "model")
    content = recording.contents[given.input_digest]
    assert (content.data, len(content.salt)) == (None, 32)


async def test_a_run_whose_content_was_erased_says_from_which_event_it_cannot_be_executed(recorded, ledger):  # E10
    await ledger.erase(run=("session-1", "r-1"), actor="dpo-1")
    recording = await recorded()
    done = await asyncio.to_thread(reexecute, recording, again, decode=DECODE)
    assert done.verdict is Verdict.CANNOT
    assert str(done.unavailable) == (
        "cannot re-execute from event 5, model/planner/1/1: the content of the output was erased"
    )


async def test_a_run_of_another_session_is_not_found(recorded, ledger):  # R4
    with pytest.raises(RunNotFound):
        await read_recording(ledger.reader, "session-2", "r-1")
