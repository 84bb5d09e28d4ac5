"""The trace page in headless Chromium."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.anybody import require_no_sideways_scrolling, require_usable
from tests.viewer.example_runs import LIMITS
from tests.viewer.fake_run import FakeRun, content

BUDGET = "/trace?sessionId=s-42&runId=run-019ad3c1"
SUCCESS = "/trace?sessionId=s-42&runId=run-019ad3d7"
RUNNING = "/trace?sessionId=s-43&runId=run-live"
HOSTILE = "/trace?sessionId=s-666&runId=run-hostile"
ASTRAY = "/trace?sessionId=s-45&runId=run-astray"
PRICED = "/trace?sessionId=s-45&runId=run-priced"
PATHS = ["/", "/sessions/s-42", f"{BUDGET}&event=12&content=tool-2-output", SUCCESS, HOSTILE, ASTRAY, PRICED]

WIDE = {"width": 1440, "height": 1000}
PHONE = {"width": 390, "height": 844}


def test_the_page_says_in_words_how_the_run_ended(watch):
    page = watch(viewport=WIDE).open(f"{BUDGET}&view=events")
    assert page.title() == "Why did the nightly import stop on db-3? · Tachograph"
    assert page.get_by_role("heading", level=1).inner_text() == "Why did the nightly import stop on db-3?"
    assert "a sixth query_logs call would have passed its limit of 5" in page.locator(".why").inner_text()
    assert page.locator(".gauges .binding .label").inner_text() == "query_logs"
    assert page.locator(".graph .node").count() == 3
    assert page.locator(".tl-row.refused").count() == 1
    assert page.locator("table.events tbody tr").count() == 44


def test_the_page_is_complete_without_javascript(watch):
    page = watch(java_script_enabled=False).open(BUDGET)
    assert "a sixth query_logs call" in page.locator(".why").inner_text()
    page.locator(".tabs").get_by_text("Tool calls").click()
    page.locator("#tool-2 summary").first.click()
    expect(page.locator("#tool-2-output")).to_be_visible()
    page.locator(".tabs").get_by_text("Events").click()
    page.locator("#e5 td a").click()
    expect(page).to_have_url(re.compile("&event=5&view=events#e5$"))
    expect(page.locator(".inspector h2")).to_have_text("Event 5")


@pytest.mark.parametrize("path", PATHS)
def test_whoever_comes_can_use_every_page(watch, path):
    page = watch(viewport=WIDE).open(path)
    require_usable(page)
    require_no_sideways_scrolling(page)


@pytest.mark.parametrize("viewport", [WIDE, PHONE])
def test_the_whole_run_is_in_view_on_the_timeline(watch, viewport):
    page = watch(viewport=viewport).open(BUDGET)
    tracks = page.locator(".tl-row:not(.tl-head) .tl-track")
    bars = page.locator(".tl-track .bar")
    track = tracks.first.bounding_box()
    boxes = [bars.nth(index).bounding_box() for index in range(bars.count())]
    assert len(boxes) >= 14
    assert min(box["x"] for box in boxes) < track["x"] + 0.05 * track["width"]
    assert all(box["x"] + box["width"] <= track["x"] + track["width"] + 2 for box in boxes)
    assert max(box["x"] + box["width"] for box in boxes) > track["x"] + 0.9 * track["width"]


@pytest.mark.parametrize("width", [320, 390, 768, 1000, 1440])
@pytest.mark.parametrize("path", [BUDGET, SUCCESS, PRICED])
def test_gauges_leave_no_hole_and_keep_a_limit_beside_its_value(watch, path, width):
    page = watch(viewport={"width": width, "height": 800}).open(path)
    # As many gauges as a run of the demonstration has.
    page.evaluate(
        """() => {
          const list = document.querySelector('.gauges');
          while (list.children.length < 11) list.append(list.lastElementChild.cloneNode(true));
          list.className = 'gauges of-6';
        }"""
    )
    whole = page.locator(".gauges").bounding_box()
    boxes = [gauge.bounding_box() for gauge in page.locator(".gauges li").all()]
    for top in {box["y"] for box in boxes}:
        row = [box for box in boxes if box["y"] == top]
        assert abs(sum(box["width"] for box in row) - whole["width"]) < 1
    assert {len(amount.evaluate("it => it.getClientRects()")) for amount in page.locator(".amount").all()} == {1}
    assert page.evaluate("[...document.querySelectorAll('.gauges li')].every(it => it.scrollWidth <= it.clientWidth)")


def test_nested_scopes_stand_in_their_node_each_deeper_than_what_it_lies_in(watch):  # D5
    page = watch(viewport=WIDE).open(ASTRAY)
    labels = page.locator(".tl-band .tl-label")
    assert labels.all_inner_texts() == ["investigate.1", "deploys", "second look", "composer.2"]
    lefts = [label.locator("bdi").first.bounding_box()["x"] for label in labels.all()]
    assert lefts[0] < lefts[1] < lefts[2]
    assert lefts[3] == lefts[0]
    assert page.locator(".tl-scope.exhausted").count() == 1
    page.locator(".tl-scope.exhausted a").click()
    expect(page.locator(".inspector .kind")).to_have_text("scope.exhausted")


def test_a_phone_shows_the_whole_of_a_scopes_limits(watch):  # D5
    page = watch(viewport=PHONE).open(ASTRAY)
    for words in page.locator(".tl-scope .tl-words").all():
        assert words.evaluate("it => it.scrollWidth <= it.clientWidth + 1")
        assert "…" not in words.inner_text()


def test_what_is_only_reserved_is_drawn_apart_from_what_was_used(watch):  # H4
    page = watch(viewport=WIDE).open(PRICED)
    cost = page.locator(".gauges li", has_text="Cost")
    shares = [float(each.get_attribute("value")) for each in cost.locator("progress").all()]
    assert shares == [0.3732, 0.0132]
    assert cost.get_by_role("progressbar").count() == 1


def test_a_long_answer_opens_to_its_end_without_javascript(watch, reader):
    run = FakeRun("s-long", "run-long", "q", dict(LIMITS)).start()
    run.answer = content("a line of it\n" * 100)
    reader.held["s-long", "run-long"] = run
    page = watch(viewport=WIDE, java_script_enabled=False).open("/trace?sessionId=s-long&runId=run-long")
    answer = page.locator("#answer .text")
    before = answer.bounding_box()["height"]
    assert 600 < before <= 660
    page.get_by_text("Show all").click()
    assert answer.bounding_box()["height"] > 2 * before


@pytest.mark.parametrize("width", [320, 390, 1440])
def test_no_line_of_facts_begins_or_ends_with_a_dot(watch, width):
    page = watch(viewport={"width": width, "height": 800}).open(BUDGET)
    facts = page.locator(".verdict .facts")
    left = facts.bounding_box()["x"]
    starts = {fact.bounding_box()["x"] for fact in facts.locator("li").all()}
    # The dot of what begins a line lies left of the list's visible part.
    assert min(starts) == left
    assert facts.evaluate("it => getComputedStyle(it).clipPath") == "inset(-4px -4px -4px 12px)"


def test_nothing_of_a_runs_content_runs_or_loads(watch):  # CASES 46
    watched = watch(viewport=WIDE)
    for path in (HOSTILE, f"{HOSTILE}&content=tool-9-output", f"{HOSTILE}&event=3", "/sessions/s-666", "/"):
        page = watched.open(path)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img, main iframe, bdi form, .content form, main script, main svg script").count() == 0
    assert watched.left_the_origin == []
    assert watched.problems == []


def test_an_injected_inline_script_is_stopped_by_the_policy(browser, origin):
    """The second line of defence: were something to slip through, the browser would still not run it."""
    context = browser.new_context()
    page = context.new_page()
    refusals: list[str] = []
    page.on("console", lambda message: refusals.append(message.text))
    page.goto(f"{origin}{BUDGET}")
    page.evaluate(
        """() => new Promise((done) => {
          const script = document.createElement('script');
          script.textContent = 'window.pwned = 1';
          document.body.append(script);
          document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.pwned = 2">');
          document.images[0].addEventListener('error', () => done(null));
        })"""
    )
    assert page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in refusal for refusal in refusals)
    context.close()


def test_times_show_utc_and_the_readers_own_zone(watch):  # CASES 49
    page = watch(timezone_id="Asia/Tokyo", locale="en-GB").open(BUDGET)
    assert page.locator(".verdict time").inner_text() == "30 Nov 2026 01:14:07 UTC (10:14:07 GMT+9)"
    assert page.locator(".verdict time").get_attribute("datetime") == "2026-11-30T01:14:07.207214Z"
    there = watch(timezone_id="America/New_York", locale="en-GB").open(BUDGET)
    assert there.locator(".verdict time").inner_text() == "30 Nov 2026 01:14:07 UTC (29 Nov 20:14:07 GMT-5)"


def test_the_keyboard_reaches_everything_and_focus_can_be_seen(watch):
    page = watch(viewport=WIDE).open(BUDGET)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = set()
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break  # once around
        seen.add(page.evaluate("document.activeElement.closest('section')?.getAttribute('aria-labelledby')"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert {"timeline", "transcript", "graph", "event"} <= seen


def test_the_path_for_the_command_line_can_be_copied(watch):
    page = watch(permissions=["clipboard-read", "clipboard-write"]).open(BUDGET)
    page.get_by_role("button", name="Copy s-42/run-019ad3c1").click()
    page.get_by_text("copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "s-42/run-019ad3c1"
