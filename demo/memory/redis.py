"""Conversations in Redis: a list of turns for each session, cut to its length, and gone a day after the latest one."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from demo.bounds import MEMORY_CONNECTIONS_MAX, MEMORY_TIMEOUT_S, MEMORY_TTL_S, MEMORY_TURNS_MAX
from demo.memory.turns import MemoryUnavailable, MemoryUnusable, Turn, cut

KEY_PREFIX: Final = "tachograph:conversation:"


class RedisMemory:
    """Conversations in the database that `url` names, which may be away when it is opened; closed by `async with`.

    Nothing is sent twice: a turn whose fate is unknown would stand there twice.
    """

    def __init__(self, url: str) -> None:
        try:
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=MEMORY_CONNECTIONS_MAX,
                timeout=MEMORY_TIMEOUT_S,
                socket_timeout=MEMORY_TIMEOUT_S,
                socket_connect_timeout=MEMORY_TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
                decode_responses=True,
            )
        except ValueError as error:
            raise MemoryUnusable("the address of Redis is none like redis://127.0.0.1:6379/0") from error
        self._redis = Redis.from_pool(pool)

    async def __aenter__(self) -> "RedisMemory":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._redis.aclose()

    async def recall(self, session_id: str) -> tuple[Turn, ...]:
        """The latest turns, oldest first; none once the conversation has expired."""
        async with _within_bounds():
            rows = await self._redis.lrange(key_of(session_id), -MEMORY_TURNS_MAX, -1)
        return tuple(_turn(row) for row in rows)

    async def remember(self, session_id: str, turn: Turn) -> None:
        """Add a turn, cut the list and set its expiry, all in one transaction."""
        key, row = key_of(session_id), json.dumps([cut(turn.question), cut(turn.answer)])
        async with _within_bounds(), self._redis.pipeline(transaction=True) as together:
            together.rpush(key, row)
            together.ltrim(key, -MEMORY_TURNS_MAX, -1)
            together.expire(key, MEMORY_TTL_S)
            await together.execute()

    async def forget(self, session_id: str) -> None:
        """Forget the whole conversation."""
        async with _within_bounds():
            await self._redis.delete(key_of(session_id))


def key_of(session_id: str) -> str:
    """Where the turns of a session are."""
    return f"{KEY_PREFIX}{session_id}"


@asynccontextmanager
async def _within_bounds() -> AsyncIterator[None]:
    """Whatever goes wrong there is `MemoryUnavailable`, without its words, in which the address may stand."""
    try:
        async with asyncio.timeout(MEMORY_TIMEOUT_S):
            yield
    except (RedisError, OSError, TimeoutError) as error:
        raise MemoryUnavailable(f"Redis did not answer as it should ({type(error).__name__})") from error


def _turn(row: str | bytes) -> Turn:
    try:
        question, answer = json.loads(row)
    except (ValueError, TypeError) as error:
        raise MemoryUnavailable("Redis holds something else in the place of a conversation") from error
    return Turn(str(question), str(answer))
