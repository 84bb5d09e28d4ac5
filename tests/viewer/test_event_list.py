"""The list of a run's events: links reckoned again, what came after the end, and looking for some in bounded steps."""

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from ledger import Ledger, LedgerReader
from tests.ledger.scripted import ScriptedRun
from tests.ledger.test_past import eventful
from tests.viewer.example_runs import LIMITS
from tests.viewer.fake_reader import FakeReader
from tests.viewer.fake_run import FakeRun
from tests.viewer.served import client_of
from tests.viewer.test_pages import long_run, read
from viewer.reading.searching import SEARCH_EVENTS_MAX, EventFilter, search

ANSWERED = "/trace?sessionId=s-1&runId=r-answered"


@pytest.fixture(scope="module")
def source(recorded_runs):
    return recorded_runs


def seqs(page):
    return [int(name[1:]) for name in page.ids if name[0] == "e" and name[1:].isdigit()]


def holding_count(page):
    """How many rows say that their link holds; the seal above them says that the log holds the run."""
    return page.text.count(" holds ") - page.text.count(" log holds ")


def test_every_link_of_a_page_is_reckoned_again_from_the_stored_bytes(client):
    page = read(client, f"{ANSWERED}&view=events")
    assert holding_count(page) == 32
    assert "does not hold" not in page.text
    assert "That says nothing of events that are not on this page." in page.text
    assert holding_count(read(client, f"{ANSWERED}&view=events&after=20")) == 12


def test_an_event_that_was_changed_and_the_one_behind_a_changed_link_do_not_hold(recorded_runs, tmp_path):
    path = Path(shutil.copy(recorded_runs, tmp_path))
    with sqlite3.connect(path) as plain:
        for (name,) in plain.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            plain.execute(f"DROP TRIGGER {name}")
        where = "WHERE stream_id = 'r:r-answered' AND seq ="
        plain.execute(f"UPDATE event SET body = replace(body, 'CHAT_GRAPH', 'CHAT_OTHER') {where} 1")
        plain.execute(f"UPDATE event SET link = zeroblob(32) {where} 9")
    with client_of(path) as client:
        html = client.get(f"{ANSWERED}&view=events").text
    rows = {row.partition('"')[0]: row for row in html.split('<tr id="e')[1:]}
    assert {int(seq) for seq, row in rows.items() if "does not hold" in row} == {1, 9, 10}
    assert "3 of these events are not what was hashed and linked when they were recorded." in html


def test_what_came_after_the_end_stands_under_a_heading_of_its_own(client):
    text = read(client, f"{ANSWERED}&view=events").text
    assert "After the end: 3 annotations" in text
    assert text.index("run.terminated") < text.index("After the end") < text.index("feedback.recorded")
    assert "After the end" not in read(client, f"{ANSWERED}&view=events&at=29").text


def test_late_results_are_told_among_what_came_after_the_end(tmp_path):
    async def record():
        async with await Ledger.open(tmp_path / "runs.db") as ledger:
            for submission in eventful(ScriptedRun("r-late", "s-1")):
                ledger.journal.submit(submission).result()

    asyncio.run(record())
    with client_of(tmp_path / "runs.db") as client:
        text = read(client, "/trace?sessionId=s-1&runId=r-late&view=events").text
    assert "After the end: 1 late result" in text
    assert text.index("After the end") < text.index("attempt.finished_late")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("family=graph", [11, 18, 26]),
        ("failures=1", [4, 17]),
        ("q=QUERY_METRICS", [12, 13, 14]),
        ("q=used_percent", [14]),  # in the content that the event names, not in the event
        ("q=kern.log", [17]),
        ("family=answer&q=disk is full", [28]),
        ("family=graph&at=20", [11, 18]),
        ("q=no such words", []),
    ],
)
def test_events_are_found_by_family_by_failure_and_by_their_words_and_contents(client, asked, found):
    page = read(client, f"{ANSWERED}&{asked}")
    assert seqs(page) == found
    assert f"{len(found)} event" in page.text
    assert "searched all" in page.text


def test_a_family_that_there_is_not_is_refused(client):
    assert client.get(f"{ANSWERED}&family=weather").status_code == 400
    assert client.get(f"{ANSWERED}&q={'x' * 201}").status_code == 400


def test_a_long_run_is_searched_in_steps_and_the_page_says_how_far_it_came(monkeypatch):
    monkeypatch.setattr("viewer.reading.searching.SEARCH_EVENTS_MAX", 1_000)
    with client_of(FakeReader([long_run(2_500)])) as client:
        page = read(client, "/trace?sessionId=s&runId=long&q=nowhere")
        assert "0 events found, searched 1–1,000 of 2,500" in page.text
        following = next(href for href in page.hrefs if "after=1000" in href)
        assert "searched 1,001–2,000 of 2,500" in read(client, following).text
        page = read(client, "/trace?sessionId=s&runId=long&q=n6")
        assert "200 events found, searched 1–1,4" not in page.text


async def test_searching_reads_only_so_much_content_for_one_page(recorded_runs, monkeypatch):
    async with await LedgerReader.open(recorded_runs) as reader:
        keys = ("s-3", "r-hostile")
        head = (await reader.overview(*keys)).run.event_count
        assert head < SEARCH_EVENTS_MAX
        whole = await search(reader, keys, 0, head, EventFilter(text="no such words"))
        assert whole.looked_at_seq == head
        monkeypatch.setattr("viewer.reading.searching.SEARCH_CONTENT_BYTES_MAX", 1)
        monkeypatch.setattr("viewer.reading.searching._EVENTS_PER_READ", 10)
        part = await search(reader, keys, 0, head, EventFilter(text="no such words"))
        assert part.looked_at_seq == 10


def test_what_an_event_names_by_digest_is_shown_beside_it(client):
    page = read(client, f"{ANSWERED}&event=14")
    assert "Contents of event 14" in page.text
    assert "used_percent" in page.text
    assert "/api/diagnosis/s-1/runs/r-answered/events/14" in page.hrefs
    window = read(client, "/trace?sessionId=s-3&runId=r-hostile&event=1&content=event-query")
    assert "The run has no content" not in window.text


def test_a_run_without_events_of_a_kind_says_so():
    run = FakeRun("s", "r", "q", dict(LIMITS)).start()
    with client_of(FakeReader([run])) as client:
        assert "No event here is like that." in read(client, "/trace?sessionId=s&runId=r&failures=1").text
