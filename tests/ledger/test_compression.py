"""Big contents are stored smaller, and read back exactly or not at all."""

import os

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from harness.content import MAX_CONTENT_BYTES
from ledger import TooLarge
from ledger.compression import (
    GAIN_MIN_BYTES,
    PACK_FROM_BYTES,
    PREVIEW_BYTES,
    PREVIEW_STORED_BYTES,
    ZSTD,
    DamagedContent,
    pack,
    unpack,
    unpack_beginning,
)
from tests.ledger.scripted import ScriptedRun

TEXT = b"2026-12-01T00:00:00 level=ERROR host=7 msg=the disk is full\n" * 200

pieces = st.one_of(st.binary(max_size=3_000), st.binary(min_size=1, max_size=8).map(lambda piece: piece * 2_000))


@given(st.lists(pieces, max_size=6).map(b"".join))
@example(b"x" * PACK_FROM_BYTES)
@example(os.urandom(PREVIEW_BYTES) + b"x" * PACK_FROM_BYTES)
def test_whatever_is_packed_reads_back_exactly_and_so_does_its_beginning(data):  # CASES 27
    stored, encoding = pack(data)
    assert unpack(stored, encoding, len(data)) == data
    assert unpack_beginning(stored[:PREVIEW_STORED_BYTES], encoding) == data[:PREVIEW_BYTES]
    assert len(stored) <= len(data)


def test_small_contents_and_those_that_gain_nothing_are_stored_as_they_are():
    assert pack(TEXT[: PACK_FROM_BYTES - 1]) == (TEXT[: PACK_FROM_BYTES - 1], None)
    noise = os.urandom(PACK_FROM_BYTES)
    assert pack(noise) == (noise, None)
    stored, encoding = pack(TEXT)
    assert (encoding, len(stored) + GAIN_MIN_BYTES < len(TEXT)) == (ZSTD, True)


def frame(data, **settings):
    return zstandard.ZstdCompressor(**settings).compress(data)


BOMB = frame(bytes(MAX_CONTENT_BYTES * 2))
DAMAGES = {
    "a bomb": (BOMB, ZSTD, 1_000),
    "a bomb whose size is on record": (BOMB, ZSTD, MAX_CONTENT_BYTES * 2),
    "a size that is none": (frame(TEXT), ZSTD, -1),
    "more than is on record": (frame(TEXT), ZSTD, len(TEXT) - 1),
    "less than is on record": (frame(TEXT), ZSTD, len(TEXT) + 1),
    "a frame without a size": (frame(TEXT, write_content_size=False), ZSTD, len(TEXT)),
    "two frames": (frame(TEXT) + frame(TEXT), ZSTD, len(TEXT)),
    "half of it": (frame(TEXT)[:-9], ZSTD, len(TEXT)),
    "nothing": (b"", ZSTD, len(TEXT)),
    "no frame": (TEXT, ZSTD, len(TEXT)),
    "a packing of the future": (TEXT, "brotli", len(TEXT)),
}


@pytest.mark.parametrize(("stored", "encoding", "size_bytes"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_not_what_was_packed_is_damaged_and_never_larger_than_it_may_be(stored, encoding, size_bytes):
    with pytest.raises(DamagedContent):
        unpack(stored, encoding, size_bytes)


def test_a_beginning_is_bounded_whatever_the_rest_claims():
    assert unpack_beginning(BOMB[:PREVIEW_STORED_BYTES], ZSTD) == bytes(PREVIEW_BYTES)
    for stored, encoding in ((b"no frame", ZSTD), (TEXT, "brotli")):
        with pytest.raises(DamagedContent):
            unpack_beginning(stored, encoding)


@pytest.fixture
def answered(ledger):
    """Makes a run with an answer."""

    def answer(text):
        run = ScriptedRun()
        for submission in (run.start(), run.answer(text), run.end()):
            ledger.journal.submit(submission).result()
        return ledger.reader

    return answer


async def test_a_big_answer_takes_little_room_and_is_shown_whole(answered, plain):
    reader = answered(TEXT.decode())
    ((encoding, stored_bytes, size_bytes),) = plain().execute(
        "SELECT encoding, length(data), size_bytes FROM content WHERE encoding IS NOT NULL"
    )
    assert (encoding, size_bytes, stored_bytes < size_bytes / 20) == (ZSTD, len(TEXT), True)
    trace = await reader.trace("session-1", "run-1")
    assert (trace.answer.data, trace.answer.size_bytes) == (TEXT, len(TEXT))
    (listed,) = (await reader.recent_runs()).rows
    assert listed.answer_preview == trace.run.summary.answer_preview == TEXT.decode()[:200]


async def test_a_damaged_content_is_shown_as_such_and_takes_nothing_with_it(answered, plain):
    reader = answered(TEXT.decode())
    connection = plain()
    connection.execute("DROP TRIGGER content_update")
    connection.execute("UPDATE content SET data = zeroblob(length(data)) WHERE encoding = 'zstd'")
    trace = await reader.trace("session-1", "run-1")
    assert (trace.answer.state, trace.answer.data, trace.run.summary.answer_preview) == ("damaged", None, None)
    assert trace.run.summary.query == "What is wrong with host 7?"
    (listed,) = (await reader.recent_runs()).rows
    assert (listed.query, listed.answer_preview) == ("What is wrong with host 7?", None)


async def test_a_packed_content_is_erased_like_any_other(answered, ledger, plain):  # E10
    reader = answered(TEXT.decode())
    await ledger.erase(run=("session-1", "run-1"))
    assert (await reader.trace("session-1", "run-1")).answer.state == "erased"
    assert plain().execute("SELECT DISTINCT encoding, data FROM content").fetchall() == [(None, None)]


def test_a_content_above_the_limit_is_refused_with_its_size_and_the_limit(ledger):  # CASES 26
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    with pytest.raises(TooLarge) as caught:
        ledger.journal.submit(run.answer("x" * (MAX_CONTENT_BYTES + 1)))
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (MAX_CONTENT_BYTES + 1, MAX_CONTENT_BYTES)
