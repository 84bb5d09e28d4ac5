"""The run as it was held: in order, each attempt of a step within it, with what was refused, a page at a time."""

import re
from dataclasses import replace

import pytest

from tests.viewer.example_runs import (
    LIMITS,
    SCRIPT,
    astray_run,
    budget_run,
    degraded_run,
    hostile_run,
    success_run,
)
from tests.viewer.fake_reader import FakeReader
from tests.viewer.fake_run import FakeRun, content
from tests.viewer.served import client_of
from tests.viewer.test_pages import PAGE, long_run, read
from viewer.present.links import TraceLinks
from viewer.present.sentence import words
from viewer.present.trace.transcript import ENTRIES_PER_PAGE, transcript


def told(run, **state):
    return transcript(run.trace(), run.events, TraceLinks(run.session_id, run.run_id, **state))


def lines(run):
    return [(entry.kind, entry.label, entry.words or entry.said) for entry in told(run).entries]


def test_a_run_is_told_in_the_order_in_which_it_was_held():
    assert lines(success_run()) == [
        ("model", "router", "CHAT_GRAPH"),
        ("node", "planner", "enters at planner"),
        ("model", "planner", "1. disk on db-4"),
        ("node", "executor", "planner → executor"),
        ("tool", "query_metrics", '{"mount":"/var","used_percent":61,"free_bytes":41200000000}'),
        ("tool", "open_ticket", '{"ticket":"INC-4712"}'),
        ("node", "evidence_guard", "executor → evidence_guard"),
        ("guard", "evidence_guard", "evidence repair, passed after 12 ms"),
        ("node", "composer", "evidence_guard → composer"),
        ("model", "composer", "No."),
        ("node", "composer", "in composer · composed"),
    ]


def test_attempts_of_one_step_are_one_entry_that_tells_each():
    first = told(budget_run()).entries[0]
    assert first.label == "router"
    assert first.attempts == (
        "attempt 1 of 2: connection failed after 90 ms; the next one was due in 60 ms",
        "attempt 2 of 2: answered after 130 ms",
    )


def test_a_call_that_its_limit_refused_is_said_not_to_have_been_executed():
    assert ("refused", "query_logs", "not executed: the limit of 5 was reached") in lines(budget_run())
    found = lines(astray_run())
    assert ("refused", "rollback", "not executed: denied by tool_rules (effect not allowed)") in found
    assert ("refused", "critic", "not executed: the limit of 1 of model calls of its scope was reached") in found


def test_a_batch_that_was_refused_is_told_with_all_its_calls():  # CASES 1
    run = FakeRun("s", "r", "q", dict(LIMITS)).start()
    run.refuse(5, "look", resource="tool_calls", used=0, limit=6, amount=8)
    assert "8 calls not executed: the limit of 6 of tool calls was reached" in lines(run)[0][2]


def test_a_guard_that_found_nothing_says_so():
    assert ("guard", "evidence_guard", "evidence repair, no evidence after 20 ms") in lines(degraded_run())


def test_what_failed_says_why_and_what_it_was_given():
    failed = next(entry for entry in told(budget_run()).entries if entry.row and entry.row.status == "FAILED")
    assert (failed.arguments, failed.said) == ("kernel", "kern.log: permission denied")


def many_steps(count: int) -> FakeRun:
    run = FakeRun("s", "many", "q", dict(LIMITS)).start()
    for number in range(count):
        run.model(number * 10, number * 10 + 9, "planner", ordinal=number + 1, output=f"thought {number}")
    return run


def test_a_long_transcript_is_shown_a_page_at_a_time_with_question_and_answer_at_its_ends():
    run = many_steps(ENTRIES_PER_PAGE + 20)
    run.end(9_000, "SUCCESS", answer="Done.")
    with client_of(FakeReader([run]), writer=object()) as client:
        first = read(client, "/trace?sessionId=s&runId=many")
        assert "Showing 1–50 of 70" in first.text
        assert "Question" in first.text
        assert "Was this useful?" not in first.text
        second = read(client, next(href for href in first.hrefs if "entries=50" in href))
        assert "Showing 51–70 of 70" in second.text
        assert "step-51" in second.ids
        assert "Was this useful?" in second.text
        # An entry that the address names is on the page, whichever that is.
        named = read(client, "/trace?sessionId=s&runId=many&view=transcript&content=step-60-output")
        assert "step-60-output" in named.ids


def test_a_page_behind_the_end_shows_nothing_and_leads_back():
    with client_of(FakeReader([many_steps(3)])) as client:
        page = read(client, "/trace?sessionId=s&runId=many&view=transcript&entries=500")
        assert "Showing 0 of 3" in page.text
        assert "There is no entry after number 500: the transcript has 3." in page.text
        assert "There is no entry" not in read(client, "/trace?sessionId=s&runId=many&entries=2").text


def test_a_run_with_too_many_events_has_its_work_in_order_and_says_where_the_rest_is():
    run = long_run(2_500)
    run.tool(3_000, 3_010, "late", {"a": 1}, output="x")
    run.model(3_020, 3_030, "planner", output="y")
    with client_of(FakeReader([run])) as client:
        page = read(client, "/trace?sessionId=s&runId=long")
    assert page.text.index("late") < page.text.index("planner")
    assert "Refusals, guards and waits of a run of this length are in the list of its events." in page.text


def test_a_long_run_is_told_a_page_at_a_time_without_reading_it_whole():  # CASES 40, 47
    run = long_run(2_100)
    for number in range(70):
        run.model(3_000 + number * 10, 3_004 + number * 10, "planner", ordinal=number + 1, output="x")
        if number % 2:
            run.tool(3_005 + number * 10, 3_009 + number * 10, "look", {}, ordinal=number + 1, output="y")
    with client_of(FakeReader([run])) as client:
        page, seen = read(client, "/trace?sessionId=s&runId=long"), []
        while True:
            seen += [name for name in page.ids if re.fullmatch(r"(step|tool)-\d+", name)]
            following = [href for href in page.hrefs if href.endswith("#transcript")]
            if len(seen) >= 105:
                break
            page = read(client, following[-1])
    assert len(seen) == len(set(seen)) == 105
    assert seen[:4] == ["step-1", "step-2", "tool-1", "step-3"]


def test_content_that_is_shown_by_window_stays_in_the_transcript(client):
    page = read(client, "/trace?sessionId=s-666&runId=run-hostile&view=transcript&content=tool-9-output")
    following = next(href for href in page.hrefs if "offset=8192" in href)
    assert "view=transcript" in following


def test_hostile_words_of_a_transcript_are_text(client):  # CASES 46
    text = client.get("/trace?sessionId=s-666&runId=run-hostile&view=transcript").text
    assert SCRIPT not in text
    assert "<img" not in text
    assert not set("\x1b\u202e\u2066\u200b") & set(text)
    assert len(text) < 1_000_000
    assert all("\x1b" not in words(entry.said) for entry in told(hostile_run()).entries)


def test_what_was_erased_says_so_in_the_transcript():
    run = FakeRun("s", "r", None, dict(LIMITS)).start()
    run.tool(1, 2, "look", {"a": 1})
    run.tools[0] = replace(run.tools[0], output=content("gone", state="erased"))
    with client_of(FakeReader([run])) as client:
        text = read(client, "/trace?sessionId=s&runId=r").text
    assert "The question is not kept" in text
    assert words(told(run).entries[0].said) == "Erased"


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}&view=transcript&at=20"])
def test_the_transcript_ends_where_the_run_is_looked_at(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert bool(re.search("the limit of 5 was reached", answer.text)) is ("at=20" not in path)
