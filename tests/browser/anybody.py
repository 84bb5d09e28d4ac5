"""What holds of every page for whoever comes: axe finds nothing by day and by night, and it scrolls no way but down."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Literal

from playwright.sync_api import Page

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
WIDTHS_PX = (320, 390, 768, 1440)
SCHEMES: Sequence[tuple[Literal["light", "dark"], list[str] | None]] = (("light", None), ("dark", ["color-contrast"]))
"""With the rules to look by, where not all: by night only the colours are others."""
OPEN_ALL = "for (const each of document.querySelectorAll('details')) each.open = true"
LOOK = """
  async ([where, rules]) => {
    const options = {resultTypes: ['violations'], preload: false};
    if (rules) options.runOnly = rules;
    const found = await axe.run(where ?? document, options);
    return {
      complaints: found.violations.map(({id, nodes}) => [id, nodes.map(({html}) => html.slice(0, 120))]),
      passed: found.passes.length,
    };
  }
"""


def require_usable(page: Page, where: str | None = None) -> None:
    """Nothing to complain about in the part of the page, all that folds being open."""
    page.evaluate(OPEN_ALL)
    page.evaluate(AXE)
    # By night only the colours are others.
    schemes: Sequence[tuple[Literal["light", "dark"], list[str] | None]] = (
        ("light", None),
        ("dark", ["color-contrast"]),
    )
    for scheme, rules in schemes:
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(LOOK, [where, rules])
        assert found["complaints"] == [], scheme
        assert found["passed"] > (10 if rules is None else 0)


def require_no_sideways_scrolling(page: Page) -> None:
    """Whatever the width, all that folds being open."""
    page.evaluate(OPEN_ALL)
    for width in WIDTHS_PX:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
