"""A bit that changed somewhere in a ledger's file is found, or reads as it did: never "ok" where it reads otherwise."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Ledger, LedgerReader
from ledger.errors import LedgerFileError
from ledger.verifying import verify
from tests.examples import examples
from tests.ledger.scripted import ScriptedRun

RUNS = ("run-1", "run-2")
SCATTER = 2_654_435_761
"""A prime, by which small numbers become places all over the file."""


class Whole:
    """A small ledger's file, and what is read of it."""

    def __init__(self, data: bytes, was_read: object) -> None:
        self.data = data
        self.was_read = was_read


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Whole:
    path = tmp_path_factory.mktemp("whole") / "runs.db"

    async def record():
        async with await Ledger.open(path) as ledger:
            for run_id in RUNS:
                for submission in ScriptedRun(run_id).whole():
                    ledger.journal.submit(submission).result()
            await ledger.record_feedback("session-1", "run-1", useful=True, comment="it was the disk " * 400)
            await ledger.erase(run=("session-1", "run-2"))
        return await read(path)

    was_read = asyncio.run(record())
    return Whole(path.read_bytes(), was_read)


async def read(path: Path) -> object:
    """All that readers are shown of the runs."""
    async with await LedgerReader.open(path) as reader:
        traces = [await reader.trace("session-1", run_id) for run_id in RUNS]
        events = [await reader.events("session-1", run_id, after_seq=0) for run_id in RUNS]
        return traces, events, await reader.recent_runs(), await reader.system_events(after_seq=0)


async def looked_at(path: Path) -> tuple[bool, object]:
    """Whether the file is said to be right, and then what is read of it."""
    try:
        is_right = (await verify(path)).is_right
    except LedgerFileError:
        return False, None
    return is_right, await read(path) if is_right else None


@examples(80)
@given(number=st.integers(0, 2**40))
def test_a_bit_that_changed_is_found_or_reads_as_it_did(whole, tmp_path_factory, number):  # E9
    spoiled = bytearray(whole.data)
    at, bit = divmod(number * SCATTER % (8 * len(spoiled)), 8)
    spoiled[at] ^= 1 << bit
    path = tmp_path_factory.mktemp("spoiled") / "runs.db"
    path.write_bytes(spoiled)
    is_right, is_read = asyncio.run(looked_at(path))
    assert not is_right or is_read == whole.was_read
