"""The timeline in headless Chromium: looked at closer by key, by mouse and by link."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.anybody import require_no_sideways_scrolling, require_usable
from tests.browser.test_trace_page import BUDGET, PHONE, WIDE
from tests.viewer.example_runs import LIMITS
from tests.viewer.fake_run import FakeRun

SLOW = "/trace?sessionId=s-slow&runId=run-slow"
LONG = "/trace?sessionId=s-slow&runId=run-long"
WHOLE_US = 4_172_000


def slow_run() -> FakeRun:
    """Most of its time it waited for somebody; it ended near its deadline."""
    run = FakeRun("s-slow", "run-slow", "May I roll back?", dict(LIMITS), timeout_us=34_000_000).start()
    run.model(30, 900, "planner", scope="planner.1")
    for ordinal, end in enumerate((14_100, 15_900, 14_700), 1):
        run.tool(13_300, end, "query_logs", {"pattern": "x"}, scope="executor.2", ordinal=ordinal, output=[1])
    run.model(24_000, 26_000, "composer", scope="composer.3")
    return run.end(33_500, "SUCCESS", "ANSWERED", answer="done")


def long_run() -> FakeRun:
    """More rows than a page can carry, and more events than are read for one."""
    run = FakeRun("s-slow", "run-long", "How many?", {**LIMITS, "tool_calls": 5_000, "tool:query_logs": 5_000}).start()
    for number in range(800):
        at_ms = number * 10
        run.tool(at_ms, at_ms + 6, "query_logs", {"n": number}, scope=f"node.{number % 3}", ordinal=number + 1)
    return run.end(8_100, "SUCCESS", "ANSWERED", answer="ok")


@pytest.fixture(scope="module", autouse=True)
def slow_runs(reader):
    for run in (slow_run(), long_run()):
        reader.held[run.session_id, run.run_id] = run


def window_of(page):
    found = re.search(r"[?&]t0=(\d+)&t1=(\d+)", page.url)
    return (int(found[1]), int(found[2])) if found else None


def zoom_links(page):
    return page.locator(".zoom a").evaluate_all("links => links.map(link => link.dataset.zoom)")


def test_keys_look_closer_move_and_go_back_and_the_address_says_where_one_is(watch):
    page = watch(viewport=WIDE).open(BUDGET)
    assert window_of(page) is None
    page.locator(".tl-plot").focus()
    page.keyboard.press("+")
    page.wait_for_url(re.compile("t0="))
    first = window_of(page)
    assert first[1] - first[0] == WHOLE_US // 2
    page.keyboard.press("[")
    page.wait_for_url(lambda url: f"t0={first[0]}&" not in url)
    earlier = window_of(page)
    assert earlier[0] < first[0]
    assert earlier[1] - earlier[0] == WHOLE_US // 2
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(f"t0={first[0]}&"))
    page.keyboard.press("-")
    page.wait_for_url(lambda url: "t0=" not in url)
    page.keyboard.press("+")
    page.wait_for_url(re.compile("t0="))
    page.keyboard.press("0")
    page.wait_for_url(lambda url: "t0=" not in url)
    expect(page.locator(".tl-row.refused")).to_have_count(1)


def test_a_drag_selects_a_stretch_and_only_what_lies_in_it_is_drawn(watch):
    page = watch(viewport=WIDE).open(BUDGET)
    plot = page.locator(".tl-grid").first.bounding_box()
    y = plot["y"] + 60
    page.mouse.move(plot["x"] + 0.3 * plot["width"], y)
    page.mouse.down()
    page.mouse.move(plot["x"] + 0.4 * plot["width"], y, steps=4)
    expect(page.locator(".selection")).to_have_count(1)
    page.mouse.move(plot["x"] + 0.5 * plot["width"], y, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile("t0="))
    start, end = window_of(page)
    assert start == pytest.approx(0.3 / 0.98 * WHOLE_US, rel=0.02)
    assert end == pytest.approx(0.5 / 0.98 * WHOLE_US, rel=0.02)
    labels = page.locator(".tl-groups .tl-row:not(.tl-band) .tl-label bdi")
    assert set(labels.all_inner_texts()) == {"query_metrics", "query_logs"}
    expect(page.locator(".tl-map .window")).to_have_count(1)


def test_the_wheel_with_ctrl_looks_closer_where_it_points(watch):
    page = watch(viewport=WIDE).open(BUDGET)
    plot = page.locator(".tl-grid").first.bounding_box()
    page.mouse.move(plot["x"] + 2, plot["y"] + 60)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.wait_for_url(re.compile("t0="))
    page.keyboard.up("Control")
    start, end = window_of(page)
    assert start < 0.02 * WHOLE_US
    assert end - start == pytest.approx(WHOLE_US / 2, rel=0.02)


def test_without_javascript_links_do_the_same_and_a_stretch_can_be_sent(watch):
    page = watch(viewport=WIDE, java_script_enabled=False).open(BUDGET)
    assert zoom_links(page) == ["in"]
    page.get_by_role("link", name="Zoom in").click()
    page.wait_for_url(re.compile("t0="))
    shown = page.locator(".tl-label bdi").all_inner_texts()
    assert "model · router" not in shown
    assert "Showing" in page.locator("section", has=page.locator("#timeline")).inner_text()
    other = watch(viewport=PHONE, java_script_enabled=False)
    other.page.goto(page.url)
    assert other.page.locator(".tl-label bdi").all_inner_texts() == shown
    other.page.get_by_role("link", name="Whole run").click()
    expect(other.page.locator(".tl-row.refused")).to_have_count(1)


def test_idle_time_is_folded_and_said_and_can_be_shown_in_full(watch):
    page = watch(viewport=WIDE, java_script_enabled=False).open(SLOW)
    labels = page.locator("text.fold").all_text_contents()
    assert labels == ["12.4 s idle", "8.10 s idle", "7.50 s idle"]
    panel = page.locator("section", has=page.locator("#timeline"))
    assert "28.0 s idle, folded" in panel.inner_text()
    narrow = page.locator(".tl-track .bar.model").last.bounding_box()["width"]
    panel.get_by_role("link", name="show", exact=True).click()
    page.wait_for_url(re.compile("idle=shown"))
    assert page.locator("text.fold").count() == 0
    assert page.locator(".tl-track .bar.model").last.bounding_box()["width"] < narrow / 2
    panel.get_by_role("link", name="Fold idle time").click()
    expect(page.locator("text.fold")).to_have_count(3)


def test_a_near_deadline_is_a_line_and_a_far_one_only_told(watch):
    near = watch(viewport=WIDE).open(SLOW)
    assert near.locator(".tl-grid line.deadline").count() == 1
    far = watch(viewport=WIDE).open(BUDGET)
    assert far.locator(".tl-grid line.deadline").count() == 0
    assert far.locator("text.deadline").text_content() == "deadline at 1 min →"


def test_lanes_lead_to_a_stretch_in_which_each_attempt_has_its_row(watch):  # CASES 47
    page = watch(viewport=WIDE, java_script_enabled=False).open(LONG)
    assert page.locator(".tl-row a[data-zoom=row]").count() == 3
    page.locator(".tl-row a[data-zoom=row]").first.click()
    page.wait_for_url(re.compile("t0="))
    rows = page.locator(".tl-groups .tl-row:not(.tl-band)").count()
    assert 100 < rows <= 160
    assert "as lanes" not in page.locator("section", has=page.locator("#timeline")).inner_text()


def test_what_came_after_the_moment_that_is_looked_at_is_dim(watch):
    page = watch(viewport=WIDE).open(f"{BUDGET}&at=12")
    assert page.locator(".tl-grid .shade").count() == 1
    later, all_rows = page.locator(".tl-row.later").count(), page.locator(".tl-groups .tl-row").count()
    assert 0 < later < all_rows
    assert page.locator(".tl-row.later .bar.failed").count() == 1


def test_the_limit_that_ended_the_run_is_drawn_over_time_first_and_to_the_figure(watch):
    page = watch(viewport=WIDE, java_script_enabled=False).open(BUDGET)
    first = page.locator(".tl-spent").first
    assert first.get_attribute("class") == "tl-row tl-spent binding"
    assert first.locator(".tl-label").inner_text().split() == ["query_logs", "5", "/", "5"]
    assert first.locator("title").all_text_contents()[-1] == "5 of 5 at +2.960 s"
    assert "2 at +1.930 s, 3 at +2.220 s" in first.locator(".unseen").text_content()
    hidden = page.locator(".tl-others .tl-spent")
    assert not hidden.first.is_visible()
    page.locator(".tl-others summary").click()
    assert hidden.first.is_visible()


@pytest.mark.parametrize("path", [SLOW, LONG, f"{BUDGET}&t0=1000000&t1=2000000", f"{BUDGET}&at=12"])
def test_whoever_comes_can_use_a_folded_or_a_zoomed_timeline(watch, path):
    page = watch(viewport=WIDE).open(path)
    for viewport in (WIDE, PHONE):
        page.set_viewport_size(viewport)
        require_usable(page, "section[aria-labelledby=timeline]")
    require_no_sideways_scrolling(page)
