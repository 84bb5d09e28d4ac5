"""Home and the lists in a real browser: usable by everybody, by keyboard, on a phone, and live."""

import asyncio
import threading

import pytest
from playwright.sync_api import expect

from harness import Harness, Limits
from ledger import Ledger
from tests.browser.anybody import require_no_sideways_scrolling, require_usable
from tests.viewer.served import served

PATHS = [
    "/?window=all",
    "/runs",
    "/runs?status=FAILED&agent=triage",
    "/runs?environment=nowhere",
    "/sessions",
    "/sessions/s-1",
]
WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def source(recorded_runs):
    return recorded_runs


def test_whoever_comes_can_use_every_list(watch):
    watched = watch(viewport=WIDE)
    for path in PATHS:
        page = watched.open(path)
        require_usable(page)
        require_no_sideways_scrolling(page)


def test_a_list_is_narrowed_without_javascript(watch):
    page = watch(java_script_enabled=False, viewport=WIDE).open("/runs")
    page.locator(".filters summary").click()
    page.get_by_label("Failed").check()
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".run-table tbody tr")).to_have_count(1)
    page.get_by_label("Without outcome: Failed").click()
    expect(page.locator(".run-table tbody tr")).to_have_count(7)


def test_the_keyboard_leads_to_every_section_through_rows_and_to_its_own_help(watch):
    page = watch(viewport=WIDE).open("/?window=all")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    page.wait_for_load_state()  # Then its scripts have run.
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.closest('tr').rowIndex") == 1
    page.keyboard.press("/")
    page.keyboard.type("j?g")
    assert page.evaluate("document.activeElement.value") == "j?g"


def test_a_run_that_begins_and_ends_is_seen_without_loading_the_page_anew(watch, tmp_path):
    opened, may_begin, begun, may_end, ended = (threading.Event() for _ in range(5))
    path = tmp_path / "live.db"

    async def work() -> None:
        async with await Ledger.open(path) as ledger:
            opened.set()
            await asyncio.to_thread(may_begin.wait, 60)
            limits = Limits(model_calls=1, tool_calls=1, input_tokens=9, output_tokens=9, total_tokens=9, run_bytes=9)
            harness = Harness(ledger.journal)
            async with harness.run(session_id="s", run_id="r", query="Q?", limits=limits, timeout_s=600, agent="a@1"):
                begun.set()
                await asyncio.to_thread(may_end.wait, 60)
        ended.set()

    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    assert opened.wait(30)
    with served(path) as origin:
        page = watch(at=origin, viewport=WIDE).open("/runs")
        expect(page.get_by_text("No run is recorded yet.")).to_be_visible()
        page.evaluate("window.isTheSamePage = true")
        may_begin.set()
        assert begun.wait(30)
        expect(page.locator(".run-table .pill")).to_have_text("Running", timeout=30_000)
        may_end.set()
        assert ended.wait(30)
        expect(page.locator(".run-table .pill")).to_have_text("Success", timeout=30_000)
        assert page.evaluate("window.isTheSamePage")
    thread.join(10)
