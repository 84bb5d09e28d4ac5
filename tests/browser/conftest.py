"""A real browser in front of a served viewer, and what went wrong in it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.viewer.example_runs import all_runs
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import served
from viewer.reading import Reader


class Watched:
    """A page and everything that must not happen on it."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("dialog", lambda dialog: self._note("error", f"dialog {dialog.message}"))

    def open(self, path: str) -> Page:
        answer = self.page.goto(f"{self.origin}{path}")
        assert answer is not None
        assert answer.ok, answer.status
        return self.page

    @property
    def left_the_origin(self) -> list[str]:
        return [url for url in self.requests if not url.startswith(f"{self.origin}/")]

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)


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


@pytest.fixture
def watch(browser, origin) -> Iterator[Callable[..., Watched]]:
    """Open watched pages; at the end none may have complained or asked another host for anything."""
    pages: list[Watched] = []
    with ExitStack() as contexts:

        def open_page(*, at: str = origin, **settings) -> Watched:
            context = contexts.enter_context(browser.new_context(**settings))
            pages.append(Watched(context.new_page(), at))
            return pages[-1]

        yield open_page
        for page in pages:
            assert page.problems == []
            assert page.left_the_origin == []
