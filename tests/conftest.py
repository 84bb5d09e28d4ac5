"""What every test shares: settings of libraries, a database server, and the browser to drive."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from ledger.store.postgres.migrating import ensure_current
from ledger.store.postgres.place import place_at
from tests.servers.postgres import PostgresServer, in_thread
from tests.viewer.real_runs import record_runs

# Before anything imports LangGraph: nothing of a run leaves the machine.
os.environ["LANGSMITH_TRACING"] = "false"

# Whatever starts the tests in the background may have Ctrl-C ignored in them, and so in all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The time-out is pytest's; in CI the examples are the same in every run.
settings.register_profile("tachograph", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("tachograph")


@pytest.fixture(scope="session")
def chromium_path() -> str | None:
    """The system's browser, but none of a snap's, which cannot be driven; None stands for Playwright's own."""
    found = (shutil.which(name) for name in ("chromium", "google-chrome", "google-chrome-stable"))
    return next((path for path in found if path and not path.startswith("/snap/")), None)


@pytest.fixture(scope="session")
def recorded_runs(tmp_path_factory) -> Path:
    """A ledger with the runs of `tests.viewer.real_runs`, to be read alone: who writes takes a copy."""
    path: Path = tmp_path_factory.mktemp("recorded") / "runs.db"
    in_thread(lambda: record_runs(path))
    return path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests, which trusts the power; durability is tested on servers of their own."""
    server = PostgresServer(is_durable=False).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    """A database that holds an empty ledger, to copy."""
    name = postgres_server.create_database()
    in_thread(lambda: ensure_current(place_at(postgres_server.url(name))))
    # Copies of it are not restored dumps.
    postgres_server.execute("UPDATE ledger_meta SET value = '' WHERE key = 'home'", database=name)
    return name


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """The address of an empty ledger of the test's own."""
    name = postgres_server.create_database(template=postgres_template)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)
