"""A page left open on a running run follows it to its end (SPEC R9, CASES 48)."""

import pytest

from tests.viewer.example_runs import running_run
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import served

PATH = "/trace?sessionId=s-43&runId=run-live"
API_PATH = "/api/diagnosis/s-43/trace?runId=run-live"


@pytest.fixture
def run():
    return running_run()


@pytest.fixture
def live(run):
    with served(FakeReader([run])) as origin:
        yield origin


def test_the_refresh_asks_for_exactly_this_run(watch, live):  # R9
    watched = watch(at=live)
    page = watched.page
    with page.expect_response(f"{live}{API_PATH}") as first:
        watched.open(PATH)
    assert first.value.status == 304
    asked = [url for url in watched.requests if "/api/" in url]
    assert set(asked) == {f"{live}{API_PATH}"}


def test_what_happens_appears_and_the_end_is_the_last_question(watch, live, run):
    watched = watch(at=live)
    page = watched.page
    page.clock.install()
    with page.expect_response(f"{live}{API_PATH}"):
        watched.open(PATH)
    page.locator("#tool-1 summary").first.click()
    run.tool(1_000, 1_200, "query_logs", {"pattern": "OOM"}, scope="executor.1", ordinal=2, output="new evidence")
    page.clock.fast_forward(2_500)
    page.locator("#tool-3").wait_for()
    assert page.locator("#tool-1 > details").get_attribute("open") is not None
    run.end(1_300, "SUCCESS", "ANSWERED", answer="It was the import service.")
    page.clock.fast_forward(2_500)
    page.get_by_text("It was the import service.").wait_for()
    assert page.locator("live-run").count() == 0
    count = len(watched.requests)
    page.clock.fast_forward(60_000)
    page.evaluate("new Promise((done) => setTimeout(done, 0)) && null")
    assert len(watched.requests) == count


def test_a_lost_connection_is_said_and_made_good(watch, live, run):
    watched = watch(at=live)
    page = watched.page
    page.clock.install()
    with page.expect_response(f"{live}{API_PATH}"):
        watched.open(PATH)
    page.route("**/api/**", lambda route: route.abort())
    page.clock.fast_forward(2_500)
    page.get_by_text("The connection is lost; trying again.").wait_for()
    run.tool(1_000, 1_200, "query_logs", {"pattern": "OOM"}, scope="executor.1", ordinal=2, output="new evidence")
    page.unroute("**/api/**")
    page.clock.fast_forward(10_000)
    page.locator("#tool-3").wait_for()
    rows = page.locator("table.events tbody tr").count()
    assert rows == len(run.events)
    assert [problem for problem in watched.problems if "ERR_FAILED" not in problem] == []
    watched.problems.clear()
