"""Every page and every answer, over a ledger of which every text is an attack on whoever looks at it (CASES 46)."""

import httpx2
import pytest
from playwright.sync_api import Page

from tests.browser.tabs import Watched
from tests.viewer.every_address import PAGES, PROGRAMS, addresses, routes_of
from tests.viewer.example_runs import SCRIPT
from tests.viewer.fake_reader import FakeReader
from tests.viewer.hostile_ledger import ERASED, FAILED, RUN, SESSION, STOPPED
from viewer.app import create_app

ON_RUN = list(addresses(PAGES, SESSION, RUN, FAILED, SCRIPT))
ON_OTHERS = [
    f"/{page}?sessionId={SESSION}&runId={run}" for run in (FAILED, ERASED, STOPPED) for page in ("trace", "audit/runs")
]
REFUSED = [f"/trace?sessionId={SCRIPT}&runId=x", "/nowhere/<script>", "/audit?list=<b>", "/compare?runA=<b>"]

LEADING_AWAY = """
  [...document.querySelectorAll('a[href], form[action]')]
    .map((each) => new URL(each.getAttribute('href') ?? each.getAttribute('action'), location.href))
    .filter((address) => address.origin !== location.origin)
    .map(String)
"""


@pytest.fixture(scope="module")
def narrow(browser, hostile):
    """One page for all, as narrow as a page has to bear."""
    context = browser.new_context(viewport={"width": 320, "height": 700})
    yield Watched(context.new_page(), hostile)
    context.close()


def test_no_route_is_left_out():
    assert {*routes_of(create_app(FakeReader()))} == {*PAGES, *PROGRAMS}


@pytest.mark.parametrize("path", [*ON_RUN, *ON_OTHERS, *REFUSED], ids=repr)
def test_whatever_a_run_says_a_page_shows_it_as_text_and_stays_usable(narrow, path):
    narrow.requests.clear()
    narrow.problems.clear()
    page = narrow.page
    answer = page.goto(f"{narrow.origin}{path}")
    assert answer.headers["content-type"].startswith("text/html")
    landed = page.url
    touch(page)
    assert page.evaluate("window.pwned") is None
    assert page.url == landed
    assert len(page.context.pages) == 1
    assert page.locator("h1").count() == 1
    assert page.locator("main :is(img, iframe, object, embed, base, style, link, script)").count() == 0
    assert page.evaluate(LEADING_AWAY) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert narrow.left_the_origin == []
    assert [problem for problem in narrow.problems if answer.ok or "status of" not in problem] == []


def touch(page: Page) -> None:
    """Open all that opens, and do to every element what sets off handlers."""
    page.evaluate(
        """() => {
          for (const each of document.querySelectorAll('details')) each.open = true;
          const events = ['mouseover', 'mouseenter', 'focus', 'load', 'error', 'toggle'];
          for (const each of document.querySelectorAll('main *'))
            for (const name of events) each.dispatchEvent(new Event(name));
        }"""
    )


def test_what_programs_are_given_no_browser_takes_for_a_page(hostile):
    with httpx2.Client(base_url=hostile, timeout=30) as client:
        for path in addresses(PROGRAMS, SESSION, RUN, FAILED, SCRIPT):
            answer = client.get(path)
            assert answer.status_code in (200, 204), path
            assert answer.headers.get("content-type", "text/css").partition(";")[0] != "text/html", path
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
