"""A page that shows the run as it was just after one of its events: the same fold, the same moment, nothing later."""

import asyncio
import re

import pytest

from ledger import LedgerReader
from ledger.projections.changes import Changes
from ledger.projections.fold import project_all
from ledger.stored_events import events_of
from tests.viewer.served import client_of
from tests.viewer.test_pages import read
from viewer.present.links import TraceLinks
from viewer.present.trace.page import trace_page
from viewer.reading.replays import MARKS_MAX, WALKS_MAX, Replays
from viewer.reading.run import Asked, read_run

RUNS = [("s-1", "r-answered"), ("s-1", "r-budget"), ("s-2", "r-timed-out"), ("s-4", "r-astray")]


@pytest.fixture(scope="module")
def source(recorded_runs):
    return recorded_runs


def page_of(keys, seq=None, **more):
    at = "" if seq is None else f"&at={seq}"
    return f"/trace?sessionId={keys[0]}&runId={keys[1]}{at}" + "".join(f"&{key}={value}" for key, value in more.items())


@pytest.mark.parametrize("keys", RUNS)
async def test_at_every_event_the_page_says_what_folding_so_many_events_gives(recorded_runs, keys):
    async with await LedgerReader.open(recorded_runs) as reader:
        replays, whole = Replays(reader), await reader.trace(*keys)
        events = await reader.events(*keys, limit=5_000)
        for seq in range(1, len(events) + 1):
            reading = await read_run(reader, replays, Asked(*keys, at_seq=seq))
            changes = Changes()
            run = project_all(None, events_of(event.body for event in events[:seq]), changes)
            assert run is not None
            shown = reading.trace
            assert shown.run.summary.status == run.state.outcome
            assert shown.run.usage == run.state.usage
            assert shown.run.head_link == events[seq - 1].link
            assert [step.status for step in shown.agent_steps] == [row.status for row in changes.step_rows]
            assert [tool.status for tool in shown.tool_invocations] == [
                row.status for row in sorted(changes.tool_rows, key=lambda row: row.invocation_no)
            ]
            page = trace_page(reading, TraceLinks(*keys, at=seq, view="events"))
            assert [row.event.seq for row in page.events.rows] == list(range(1, seq + 1))
            assert page.events.checked
            assert page.events.broken_count == 0
            assert page.inspector is not None
            assert page.inspector.event.seq == seq
            assert page.transition_count == run.orchestration.transition_count
        assert shown == whole
        assert list(reading.works) == list(reading.whole_works)


@pytest.mark.parametrize("keys", RUNS)
def test_at_its_last_event_a_run_is_what_it_is_now(client, recorded_runs, keys):
    async def pages():
        async with await LedgerReader.open(recorded_runs) as reader:
            last = (await reader.trace(*keys)).run.event_count
            links = TraceLinks(*keys, view="events", event=last)
            now = trace_page(await read_run(reader, Replays(reader), Asked(*keys, event_seq=last)), links)
            then = await read_run(reader, Replays(reader), Asked(*keys, event_seq=last, at_seq=last))
            return now, trace_page(then, links)

    now, then = asyncio.run(pages())
    for part in ("title", "elapsed_us", "verdict", "models", "cost", "gauges", "graph", "answer", "steps"):
        assert getattr(now, part) == getattr(then, part), part
    assert now.over_time.drawing == then.over_time.drawing
    for part in ("tools", "events", "judgements", "transitions"):
        assert getattr(now, part) == getattr(then, part), part


def test_what_an_event_changed_stands_beside_it_as_before_and_after(client):
    html = client.get(page_of(RUNS[0], 14)).text
    assert "What it changed" in html
    assert re.search(r"<del><bdi>[^<]+</bdi></del> <span aria-hidden=\"true\">→</span> <ins>", html)


def test_what_came_later_is_not_on_the_page_of_an_earlier_event(client):
    text = read(client, page_of(RUNS[0], 5)).text
    assert "The run as it was just after event 5 of" in text
    assert "The disk is full." not in text
    assert "Show it as it is now" in text
    assert "running" in text.lower()
    assert "<live-run" not in client.get(page_of(RUNS[0], 5)).text


@pytest.mark.parametrize(("seq", "said"), [(0, "there is no event 0"), (999, "there is no event 999")])
def test_an_event_that_is_not_there_shows_the_run_as_it_is_and_says_so(client, seq, said):
    text = read(client, page_of(RUNS[0], seq)).text
    assert f"The run is shown as it is now, and not at event {seq}: {said}" in text
    assert "Answered after" in text


def test_the_bar_leads_to_the_neighbouring_events_and_works_as_a_form(client):
    html = client.get(page_of(RUNS[0], 5)).text
    for seq in (1, 4, 6):
        assert f"{page_of(RUNS[0], seq).replace('&', '&amp;')}" in html
    assert 'name="at"' in html
    assert 'action="/trace"' in html


@pytest.mark.parametrize(
    ("what", "start", "event_type"),
    [("failure", 1, "attempt.failed"), ("failure-before", 40, "attempt.failed"), ("kind", 3, None)],
)
def test_looking_for_an_event_leads_to_the_page_that_shows_it(client, what, start, event_type):
    answer = client.get(page_of(RUNS[0], start, seek=what))
    assert answer.status_code == 303
    found = int(re.search(r"&at=(\d+)", answer.headers["location"]).group(1))
    assert (found < start) == what.endswith("before")
    assert found != start
    if event_type:
        assert event_type in read(client, answer.headers["location"]).text


def test_what_is_not_found_is_told_in_words(client):
    assert "There is no failure before event 2." in read(client, page_of(RUNS[0], 2, seek="failure-before")).text
    assert client.get(page_of(RUNS[0], 2, seek="luck")).status_code == 400


async def test_only_so_many_walks_and_marks_are_kept(recorded_runs, monkeypatch):
    async with await LedgerReader.open(recorded_runs) as reader:
        replays = Replays(reader)
        for keys in [*RUNS, ("s-2", "r-failed"), ("s-2", "r-cancelled"), ("s-3", "r-hostile")]:
            assert (await replays.at(*keys, 2)).moment.seq == 2
        assert len(replays) <= WALKS_MAX
        assert replays.mark_count <= MARKS_MAX
        monkeypatch.setattr("viewer.reading.replays.WALKS_MAX", 1)
        assert (await replays.at(*RUNS[0], 3)).before.seq == 2
        assert len(replays) == 1


def test_what_makes_no_sense_is_shown_as_it_is_and_says_where(reader_of_broken):
    with client_of(reader_of_broken) as client:
        text = read(client, "/trace?sessionId=s&runId=r&at=1").text
    assert "The run is shown as it is now, and not at event 1" in text


@pytest.fixture
def reader_of_broken():
    from tests.viewer.example_runs import LIMITS
    from tests.viewer.fake_reader import FakeReader
    from tests.viewer.fake_run import FakeRun

    run = FakeRun("s", "r", "q", dict(LIMITS))
    run.transition(5, None, "before it began")
    return FakeReader([run])
