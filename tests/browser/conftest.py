"""A real browser in front of a served viewer, and what went wrong in it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.tabs import Tabs, Watched
from tests.servers.postgres import in_thread
from tests.viewer.example_runs import all_runs
from tests.viewer.fake_reader import FakeReader
from tests.viewer.hostile_ledger import record_hostile
from tests.viewer.served import served
from viewer.audit.source import LedgerAddress
from viewer.reading import Reader


@pytest.fixture(scope="module")
def browser(chromium_path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def reader() -> FakeReader:
    return FakeReader(all_runs())


@pytest.fixture(scope="module")
def source(reader) -> Reader | Path:
    """What is served; a module may say otherwise."""
    return reader


@pytest.fixture(scope="module")
def origin(source) -> Iterator[str]:
    with served(source) as origin:
        yield origin


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Iterator[str]:
    """A writable viewer of a ledger of which every text is an attack."""
    path = tmp_path_factory.mktemp("hostile") / "ledger.db"
    in_thread(lambda: record_hostile(path))
    with served(path, writable=True, address=LedgerAddress(str(path))) as origin:
        yield origin


@pytest.fixture(scope="module")
def tabs(browser) -> Tabs:
    return Tabs(browser)


@pytest.fixture
def watch(tabs, origin) -> Iterator[Callable[..., Watched]]:
    """Open watched pages; at the end none may have complained or asked another host for anything."""

    def open_page(*, at: str = origin, **settings) -> Watched:
        return tabs.take(at, **settings)

    yield open_page
    tabs.give_back()
