"""Walking through a run in a browser: keys, slider, without JavaScript, on a phone."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.anybody import require_no_sideways_scrolling, require_usable

RUN = "/trace?sessionId=s-1&runId=r-answered"
LAST = 32
WIDE = {"width": 1440, "height": 1000}
PHONE = {"width": 390, "height": 844}
PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def source(recorded_runs):
    return recorded_runs


def at(page, seq):
    """Wait until the page shows the run as it was at that event."""
    moment = page.locator(".moment")
    expect(moment).to_contain_text(f"just after event {seq} of {LAST}", timeout=PATIENCE_MS)
    expect(page).to_have_url(re.compile(f"[?&]at={seq}(&|#|$)"), timeout=PATIENCE_MS)


def test_keys_walk_through_the_run_and_the_address_follows(watch):
    page = watch(viewport=WIDE).open(f"{RUN}&at=5")
    page.keyboard.press("ArrowRight")
    at(page, 6)
    page.keyboard.press("ArrowLeft")
    at(page, 5)
    page.keyboard.press("Shift+ArrowRight")
    at(page, 17)
    expect(page.locator(".inspector h2")).to_have_text("Event 17")
    page.keyboard.press("Shift+ArrowLeft")
    at(page, 4)
    page.keyboard.press("Home")
    at(page, 1)
    page.keyboard.press("End")
    expect(page.locator(".moment")).to_have_count(0, timeout=PATIENCE_MS)
    assert "at=" not in page.url


def test_keys_are_left_to_what_is_typed_into(watch):
    page = watch(viewport=WIDE).open(f"{RUN}&at=5")
    page.locator(".event-filter input[type=search]").fill("disk")
    for key in ("ArrowLeft", "Home", "End", "Shift+ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".moment")).to_contain_text("event 5 of")
    assert page.url.endswith("at=5")


def test_the_slider_shows_the_last_moment_that_it_was_moved_to(watch):
    page = watch(viewport=WIDE).open(RUN)
    slider = page.locator(".replay .slider")
    slider.evaluate(
        "slider => { for (const seq of [3, 9, 14]) { slider.value = seq; slider.dispatchEvent(new Event('input')); } }"
    )
    at(page, 14)
    expect(page.locator(".replay input[name=at]")).to_have_value("14")
    expect(page.locator(".why")).to_contain_text("Running, 880 ms after the start; 2 of 8 model calls used.")
    expect(page.locator("table.events tbody tr[id]")).to_have_count(14)
    expect(page.locator(".changed ins").first).to_be_visible()
    slider.focus()
    page.keyboard.press("ArrowRight")
    at(page, 15)
    expect(slider).to_be_focused()


def test_without_javascript_links_and_a_number_lead_through_the_run(watch):
    page = watch(viewport=WIDE, java_script_enabled=False).open(f"{RUN}&at=5")
    page.get_by_role("link", name="Next event").click()
    at(page, 6)
    page.locator(".replay input[name=at]").fill("20")
    page.get_by_role("button", name="Go").click()
    at(page, 20)
    page.get_by_role("link", name="Failure before").click()
    at(page, 17)
    expect(page.locator(".replay .slider")).to_be_hidden()


def test_on_a_phone_everything_of_the_bar_is_big_enough_and_in_view(watch):
    page = watch(viewport=PHONE, has_touch=True).open(f"{RUN}&at=5")
    targets = page.locator(".replay a.step, .replay .slider, .replay input[name=at], .replay .seeks a:visible")
    boxes = [targets.nth(index).bounding_box() for index in range(targets.count())]
    assert len(boxes) >= 7
    assert min(box["height"] for box in boxes) >= 44
    assert min(box["x"] for box in boxes) >= 0
    assert max(box["x"] + box["width"] for box in boxes) <= PHONE["width"]
    assert max(box["y"] + box["height"] for box in boxes) <= PHONE["height"]
    page.locator(".replay a[data-part=following]").tap()
    at(page, 6)


@pytest.mark.parametrize("path", [f"{RUN}&at=14&view=events", f"{RUN}&event=31", f"{RUN}&failures=1"])
def test_whoever_comes_can_use_a_moment_of_the_run(watch, path):
    page = watch(viewport=WIDE).open(path)
    require_usable(page)
    require_no_sideways_scrolling(page)


def test_a_finger_and_a_reader_get_the_time_in_their_own_zone(watch):  # CASES 49
    page = watch(viewport=WIDE, timezone_id="Asia/Tokyo").open(f"{RUN}&view=events")
    expect(page.locator("#e1 .clock")).to_contain_text("08:01:00.000000 UTC")
    expect(page.locator("#e1 .clock")).to_contain_text("(17:01:00 GMT+9)")
