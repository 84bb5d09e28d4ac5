"""What reads a body that somebody has changed says so in a word of its own; nothing of it ends a reader otherwise."""

import asyncio
import contextlib
import json
import sqlite3

import pytest

from ledger import Ledger, LedgerReader
from ledger.audit.comparing.comparing import compare
from ledger.audit.walking.replay import Replay
from ledger.errors import LedgerError
from ledger.verifying import verify
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun

RUN, OTHER = ("session-1", "run-1"), ("session-1", "run-2")
RAW = ['"x"', '"\\ud800"', '{"input_tokens": "x"}', "[" * 100_000]
NO_OBJECTS = [b"", b"[]", b"\xff", b"[" * 100_000]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A ledger of two runs that nothing keeps from being changed."""
    path = blank_at(tmp_path_factory.mktemp("changed") / "runs.db")

    async def record():
        async with await Ledger.open(path) as ledger:
            for _, run_id in (RUN, OTHER):
                for submission in ScriptedRun(run_id, writer_id=run_id).whole():
                    ledger.journal.submit(submission)

    asyncio.run(record())
    with contextlib.closing(sqlite3.connect(path)) as outsider:
        for (name,) in outsider.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            outsider.execute(f"DROP TRIGGER {name}")
    return path


@pytest.fixture
def outsider(recorded):
    with contextlib.closing(sqlite3.connect(recorded, isolation_level=None)) as outsider:
        before = outsider.execute("SELECT body, pos FROM event").fetchall()
        yield outsider
        outsider.executemany("UPDATE event SET body = ? WHERE pos = ?", before)


def bodies_of_one_run(outsider):
    return outsider.execute("SELECT pos, body FROM event WHERE stream_id = 'r:run-1'").fetchall()


def changed(body):
    """The body with each of its fields changed to each of those values."""
    fields = json.loads(body)
    for name in fields:
        others = json.dumps({key: value for key, value in fields.items() if key != name})[1:]
        yield from (f'{{"{name}": {raw}, {others}'.encode() for raw in RAW)


async def read_in_every_way(reader):
    for read in (
        lambda: reader.events(*RUN),
        lambda: Replay.read(reader, *RUN).at(1_000),
        lambda: Replay.read(reader, *RUN).first_failure(),
        lambda: compare(reader, RUN, OTHER),
        lambda: reader.trace(*RUN),
    ):
        with contextlib.suppress(LedgerError):
            await read()


@pytest.mark.parametrize("raw", range(len(RAW)))
async def test_a_field_of_another_kind_ends_no_reader_but_with_a_word_of_its_own(recorded, outsider, raw):  # CASES 27
    async with await LedgerReader.open(recorded) as reader:
        for pos, body in bodies_of_one_run(outsider):
            for other in list(changed(body))[raw :: len(RAW)]:
                outsider.execute("UPDATE event SET body = ? WHERE pos = ?", (other, pos))
                await read_in_every_way(reader)
            outsider.execute("UPDATE event SET body = ? WHERE pos = ?", (body, pos))


@pytest.mark.parametrize("body", NO_OBJECTS, ids=lambda body: repr(body[:10]))
async def test_bytes_that_are_no_object_are_told_by_every_reader_and_found(recorded, outsider, body):  # E9
    pos = bodies_of_one_run(outsider)[2][0]
    outsider.execute("UPDATE event SET body = ? WHERE pos = ?", (body, pos))
    async with await LedgerReader.open(recorded) as reader:
        await read_in_every_way(reader)
        with pytest.raises(LedgerError, match="event 3 cannot be read"):
            await reader.events(*RUN)
    assert not (await verify(recorded)).is_right
