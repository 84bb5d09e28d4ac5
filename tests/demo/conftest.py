"""What the demo's tests share: a run in memory, and the offline model on a real socket."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import ASGIApp

from demo.bounds import CHAT_LIMITS
from demo.offline_model import create_offline_model
from demo.serving import serving
from harness import Harness, MemoryJournal, RunContext, SystemWallClock
from tests.demo.chats import agent_over
from tests.servers.redis import RedisServer, redis_running


@asynccontextmanager
async def offline_model() -> AsyncIterator[ASGIApp]:
    """The bundled model, as `serving` opens it."""
    yield create_offline_model(SystemWallClock())


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    with serving("offline model", offline_model) as url:
        yield url


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_running(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
async def run(journal: MemoryJournal) -> AsyncIterator[RunContext]:
    async with Harness(journal).run(session_id="s-1", limits=CHAT_LIMITS, timeout_s=60) as run:
        yield run


@pytest.fixture
def chatting(journal, tmp_path):
    """`async with chatting(open_model) as agent`: an agent over that model, the offline one unless another is given."""

    def chatting(open_model=offline_model, **settings):
        return agent_over(journal, tmp_path, open_model, **settings)

    return chatting
