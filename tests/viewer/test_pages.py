"""The pages: complete without JavaScript, honest about what they do not show."""

import re
from html.parser import HTMLParser

import pytest

from harness import events as e
from tests.viewer.example_runs import LIMITS, budget_run
from tests.viewer.fake_reader import FakeReader
from tests.viewer.fake_run import FakeRun, content
from tests.viewer.served import client_of

PAGE = "/trace?sessionId=s-42&runId=run-019ad3c1"


class Text(HTMLParser):
    """The words of a page, and its ids and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: list[str] = []
        self.hrefs: list[str] = []

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if "id" in facts:
            self.ids.append(facts["id"])
        if tag == "a":
            self.hrefs.append(facts["href"])

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(client, path) -> Text:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = Text()
    page.feed(answer.text)
    return page


def test_the_page_begins_with_the_verdict(client):
    text = read(client, PAGE).text
    assert "Why did the nightly import stop on db-3?" in text
    assert "Stopped after 4.17 s: a sixth query_logs call would have passed its limit of 5." in text
    assert text.index("Stopped after") < text.index("Model calls") < text.index("Timeline") < text.index("Events")
    for fact in ("triage", "1.4", "offline-rules-1", "for on-call", "staging", "30 Nov 2026 01:14:07 UTC"):
        assert fact in text


def test_a_run_that_went_astray_says_where_and_how(client):
    page = read(client, "/trace?sessionId=s-45&runId=run-astray")
    for said in (
        "Two hidden requests were seen beside the recorded attempts.",
        "prices 2026-11",
        "0.01481 / 0.05 USD",
        "logs 3 / 2 only observed",
        "4 of 4 model calls · 3 of 6 tool calls · 0.00548 of 0.02 cost · at most 4.00 s",
        "nested scope, exhausted. exhausted · model calls: 1 of 1 used",
        "refused by its scope · model calls: 1 of 1 used",
        "denied by tool_rules · effect not allowed",
        "2 hidden requests",
        "0.00933 USD",
        "first output of 61 chunks after 640 ms",
        "at most 500 ms an attempt",
        "worth a look",
    ):
        assert said in page.text, said


def test_a_cost_without_a_limit_is_told_among_the_facts():
    run = FakeRun("s", "r", "q", dict(LIMITS)).start(currency="USD", price_table="2026-11", cost_unknown_count=1)
    run.model(10, 20, "m", cost=3_500)
    with client_of(FakeReader([run])) as client:
        assert "at least 0.0035 USD" in read(client, "/trace?sessionId=s&runId=r").text


def test_the_refusal_of_a_scope_is_not_what_ended_the_run():  # D5
    run = FakeRun("s", "r", "q", dict(LIMITS)).start()
    run.open_scope(1, "s1", "first", model_calls=1)
    run.refuse(3, "m", resource="model_calls", used=8, limit=8, kind="model")
    run.exhaust_scope(4, "s1", resource="model_calls", used=1, limit=1, name="m", path="scope/first/1/1")
    run.end(5, "BUDGET_EXHAUSTED", cancel="BUDGET_EXHAUSTED")
    with client_of(FakeReader([run])) as client:
        assert "Event 3" in read(client, "/trace?sessionId=s&runId=r").text


def test_the_page_shows_every_part_of_the_run(client):
    page = read(client, f"{PAGE}&view=events")
    for fact in ("5 / 5", "evidence_guard", "kern.log: permission denied", "reservation.rejected", "repair"):
        assert fact in page.text
    assert [f"e{seq}" for seq in range(1, 45)] == [name for name in page.ids if re.fullmatch(r"e\d+", name)]
    assert "Showing 1–44 of 44" in page.text


def test_ids_on_a_page_are_unique(client):
    for path in (PAGE, f"{PAGE}&event=12", "/trace?sessionId=s-42&runId=run-019ad3d7", "/"):
        ids = read(client, path).ids
        assert len(ids) == len(set(ids))


def test_the_page_never_claims_a_proof_that_was_not_made(client):
    text = read(client, PAGE).text
    assert "Links not verified here" in text
    assert "intact" not in text.lower()


def test_every_address_on_every_page_stays_on_the_site_and_answers(client):
    seen, waiting = set(), ["/", PAGE]
    while waiting:
        path = waiting.pop(0).partition("#")[0]
        if path in seen or not path or len(seen) >= 60:
            continue
        seen.add(path)
        assert path.startswith("/")
        answer = client.get(path)
        if answer.status_code == 303:  # looking for an event leads to the page that shows it
            waiting.append(answer.headers["location"])
            continue
        assert answer.status_code == 200, path
        if "html" in answer.headers["content-type"]:
            page = Text()
            page.feed(answer.text)
            waiting += page.hrefs
    assert "/sessions/s-42" in seen


def test_the_event_that_decided_is_shown_in_full_unless_another_is_asked_for(client):
    assert "Event 42" in read(client, PAGE).text
    assert "Event 3 " in read(client, f"{PAGE}&event=3").text


def long_run(events: int) -> FakeRun:
    run = FakeRun("s", "long", "How long?", dict(LIMITS)).start()
    for number in range(events - 1):
        run.add(
            e.GraphTransitioned, number, boundary=f"transition/n/{number}/1", to_node=f"n{number % 7}", cause="NEXT"
        )
    return run


def test_a_long_list_of_events_is_paged_and_says_which_part_it_shows():
    with client_of(FakeReader([long_run(450)])) as client:
        first = read(client, "/trace?sessionId=s&runId=long&view=events")
        assert "Showing 1–200 of 450" in first.text
        assert "e200" in first.ids
        assert "e201" not in first.ids
        following = next(href for href in first.hrefs if "after=200" in href)
        assert "Showing 201–400 of 450" in read(client, following).text
        last = read(client, "/trace?sessionId=s&runId=long&after=400")
        assert "Showing 401–450 of 450" in last.text
        assert "Showing 0 of 450" in read(client, "/trace?sessionId=s&runId=long&after=9000").text


def test_a_deep_linked_event_outside_the_page_is_shown_and_can_be_found_in_the_list():  # CASES 47
    with client_of(FakeReader([long_run(450)])) as client:
        page = read(client, "/trace?sessionId=s&runId=long&event=333")
        assert "Event 333" in page.text
        assert "Event 333 lies outside this page of the list" in page.text
        found = next(href for href in page.hrefs if "after=200" in href and href.endswith("#e333"))
        assert "e333" in read(client, found).ids


def test_a_run_of_many_thousand_events_opens_with_its_last_word_known():
    run = long_run(9_000)
    run.end(10_000, "FAILED", "EXCEPTION", error="out of paper")
    with client_of(FakeReader([run])) as client:
        page = read(client, "/trace?sessionId=s&runId=long&view=events")
        assert "out of paper" in page.text
        assert f"Event {len(run.events):,}" in page.text
        assert f"Showing 1–200 of {len(run.events):,}" in page.text


def test_a_run_of_many_steps_keeps_its_page_small():  # CASES 47
    run = FakeRun("s", "steps", "q", dict(LIMITS)).start()
    for number in range(3_000):
        run.model(
            number * 10, number * 10 + 9, "planner", ordinal=number + 1, scope=f"n.{number % 50}", output="x" * 3_000
        )
    with client_of(FakeReader([run])) as client:
        answer = client.get("/trace?sessionId=s&runId=steps&view=steps")
        assert len(answer.content) < 1_500_000
        page = Text()
        page.feed(answer.text)
        assert "Showing 1–50 of 3,000" in page.text
        assert "Showing 3,000 of 3,000 spans as lanes" in page.text
        assert "step-51" not in page.ids
        second = next(href for href in page.hrefs if "steps=50" in href)
        assert "step-51" in read(client, second).ids


def test_long_content_is_shown_by_window_with_the_whole_size_beside_it(client):
    path = "/trace?sessionId=s-666&runId=run-hostile&content=tool-9-output"
    page = read(client, path)
    assert "Showing bytes 1–8,192 of 5,000,000" in page.text
    following = next(href for href in page.hrefs if "content=tool-9-output" in href and "offset=8192" in href)
    assert "Showing bytes 8,193–16,384 of 5,000,000" in read(client, following).text
    assert len(client.get(path).content) < 1_500_000


def test_content_that_is_gone_says_why():
    run = FakeRun("s", "r", None, dict(LIMITS)).start()
    run.answer = content("forgotten", state="erased")
    with client_of(FakeReader([run])) as client:
        text = read(client, "/trace?sessionId=s&runId=r").text
    assert "Erased: 9 bytes." in text
    assert "The question is not kept" in text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/trace", 400),
        ("/trace?sessionId=s-42", 400),
        ("/trace?sessionId=s-42&runId=", 400),
        ("/trace?sessionId=s-42&runId=<script>", 400),
        (f"{PAGE}&after=-1", 400),
        (f"{PAGE}&event=x", 400),
        (f"{PAGE}&content=../../etc", 400),
        ("/sessions/%3Cb%3E", 400),
        ("/sessions/s-none", 404),
        ("/nowhere", 404),
    ],
)
def test_what_cannot_be_shown_is_told_on_a_page(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1" in answer.text
    assert "See recent runs" in answer.text
    assert "<script>" not in answer.text


def test_a_foreign_run_has_the_same_page_as_an_unknown_one(client):  # CASES 43
    foreign = client.get("/trace?sessionId=s-43&runId=run-019ad3c1")
    unknown = client.get("/trace?sessionId=s-43&runId=run-unknown")
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.content == unknown.content


def test_an_event_that_does_not_exist_changes_nothing_else(client):
    assert "Showing 1–44 of 44" in read(client, f"{PAGE}&event=999").text


def test_the_start_page_leads_to_runs_and_sessions(client):
    page = read(client, "/")
    assert "/trace?sessionId=s-42&runId=run-019ad3c1" in page.hrefs
    assert "/sessions/s-42" in page.hrefs
    assert "Budget exhausted" in page.text


def test_an_empty_ledger_says_so():
    with client_of(FakeReader()) as client:
        assert "No run is recorded yet." in read(client, "/").text


def test_lists_of_runs_lead_on_to_older_ones():
    runs = [FakeRun("s", f"r{index}", "q", {}, started_us=index).start() for index in range(60)]
    with client_of(FakeReader(runs)) as client:
        for start in ("/runs", "/sessions/s"):
            first = read(client, start)
            older = next(href for href in first.hrefs if "cursor=" in href)
            assert "10 runs shown" in read(client, older).text


def test_the_page_and_the_api_read_a_run_through_the_same_function():  # R9
    asked = []

    class Watched(FakeReader):
        async def trace(self, session_id, run_id):
            asked.append((session_id, run_id))
            return await super().trace(session_id, run_id)

    with client_of(Watched([budget_run()])) as client:
        client.get(PAGE)
        client.get("/api/diagnosis/s-42/trace?runId=run-019ad3c1")
    assert asked == [("s-42", "run-019ad3c1")] * 2


def test_only_a_running_run_is_followed(client):
    assert "<live-run" in client.get("/trace?sessionId=s-43&runId=run-live").text
    assert "<live-run" not in client.get(PAGE).text


def test_what_came_after_the_trace_was_read_is_left_to_the_next_reading():
    run = FakeRun("s", "r", "q", dict(LIMITS)).start()

    class Growing(FakeReader):
        async def trace(self, session_id, run_id):
            trace = await super().trace(session_id, run_id)
            run.transition(5, None, "late")
            return trace

    with client_of(Growing([run])) as client:
        assert "Showing 1–1 of 1" in read(client, "/trace?sessionId=s&runId=r&view=events").text


def test_a_run_leads_to_what_it_is_part_of_what_it_continues_and_what_came_of_it():  # E11
    whole = FakeRun("s", "whole", "q", dict(LIMITS)).start()
    part = FakeRun("s", "part", "q", dict(LIMITS)).start(parent_run_id="whole", continues_run_id="elsewhere")
    later = FakeRun("s", "later", "q", dict(LIMITS)).start(continues_run_id="part")
    with client_of(FakeReader([whole, part, later])) as client:
        shown = read(client, "/trace?sessionId=s&runId=part")
        assert "part of whole" in shown.text
        assert "continues elsewhere (not in this session)" in shown.text
        assert "continued by later (running)" in shown.text
        assert {"/trace?sessionId=s&runId=whole", "/trace?sessionId=s&runId=later"} <= set(shown.hrefs)
        assert "its parts: part (running)" in read(client, "/trace?sessionId=s&runId=whole").text
