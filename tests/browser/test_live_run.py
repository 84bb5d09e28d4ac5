"""A page left open on a running run follows it to its end (SPEC R9, CASES 48)."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from harness import Harness, Run
from ledger import Ledger
from tests.viewer.example_runs import running_run
from tests.viewer.fake_reader import FakeReader
from tests.viewer.real_runs import LIMITS
from tests.viewer.served import served

PATH = "/trace?sessionId=s-1&runId=r-live"
API_PATH = "/api/diagnosis/s-1/trace?runId=r-live"
LIVE_PATH = "/api/diagnosis/s-1/runs/r-live/live?from=now"

Step = Callable[[Harness, Run], Awaitable[None]]


class OpenRun:
    """A real run, held open in a loop of its own, that takes a step whenever it is told to."""

    def __init__(self, path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._steps: asyncio.Queue[tuple[Step, asyncio.Event] | None] = asyncio.Queue()
        self._begun = asyncio.Event()
        self._ending = asyncio.run_coroutine_threadsafe(self._live(path), self._loop)
        self._wait(self._begun.wait())

    def take(self, step: Step) -> None:
        """Let the run take a step, and wait until it has."""

        async def hand_over() -> None:
            taken = asyncio.Event()
            await self._steps.put((step, taken))
            await taken.wait()

        self._wait(hand_over())

    def end(self) -> None:
        """Leave the run's block and close the ledger."""
        if not self._ending.done():
            self._wait(self._steps.put(None))
            self._ending.result(20)

    def close(self) -> None:
        self.end()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    def _wait(self, work: Awaitable[Any]) -> None:
        async def awaited() -> None:
            await work

        asyncio.run_coroutine_threadsafe(awaited(), self._loop).result(20)

    async def _live(self, path) -> None:
        async with await Ledger.open(path) as ledger:
            await ledger.open_session("s-1")
            harness = Harness(ledger.journal)
            async with harness.run(
                session_id="s-1", run_id="r-live", query="What restarts?", limits=LIMITS, timeout_s=600
            ) as run:
                await use_tool(harness, run)
                self._begun.set()
                while (told := await self._steps.get()) is not None:
                    step, taken = told
                    await step(harness, run)
                    taken.set()


async def use_tool(harness: Harness, run: Run) -> None:
    await harness.tool(
        run, "query_metrics", lambda run, what: {"restarts": 7}, args={"what": "restarts"}, effect="read"
    )


async def answer(harness: Harness, run: Run) -> None:
    harness.answer(run, "It was the import service.")


@pytest.fixture
def open_run(tmp_path):
    run = OpenRun(tmp_path / "runs.db")
    yield run
    run.close()


@pytest.fixture
def live(open_run, tmp_path):
    with served(tmp_path / "runs.db") as origin:
        yield origin


def test_the_refresh_asks_for_exactly_this_run(watch, live):  # R9
    watched = watch(at=live)
    page = watched.page
    with page.expect_response(f"{live}{API_PATH}") as first:
        watched.open(PATH)
    assert first.value.status == 304
    asked = [url for url in watched.requests if "/api/" in url]
    assert set(asked) - {f"{live}{LIVE_PATH}"} == {f"{live}{API_PATH}"}


def test_what_happens_is_shown_as_soon_as_it_is_told_and_nobody_asks_in_between(watch, live, open_run):  # CASES 48
    watched = watch(at=live)
    page = watched.page
    with page.expect_response(f"{live}{LIVE_PATH}") as stream, page.expect_response(f"{live}{API_PATH}"):
        watched.open(PATH)
    assert stream.value.headers["content-type"].startswith("text/event-stream")
    page.wait_for_timeout(500)
    count = len(watched.requests)
    page.wait_for_timeout(3_000)
    assert watched.requests[count:] == []
    asked_count = watched.requests.count(f"{live}{API_PATH}")
    began_s = time.monotonic()
    open_run.take(use_tool)
    page.locator("#tool-2").wait_for()
    assert time.monotonic() - began_s < 2.0
    open_run.take(use_tool)
    page.locator("#tool-3").wait_for()
    numbers = page.locator("table.events tbody tr td:first-child").all_inner_texts()
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert watched.requests.count(f"{live}{LIVE_PATH}") == 1
    # Who was told asks for the page itself, and not first whether there is something new.
    assert watched.requests.count(f"{live}{API_PATH}") == asked_count
    open_run.take(answer)
    open_run.end()
    page.locator("live-run").wait_for(state="detached")
    count = len(watched.requests)
    page.wait_for_timeout(2_500)
    assert watched.requests[count:] == []


def test_what_happens_appears_and_the_end_is_the_last_question(watch, live, open_run):
    watched = watch(at=live, is_new=True)
    page = watched.page
    page.clock.install()
    with page.expect_response(f"{live}{API_PATH}"):
        watched.open(PATH)
    page.locator("#tool-1 summary").first.click()
    open_run.take(use_tool)
    page.clock.fast_forward(2_500)
    page.locator("#tool-2").wait_for()
    assert page.locator("#tool-1 > details").get_attribute("open") is not None
    open_run.take(answer)
    open_run.end()
    page.clock.fast_forward(2_500)
    page.get_by_text("It was the import service.").first.wait_for()
    page.locator("live-run").wait_for(state="detached")
    expect(page.locator(".why .pill")).to_have_text("Success")
    count = len(watched.requests)
    page.clock.fast_forward(60_000)
    page.reload()
    assert [url for url in watched.requests[count:] if "/api/" in url] == []


def test_who_reads_stays_where_he_was_when_the_page_is_drawn_anew(watch, live, open_run):  # CASES 48
    page = watch(at=live).open(PATH)
    opened = [page.locator(f"{part} > summary").first for part in (".seal details", "#tool-1 > details")]
    for summary in opened:
        summary.click()
    opened[1].focus()
    open_run.take(use_tool)
    page.locator("#tool-2").wait_for()
    expect(opened[1]).to_be_focused()
    assert [summary.evaluate("it => it.parentElement.open") for summary in opened] == [True, True]
    opened[0].click()
    open_run.take(use_tool)
    page.locator("#tool-3").wait_for()
    expect(opened[0]).to_be_focused()
    assert [summary.evaluate("it => it.parentElement.open") for summary in opened] == [False, True]
    page.goto(f"{live}{PATH}&view=events")
    words = page.locator("main input[name=q]")
    words.fill("restarts")
    words.evaluate("it => it.setSelectionRange(2, 4)")
    open_run.take(use_tool)
    page.locator("tr[id^=e]").nth(12).wait_for()
    expect(words).to_be_focused()
    assert words.evaluate("it => [it.value, it.selectionStart, it.selectionEnd]") == ["restarts", 2, 4]


def test_a_lost_connection_is_said_and_made_good_without_a_gap_or_a_duplicate(watch):
    run = running_run()
    with served(FakeReader([run])) as origin:
        watched = watch(at=origin, is_new=True)
        page = watched.page
        page.clock.install()
        with page.expect_response("**/api/**"):
            watched.open("/trace?sessionId=s-43&runId=run-live&view=events")
        page.route("**/api/**", lambda route: route.abort())
        page.clock.fast_forward(16_000)
        page.get_by_text("The connection is lost; trying again.").wait_for()
        run.tool(1_000, 1_200, "query_logs", {"pattern": "OOM"}, scope="executor.1", ordinal=2, output="new evidence")
        page.unroute("**/api/**")
        page.clock.fast_forward(10_000)
        page.locator(f"#e{len(run.events)}").wait_for()
        numbers = page.locator("table.events tbody td.seq").all_inner_texts()
        assert numbers == [str(event.seq) for event in run.events]
        assert [problem for problem in watched.problems if "ERR_FAILED" not in problem] == []
        watched.problems.clear()
        page.close()
