"""The composition root: the only place that wires harness, ledger, viewer, model and memory together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

from starlette.applications import Starlette

from demo.agent import Agent
from demo.api import Api
from demo.bounds import MEMORY_TTL_S
from demo.gatekeeper import Gatekeeper
from demo.graph import diagnosis_graph
from demo.jobs import Jobs
from demo.memory import Memory
from demo.memory.sqlite import SqliteMemory
from demo.settings import Settings
from demo.tools import READ_ONLY, Sources
from demo.tools.errors import failure_type
from harness import Harness, RandomIds, SystemWallClock, WallClock
from harness.adapters import openai as openai_adapter
from ledger import Ledger, Signing
from ledger.audit.signing.keyring import found_or_made
from viewer.access.guard import Guard
from viewer.app import create_app
from viewer.audit.source import LedgerAddress
from viewer.metrics import Metrics


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncIterator[Starlette]:
    """The application with everything open that it needs; everything is closed at the end, runs under way first."""
    settings.data_folder.mkdir(parents=True, exist_ok=True)
    clock, ids, provider = SystemWallClock(), RandomIds(), settings.provider
    client = openai_adapter.make_async_client(
        base_url=provider.base_url, api_key=provider.api_key, timeout_s=settings.model_timeout_s
    )
    # Whoever has the public half of this key can tell whether the record was changed.
    key = found_or_made(settings.key_path, f"demo.tachograph/{ids.writer_id()}", ids)
    opening = Ledger.open(settings.db_url, session_ttl_s=MEMORY_TTL_S, signing=Signing(key=key))
    async with await opening as ledger, client, open_memory(settings, clock) as memory:
        agent = Agent(
            harness=Harness(
                ledger.journal,
                ids=ids,
                classifiers=(openai_adapter.classify, failure_type),
                policies=(READ_ONLY,),
            ),
            chat=openai_adapter.Chat(client, provider.model),
            sources=Sources(
                settings.log_folder,
                metrics_snapshot=settings.metrics_snapshot,
                prometheus_url=settings.prometheus_url,
                cases=ledger.reader,
                sql_url=settings.sql_url,
            ),
            memory=memory,
            records=ledger,
            graph=diagnosis_graph(),
            limits=settings.limits,
            timeout_s=settings.timeout_s,
        )
        jobs = Jobs(settings.active_runs_max)
        api = Api(agent, jobs, new_session_id=lambda: ids.run_id().replace("run-", "chat-", 1))
        try:
            metrics = Metrics(ledger.reader, ledger.measures)
            yield create_app(
                ledger.reader,
                address=LedgerAddress(settings.db_url),
                eraser=ledger,
                writer=Gatekeeper(ledger),
                extra_routes=api.routes,
                metrics=metrics,
                guard=Guard.of(ledger),
            )
        finally:
            await jobs.close()


@asynccontextmanager
async def open_memory(settings: Settings, clock: WallClock) -> AsyncIterator[Memory]:
    """Redis where the settings name one, which may be away; else a file."""
    if settings.redis_url is None:
        with closing(SqliteMemory(settings.memory_path, clock)) as memory:
            yield memory
    else:
        from demo.memory.redis import RedisMemory  # loaded only where it is used

        async with RedisMemory(settings.redis_url) as memory_there:
            yield memory_there
