"""The page of a run that a real harness made, read from a real ledger."""

import pytest
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def source(recorded_runs):
    return recorded_runs


def test_a_reader_walks_from_the_start_page_to_the_event_that_ended_a_run(watch):
    page = watch(viewport={"width": 1440, "height": 1000}).open("/")
    page.get_by_role("table").get_by_role("link", name="Why did the import stop?").click()
    expect(page.locator(".why")).to_contain_text("a third query_logs call would have passed its limit of 2")
    expect(page.locator(".inspector h2")).to_have_text("Event 9")
    expect(page.locator(".inspector .kind")).to_have_text("reservation.rejected")
    page.locator(".tl-row a").first.click()
    expect(page.locator(".inspector .kind")).to_have_text("attempt.succeeded")
    page.get_by_role("link", name="s-1", exact=True).click()
    expect(page.locator(".run-table tbody tr")).to_have_count(2)


def test_hostile_content_from_a_real_ledger_is_inert(watch):  # CASES 46
    page = watch().open("/trace?sessionId=s-3&runId=r-hostile")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
