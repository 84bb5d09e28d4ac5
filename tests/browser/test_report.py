"""A report in headless Chromium: nothing is loaded, it can be read by everybody, and it prints on A4."""

import re

import pytest

from ledger.audit.report import Figures, Report, RunLine, Wanted
from ledger.audit.report.tally import NAMES
from tests.browser.anybody import require_usable
from viewer.report.page import render
from viewer.report.zones import Zone

POINTS_PER_MM = 72 / 25.4
EPOCH_US = 1_800_000_000_000_000
LONG = "x" * 128


def line(number):
    """A run whose names are as long as names may be."""
    names = [LONG, f"{LONG[:-3]}{number:03}", LONG, LONG, LONG, LONG, "CHAT_GRAPH", "FAILED", "UNHANDLED_EXCEPTION"]
    times = [EPOCH_US, EPOCH_US + 1_000, None]
    counts = [0] * 8
    return RunLine(*names, *times, *counts, "EUR", 0, None, None, None, *[0] * 6, 12, "f" * 64)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """A report as long as they can be, of names as long as they can be."""
    kinds = tuple(((LONG, LONG, LONG), number) for number in range(20, 0, -1))
    figures = {name: Figures(0, ()) for name in NAMES} | {"accesses": Figures(210, kinds)}
    figures |= {"outcomes": Figures(100, ((("FAILED", "UNHANDLED_EXCEPTION"), 100),))}
    lines = tuple(line(number) for number in range(30))
    report = Report(
        *("0" * 32, EPOCH_US, 1_200, Wanted(0, EPOCH_US, LONG, LONG), 100, 0, figures, {}),
        *(lines, 5, LONG, lines[:20], (), None, "a" * 64),
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(report, Zone.named("Asia/Tokyo")))
    return path


@pytest.fixture
def opened(browser, page_file):
    page = browser.new_page(viewport={"width": 900, "height": 1_000})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    yield page, asked
    page.close()


def test_axe_finds_nothing_to_complain_about_and_nothing_else_is_loaded(opened, page_file):
    page, asked = opened
    require_usable(page)
    assert asked == [page_file.as_uri()]


def test_it_prints_on_a4_and_no_name_is_wider_than_the_paper(opened):
    page, _ = opened
    printed = page.pdf(prefer_css_page_size=True)
    boxes = re.findall(rb"/MediaBox ?\[ ?0 0 ([\d.]+) ([\d.]+)", printed)
    assert len(boxes) > 3
    sizes_mm = {tuple(round(float(side) / POINTS_PER_MM) for side in box) for box in boxes}
    assert sizes_mm == {(210, 297)}
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 665, "height": 1_000})  # what is between the margins, at 96 dots an inch
    assert page.evaluate("document.documentElement.scrollWidth") <= 665


@pytest.mark.parametrize("width", [390, 900])
def test_on_a_screen_it_does_not_scroll_sideways(opened, width):
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 1_000})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
