"""Bringing everything up: ledger, model, app; and down again, whatever happens in between."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from rich.console import Console
from starlette.applications import Starlette

from demo.app import open_app
from demo.configuration import Configuration, without_password
from demo.offline_model import create_offline_model
from demo.serving import serving
from demo.settings import ledger_url, offline_provider, provider_of, settings_of
from harness import SystemWallClock
from ledger import Ledger, LedgerReader
from ledger.store.place import path_of

LOOPBACK = ("127.0.0.1", "localhost")


@contextmanager
def demo_served(console: Console, given: Configuration) -> Iterator[tuple[str, Path]]:
    """The address of the app and the file of its ledger, while the block runs."""
    keep_loopback_direct(os.environ)
    db_url = ledger_url(given["data"], given["db"])
    ledger_file = path_of(db_url)
    asyncio.run(_migrate(db_url))
    console.print(f"· ledger   {ledger_file}", style="dim")
    with ExitStack() as servers:
        provider = provider_of(given)
        if provider is None:
            model_url = servers.enter_context(serving("the offline model", opened_offline_model))
            provider = offline_provider(model_url)
        settings = settings_of(given, provider)
        console.print(f"· model    {provider.model} at {without_password(provider.base_url)}", style="dim")
        if settings.redis_url is not None:
            console.print(f"· memory   {without_password(settings.redis_url)}", style="dim")
        url = servers.enter_context(serving("the app", lambda: open_app(settings), port=given["port"]))
        console.print(f"· app      {url}, reading logs in {settings.log_folder}", style="dim")
        yield url, ledger_file


async def newest_run(ledger_file: Path) -> tuple[str, str] | None:
    """Session and run of the run that was created last, if there is any."""
    async with await LedgerReader.open(f"sqlite:///{ledger_file}") as reader:
        rows = (await reader.recent_runs(limit=1)).rows
    return (rows[0].session_id, rows[0].run_id) if rows else None


def keep_loopback_direct(environ: MutableMapping[str, str]) -> None:
    """Add this machine's own names to NO_PROXY, so that no proxy stands between the app and its model."""
    for name in ("NO_PROXY", "no_proxy"):
        known = [host for host in environ.get(name, "").split(",") if host]
        environ[name] = ",".join([*known, *(host for host in LOOPBACK if host not in known)])


async def _migrate(db_url: str) -> None:
    """Make the ledger, or bring it up to date."""
    async with await Ledger.open(db_url):
        pass


@asynccontextmanager
async def opened_offline_model() -> AsyncIterator[Starlette]:
    """The bundled model, as `serving` opens it."""
    yield create_offline_model(SystemWallClock())
