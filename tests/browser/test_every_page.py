"""Every page of the viewer, wide and on a phone, by day and by night, and on paper, far from Greenwich.

Each is opened once, and looked at in all of these. What its components look like is compared with the style guide;
what the guide does not show, and where the panels stand, with `pages.json`. Neither knows of fonts, nor of colours
but by the names of their tokens: `test_style.py` and `test_contrast.py` say what those are.
"""

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.browser.agreed import RENEWED, Agreed, picture
from tests.browser.tabs import Watched
from tests.viewer.every_address import PAGES, addresses
from tests.viewer.example_runs import SCRIPT
from tests.viewer.hostile_ledger import ERASED, FAILED, RUN, SESSION, STOPPED

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
CHECKS = (Path(__file__).parent / "page_checks.js").read_text()
COLOURS = re.findall(r"--([\w-]+): light-dark", (files("viewer") / "static" / "css" / "tokens.css").read_text())
TOKENS = sorted(COLOURS, key=lambda name: name.endswith("-ink"))
"""Of two that are the same colour the one for a meaning comes first."""


class Surroundings(NamedTuple):
    """In what a page is looked at."""

    name: str
    width: int
    scheme: str
    axe: Mapping[str, object] | None = None
    """What axe-core looks for; everything at a desk by day, elsewhere what may be otherwise there."""
    medium: str = "screen"


ALL = {"rules": {"color-contrast": {"enabled": False}, "target-size": {"enabled": True}}}
"""Contrast is looked for apart."""
PLACED = {"runOnly": ["target-size", "scrollable-region-focusable"]}
SURROUNDINGS = (
    Surroundings("wide", 1280, "light", ALL),
    Surroundings("wide", 1280, "dark"),
    Surroundings("phone", 390, "dark", PLACED),
    Surroundings("phone", 390, "light"),
    Surroundings("paper", 720, "light", medium="print"),
)
ELSEWHERE = ("/style", "offset=", "seek=", "t0=")
"""What takes longest, and the tests of the style guide, of contents, of moments and of the timeline look at."""
PATHS = [
    *(path for path in addresses(PAGES, SESSION, RUN, FAILED, SCRIPT) if not any(each in path for each in ELSEWHERE)),
    *(f"/{page}?sessionId={SESSION}&runId={run}" for run in (ERASED, STOPPED) for page in ("trace", "audit/runs")),
    "/nowhere",
]

WITHOUT_THE_READERS_TIME = """
  () => {
    const times = [...document.querySelectorAll('time')];
    const bare = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), outside = [];
    while (bare.nextNode())
      if (/\\d\\d:\\d\\d.* UTC/.test(bare.currentNode.data) && !bare.currentNode.parentElement.closest('time'))
        outside.push(bare.currentNode.data);
    return outside.concat(times
      .filter((each) => !/^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z$/.test(each.dateTime)
        || !/UTC.*GMT\\+9/s.test(each.textContent))
      .map((each) => each.outerHTML));
  }
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
VIOLATIONS = """
  async (rules) => {
    // Of elements that are and stand in the same, by name and class, the first has the contrast of all.
    const kinds = new Map();
    const visit = (each, around) => {
      const kind = `${around}>${each.localName}.${each.getAttribute('class')}`;
      const hasWords = [...each.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
      if (hasWords && !kinds.has(kind) && each.checkVisibility()) kinds.set(kind, each);
      for (const child of each.children) visit(child, kind);
    };
    visit(document.body, '');
    // What floats hides other things wherever somebody scrolls to.
    const bar = document.querySelector('replay-bar');
    bar?.style.setProperty('position', 'static');
    const found = [
      await axe.run(document, {...rules, resultTypes: ['violations']}),
      await axe.run({include: [...kinds.values()]}, {runOnly: ['color-contrast'], resultTypes: ['violations']}),
    ];
    bar?.style.removeProperty('position');
    return found.flatMap((each) => each.violations)
      .map((rule) => [rule.id, rule.nodes.map((node) => node.html.slice(0, 120))]);
  }
"""


@pytest.fixture(scope="module")
def agreed():
    agreed = Agreed("pages.json")
    yield agreed.known
    agreed.write()


@pytest.fixture(scope="module")
def visited(browser, hostile):
    """One page for all, which knows what the style guide looks like."""
    with browser.new_context(timezone_id="Asia/Tokyo", reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto(f"{hostile}/style")
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        guide = {}
        for width in {each.width for each in SURROUNDINGS}:
            page.set_viewport_size({"width": width, "height": 900})
            guide[width] = page.evaluate(CHECKS, {"tokens": TOKENS, "guide": None})
        known = json.dumps({"tokens": TOKENS, "guides": guide})
        look = "window.look = (width) => lookAt({tokens: known.tokens, guide: known.guides[width]})"
        context.add_init_script(f"const known = {known}, lookAt = {CHECKS}; {look}")
        yield Watched(page, hostile)


@pytest.mark.parametrize("path", PATHS, ids=repr)
def test_every_page_is_as_the_style_guide_has_it_and_whoever_comes_can_use_it(visited, agreed, path):  # CASES 49
    page = visited.page
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size({"width": SURROUNDINGS[0].width, "height": 900})
    page.goto(f"{visited.origin}{path}")
    assert page.locator("h1").count() == 1
    assert page.evaluate(WITHOUT_THE_READERS_TIME) == []
    page.evaluate(AXE)
    wrong = []
    for here in SURROUNDINGS:
        page.emulate_media(media=here.medium, color_scheme=here.scheme)
        page.set_viewport_size({"width": here.width, "height": 900})
        seen = page.evaluate(f"look({here.width})")
        found = [*seen["wrongs"], *otherwise(agreed, path, here, seen)]
        found += page.evaluate(VIOLATIONS, here.axe) if here.axe else []
        if here.axe:
            # What a script focuses shows it as long as the keyboard was used last.
            page.keyboard.press("Tab")
            found += page.evaluate(WITHOUT_A_RING)
        wrong += [f"{here.name}, {here.scheme}: {each}" for each in found]
        if RENEWED:
            page.screenshot(path=picture(f"page-{named(path)}-{here.name}-{here.scheme}"), full_page=True)
    assert wrong == []


def otherwise(agreed, path, here, seen):
    """What is not as the style guide and `pages.json` have it; all of it is agreed while these are renewed."""
    outlines = agreed.setdefault(here.name, {}).setdefault("outlines", {})
    looks = agreed[here.name].setdefault("looks", {})
    if RENEWED:
        outlines.setdefault(path, seen["outline"])
        for key, found in seen["strange"].items():
            looks[key] = sorted({*looks.get(key, ()), *found})
    if seen["outline"] != outlines.get(path):
        yield f"stands otherwise: {seen['outline']}, agreed on: {outlines.get(path)}"
    for key, found in seen["strange"].items():
        for look in found:
            if look not in looks.get(key, ()):
                yield f"looks otherwise: {key}: {look}"


def named(path):
    """A page's address as the name of a file."""
    return re.sub(r"[^\w.=-]+", "_", path.replace(SESSION, "S").replace(STOPPED, "W")).strip("_")[:80] or "home"
