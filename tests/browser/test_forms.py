"""What people do on the trace page in a real browser: stop a run, judge it, copy a command."""

import asyncio

import pytest
from playwright.sync_api import expect

from harness import Harness
from ledger import Ledger
from tests.faults.processes import start
from tests.viewer.real_runs import LIMITS
from tests.viewer.test_writing import writable

ONE = "/trace?sessionId=s-1&runId=run-1"
ELSEWHERE = "/trace?sessionId=s-9&runId=run-elsewhere"
WAIT_MS = 30_000


async def think(pipe, path):
    """A run in a process of its own, which thinks until it is told to stop."""

    async def until_stopped(run):
        pipe.send("thinking")
        await asyncio.Event().wait()

    async with await Ledger.open(path) as ledger:
        harness = Harness(ledger.journal)
        settings = {"query": "Are we there yet?", "limits": LIMITS, "timeout_s": 300}
        async with harness.run(session_id="s-9", run_id="run-elsewhere", **settings) as run:
            await harness.model(run, "thinking", until_stopped)


@pytest.fixture
def viewer(tmp_path):
    with writable(tmp_path / "runs.db") as viewer:
        yield viewer


@pytest.fixture
def elsewhere(viewer):
    program = start(think, str(viewer.file))
    assert program.pipe.recv() == "thinking"
    yield program
    program.process.kill()
    program.process.join(30)


@pytest.mark.parametrize("scripted", [True, False])
def test_a_run_in_another_process_is_stopped_from_its_page_and_ends_cancelled(watch, viewer, elsewhere, scripted):  # E7
    page = watch(at=str(viewer.http.base_url), java_script_enabled=scripted).open(ELSEWHERE)
    expect(page.get_by_role("button", name="Ask it to stop")).to_be_hidden()
    page.get_by_text("Stop this run").click()
    page.get_by_role("button", name="Ask it to stop").click()
    elsewhere.process.join(30)
    if not scripted:
        page.goto(f"{str(viewer.http.base_url).rstrip('/')}{ELSEWHERE}")
    expect(page.locator(".why .pill")).to_have_text("Cancelled", timeout=WAIT_MS)
    expect(page.locator(".why")).to_contain_text("someone asked for it to stop")
    expect(page.get_by_text("Stop this run")).to_have_count(0)


@pytest.mark.parametrize("scripted", [True, False])
def test_feedback_is_given_on_the_page_and_the_last_word_counts(watch, viewer, scripted):  # R6
    page = watch(at=str(viewer.http.base_url), java_script_enabled=scripted).open(ONE)
    for word, comment in (("Useful", "Yes."), ("Not useful", "<b>No</b>, it was the network.")):
        page.get_by_label(word, exact=True).check()
        page.get_by_label("Comment").fill(comment)
        page.get_by_role("button", name="Record").click()
        expect(page.locator(".judged")).to_contain_text(comment)
    expect(page.get_by_label("Not useful", exact=True)).to_be_checked()
    assert viewer.recorded("s-1", "run-1")["feedback"]["useful"] is False


def test_the_command_that_verifies_the_run_is_copied_as_it_stands(watch, viewer):
    watched = watch(at=str(viewer.http.base_url), permissions=["clipboard-read", "clipboard-write"])
    page = watched.open(ONE)
    page.get_by_text("Verify yourself").click()
    page.locator(".command").first.get_by_role("button").click()
    expect(page.locator(".command").first.get_by_role("button")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == "tachograph verify s-1/run-1 --db LEDGER"
