"""What a conversation remembers, for how long, and how much: one contract over a file and a real Redis (SPEC R2)."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass

import pytest
import redis.asyncio

from demo.bounds import MEMORY_TEXT_CHARS_MAX, MEMORY_TTL_S, MEMORY_TURNS_MAX
from demo.memory import Memory, MemoryUnavailable, MemoryUnusable, Turn
from demo.memory.redis import RedisMemory, key_of
from demo.memory.sqlite import SqliteMemory
from harness import ManualClock


@dataclass
class Store:
    """A memory, another one over what it keeps, and a way to let time pass there."""

    memory: Memory
    again: Memory
    let_pass: Callable[[float], Awaitable[None]]


@pytest.fixture(params=["file", "redis"])
async def store(request, tmp_path) -> AsyncIterator[Store]:
    async with request.getfixturevalue(f"{request.param}_store") as store:
        yield store


@pytest.fixture
def file_store(tmp_path):
    return _file_store(tmp_path / "memory.db")


@pytest.fixture
def redis_store(request, redis_server):
    return _redis_store(redis_server)


@asynccontextmanager
async def _file_store(path):
    clock = ManualClock()

    async def let_pass(seconds):
        clock.advance(seconds)

    memory, again = SqliteMemory(path, clock), SqliteMemory(path, clock)
    yield Store(memory, again, let_pass)
    memory.close()
    again.close()


@asynccontextmanager
async def _redis_store(server):
    async with redis.asyncio.Redis.from_url(server.url) as client:
        await client.flushall()

        async def let_pass(seconds):
            """Each key comes nearer to its end, or comes to it."""
            for key in await client.keys():
                await client.pexpire(key, await client.pttl(key) - round(seconds * 1000))

        async with RedisMemory(server.url) as memory, RedisMemory(server.url) as again:
            yield Store(memory, again, let_pass)


@pytest.fixture
def memory(store):
    return store.memory


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def file_memory(tmp_path, clock):
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


async def test_a_conversation_expires_a_day_after_its_latest_turn(store):
    await store.memory.remember("s-1", Turn("first", ""))
    await store.let_pass(MEMORY_TTL_S - 10)
    await store.memory.remember("s-1", Turn("second", ""))
    await store.let_pass(MEMORY_TTL_S - 10)
    assert len(await store.memory.recall("s-1")) == 2
    await store.let_pass(10)
    assert await store.memory.recall("s-1") == ()


async def test_it_outlives_whoever_wrote_it(store):
    await store.memory.remember("s-1", Turn("q", "a"))
    assert await store.again.recall("s-1") == (Turn("q", "a"),)


async def test_what_is_forgotten_is_gone_and_other_conversations_stay(memory):
    for session_id in ("s-1", "s-2"):
        await memory.remember(session_id, Turn("q", "a"))
    await memory.forget("s-1")
    await memory.forget("s-1")
    assert await memory.recall("s-1") == ()
    await memory.remember("s-1", Turn("again", ""))
    assert [turn.question for turn in await memory.recall("s-1")] == ["again"]
    assert len(await memory.recall("s-2")) == 1


async def test_turns_of_one_session_at_once_are_all_kept(memory):
    await asyncio.gather(*(memory.remember("s-1", Turn(str(number), "")) for number in range(MEMORY_TURNS_MAX)))
    assert {turn.question for turn in await memory.recall("s-1")} == {str(n) for n in range(MEMORY_TURNS_MAX)}


async def test_a_text_that_is_no_valid_unicode_is_remembered_with_a_replacement(memory):
    await memory.remember("s-1", Turn("a\udc00b", "c"))
    assert (await memory.recall("s-1"))[0].question == "a?b"


async def test_what_has_expired_is_gone_from_the_file(file_memory, clock, tmp_path):
    await file_memory.remember("s-1", Turn("a question with zebra in it", ""))
    clock.advance(MEMORY_TTL_S + 1)
    await file_memory.remember("s-2", Turn("q", "a"))
    assert b"zebra" not in (tmp_path / "memory.db").read_bytes()


async def test_a_file_that_another_process_holds_is_unavailable_and_not_waited_for_long(file_memory, tmp_path):
    file_memory._db.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(MemoryUnavailable):
            await file_memory.recall("s-1")
        with pytest.raises(MemoryUnavailable):
            await file_memory.remember("s-1", Turn("q", "a"))
    await file_memory.remember("s-1", Turn("q", "a"))
    assert len(await file_memory.recall("s-1")) == 1


@pytest.mark.parametrize("foreign", ["not json", "[1]", "7"])
async def test_what_is_no_conversation_in_redis_is_unavailable(redis_server, foreign):
    async with redis.asyncio.Redis.from_url(redis_server.url) as client, RedisMemory(redis_server.url) as memory:
        await client.flushall()
        await client.rpush(key_of("s-1"), foreign)
        await client.set(key_of("s-2"), foreign)
        for session_id in ("s-1", "s-2"):
            with pytest.raises(MemoryUnavailable):
                await memory.recall(session_id)


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:1", "redis://127.0.0.1:port"])
def test_an_address_that_is_none_of_a_redis_is_refused_without_being_quoted(url):
    with pytest.raises(MemoryUnusable) as caught:
        RedisMemory(url)
    assert not url or url not in str(caught.value)
