"""Every page of the viewer, at a desk by day and on a phone by night, far from Greenwich: whoever comes can use it."""

from importlib.resources import files

import pytest

from tests.browser.tabs import Watched
from tests.servers.postgres import in_thread
from tests.viewer.every_address import PAGES, addresses
from tests.viewer.example_runs import SCRIPT
from tests.viewer.hostile_ledger import ERASED, FAILED, RUN, SESSION, STOPPED, record_hostile
from tests.viewer.served import served
from viewer.audit.source import LedgerAddress

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
SURROUNDINGS = {
    "desk by day": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone by night": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
ELSEWHERE = ("/style", "offset=", "at=12", "seek=", "t0=")
"""What takes longest, and the tests of the style guide, of contents, of moments and of the timeline look at."""
PATHS = [
    *(path for path in addresses(PAGES, SESSION, RUN, FAILED, SCRIPT) if not any(each in path for each in ELSEWHERE)),
    *(f"/{page}?sessionId={SESSION}&runId={run}" for run in (ERASED, STOPPED) for page in ("trace", "audit/runs")),
    "/nowhere",
]

WITHOUT_THE_READERS_TIME = """
  [...document.querySelectorAll('time')]
    .filter((each) => !/^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z$/.test(each.dateTime)
      || !/UTC.*GMT\\+9/s.test(each.textContent))
    .map((each) => each.outerHTML)
"""
WITHOUT_A_RING = """
  [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((each) => each.checkVisibility() && !each.disabled && each.type !== 'hidden')
    .filter((each) => {
      each.focus();
      return document.activeElement === each && getComputedStyle(each).outlineStyle === 'none';
    })
    .map((each) => each.outerHTML.slice(0, 120))
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("every_page") / "ledger.db"
    in_thread(lambda: record_hostile(path))
    with served(path, writable=True, address=LedgerAddress(str(path))) as origin:
        yield origin


@pytest.fixture(scope="module", params=SURROUNDINGS.values(), ids=list(SURROUNDINGS))
def visited(request, browser, hostile):
    """One page for all of a kind."""
    with browser.new_context(**request.param, timezone_id="Asia/Tokyo", reduced_motion="reduce") as context:
        yield Watched(context.new_page(), hostile)


@pytest.mark.parametrize("path", PATHS, ids=repr)
def test_whoever_comes_can_use_every_page(visited, path):  # CASES 49
    page = visited.page
    page.goto(f"{visited.origin}{path}")
    assert page.locator("h1").count() == 1
    assert page.evaluate(WITHOUT_THE_READERS_TIME) == []
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found["violations"]] == []
    # What a script focuses shows it as long as the keyboard was used last.
    page.keyboard.press("Tab")
    assert page.evaluate(WITHOUT_A_RING) == []
