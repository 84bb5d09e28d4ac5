"""What a conversation remembers, for how long, and how much."""

import asyncio

import pytest

from demo.bounds import MEMORY_TEXT_CHARS_MAX, MEMORY_TTL_S, MEMORY_TURNS_MAX
from demo.memory import SqliteMemory, Turn
from harness import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def memory(tmp_path, clock):
    memory = SqliteMemory(tmp_path / "memory.db", clock)
    yield memory
    memory.close()


async def test_turns_come_back_oldest_first(memory):
    turns = [Turn(f"question {number}", f"answer {number}") for number in range(3)]
    for turn in turns:
        await memory.remember("s-1", turn)
    assert list(await memory.recall("s-1")) == turns


async def test_only_the_latest_turns_are_kept(memory):
    for number in range(MEMORY_TURNS_MAX + 3):
        await memory.remember("s-1", Turn(str(number), ""))
    kept = await memory.recall("s-1")
    assert [turn.question for turn in kept] == [str(number) for number in range(3, MEMORY_TURNS_MAX + 3)]


async def test_long_texts_are_cut(memory):
    await memory.remember("s-1", Turn("q" * 5000, "a" * 5000))
    (turn,) = await memory.recall("s-1")
    assert {len(turn.question), len(turn.answer)} == {MEMORY_TEXT_CHARS_MAX}


async def test_sessions_do_not_see_each_other(memory):
    await memory.remember("s-1", Turn("q", "a"))
    assert await memory.recall("s-2") == ()


async def test_a_conversation_expires_a_day_after_its_latest_turn(memory, clock):
    await memory.remember("s-1", Turn("first", ""))
    clock.advance(MEMORY_TTL_S - 1)
    await memory.remember("s-1", Turn("second", ""))
    clock.advance(MEMORY_TTL_S - 1)
    assert len(await memory.recall("s-1")) == 2
    clock.advance(1)
    assert await memory.recall("s-1") == ()


async def test_what_has_expired_is_gone_from_the_file(memory, clock, tmp_path):
    await memory.remember("s-1", Turn("a question with zebra in it", ""))
    clock.advance(MEMORY_TTL_S + 1)
    await memory.remember("s-2", Turn("q", "a"))
    assert b"zebra" not in (tmp_path / "memory.db").read_bytes()


async def test_it_outlives_the_process(memory, tmp_path, clock):
    await memory.remember("s-1", Turn("q", "a"))
    again = SqliteMemory(tmp_path / "memory.db", clock)
    assert await again.recall("s-1") == (Turn("q", "a"),)
    again.close()


async def test_turns_of_one_session_at_once_are_all_kept(memory):
    await asyncio.gather(*(memory.remember("s-1", Turn(str(number), "")) for number in range(MEMORY_TURNS_MAX)))
    assert {turn.question for turn in await memory.recall("s-1")} == {str(n) for n in range(MEMORY_TURNS_MAX)}


async def test_a_text_that_is_no_valid_unicode_is_remembered_with_a_replacement(memory):
    await memory.remember("s-1", Turn("a\udc00b", "c"))
    assert (await memory.recall("s-1"))[0].question == "a?b"
