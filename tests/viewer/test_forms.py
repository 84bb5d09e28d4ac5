"""Judging a run and asking it to stop by forms, which need no JavaScript and lead back to the run (SPEC R6, E7, D3)."""

import pytest

from tests.viewer.example_runs import budget_run, running_run
from tests.viewer.fake_reader import FakeReader
from tests.viewer.guarded import guarded
from tests.viewer.served import client_of
from tests.viewer.test_pages import PAGE, read
from tests.viewer.test_writing import writable

ONE = "sessionId=s-1&runId=run-1"
CONFIRMED = {"confirm": "yes"}
OPEN = "sessionId=s-1&runId=run-open"


@pytest.fixture
def viewer(tmp_path):
    with writable(tmp_path / "runs.db") as viewer:
        yield viewer


def test_a_form_binds_feedback_to_its_run_and_leads_back_to_it(viewer):  # R6
    answer = viewer.http.post(f"/trace/feedback?{ONE}", data={"useful": "no", "comment": " It was\r\nthe network. "})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/trace?{ONE}#feedback")
    feedback = viewer.recorded("s-1", "run-1")["feedback"]
    assert (feedback["useful"], feedback["comment"]) == (False, "It was\nthe network.")
    assert viewer.recorded("s-2", "run-2")["feedback"] is None


def test_the_last_form_that_was_sent_wins_and_the_page_says_what_is_recorded(viewer):  # R6
    assert "Recorded:" not in read(viewer.http, f"/trace?{ONE}").text
    for useful in ("yes", "no"):
        viewer.http.post(f"/trace/feedback?{ONE}", data={"useful": useful, "comment": ""})
    assert "Recorded: not useful" in read(viewer.http, f"/trace?{ONE}").text


def test_a_run_that_is_stopped_by_a_form_ends_cancelled(viewer):  # E7
    answer = viewer.http.post(f"/trace/stop?{OPEN}", data=CONFIRMED)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/trace?{OPEN}#question")
    assert viewer.ended.wait(30)
    text = read(viewer.http, f"/trace?{OPEN}").text
    assert "because someone asked for it to stop. It was asked by someone who is not named." in text
    # Whoever sends the form again only sees that it has ended.
    assert viewer.http.post(f"/trace/stop?{OPEN}", data=CONFIRMED).status_code == 303


@pytest.mark.parametrize(
    ("path", "body", "media_type", "status"),
    [
        (f"/trace/feedback?{ONE}", b"useful=perhaps", "application/x-www-form-urlencoded", 400),
        (f"/trace/feedback?{ONE}", b"comment=x", "application/x-www-form-urlencoded", 400),
        (f"/trace/feedback?{ONE}", b"useful=yes&useful=no", "application/x-www-form-urlencoded", 400),
        (f"/trace/feedback?{ONE}", b"useful=yes&comment=%ff", "application/x-www-form-urlencoded", 400),
        (f"/trace/feedback?{ONE}", b"a=1&" * 30, "application/x-www-form-urlencoded", 400),
        (f"/trace/feedback?{ONE}", b'{"useful": true}', "application/json", 415),
        (f"/trace/feedback?{ONE}", b"useful=yes&comment=" + b"x" * 70_000, "application/x-www-form-urlencoded", 413),
        ("/trace/feedback?sessionId=s-1", b"useful=yes", "application/x-www-form-urlencoded", 400),
        ("/trace/feedback?sessionId=s-1&runId=run-2", b"useful=yes", "application/x-www-form-urlencoded", 404),
        (f"/trace/stop?{OPEN}", b"confirm=no", "application/x-www-form-urlencoded", 400),
        ("/trace/stop?sessionId=s-2&runId=run-open", b"confirm=yes", "application/x-www-form-urlencoded", 404),
        ("/trace/stop?sessionId=s-1", b"confirm=yes", "application/x-www-form-urlencoded", 400),
    ],
)
def test_a_form_that_is_none_of_ours_or_of_a_foreign_run_writes_nothing(viewer, path, body, media_type, status):
    before = viewer.events
    answer = viewer.http.post(path, content=body, headers={"Content-Type": media_type})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert viewer.events == before


@pytest.mark.parametrize("path", [f"/trace/feedback?{ONE}", f"/trace/stop?{OPEN}"])
def test_a_form_on_a_page_of_another_origin_is_refused(viewer, path):
    before = viewer.events
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert viewer.http.post(path, data=CONFIRMED | {"useful": "yes"}, headers=headers).status_code == 403
    assert viewer.events == before


def test_a_server_that_only_reads_shows_no_form_and_takes_none():
    with client_of(FakeReader([budget_run(), running_run()])) as client:
        assert "/trace/feedback" not in client.get(PAGE).text
        assert "Stop this run" not in client.get("/trace?sessionId=s-43&runId=run-live").text
        answer = client.post("/trace/stop?sessionId=s-43&runId=run-live", data=CONFIRMED)
        assert (answer.status_code, "only reads its ledger" in answer.text) == (403, True)


def test_nothing_that_acts_on_a_run_is_shown_where_it_is_looked_at_as_it_was():
    with client_of(FakeReader([running_run()]), writer=object(), eraser=object()) as client:
        page = "/trace?sessionId=s-43&runId=run-live"
        actions = ("/trace/stop", "/trace/erase", "<live-run")
        now, past = client.get(page).text, client.get(f"{page}&at=2").text
        assert [action in now for action in actions] == [True] * 3
        assert [action in past for action in (*actions, "/trace/feedback")] == [False] * 4


def test_a_run_that_was_asked_to_stop_says_by_whom_and_is_not_asked_again():  # D3
    run = running_run()
    with client_of(FakeReader([run]), writer=object()) as client:
        page = "/trace?sessionId=s-43&runId=run-live"
        assert "Stop this run" in client.get(page).text
        run.ask_to_stop(actor="on-call")
        text = read(client, page).text
    assert "It was asked to stop by on-call ; its process has not said yet that it does." in text
    assert "waiting for its process." in text
    assert "Stop this run" not in text


def test_only_forms_that_somebody_may_send_are_shown_and_what_he_sends_bears_his_name(tmp_path):  # R6
    page = "/trace?sessionId=s-1&runId=run-1"
    with guarded(tmp_path / "runs.db") as viewer:
        reads, judges = viewer.holder("read"), viewer.holder("read", "annotate", owner="ops-7")
        assert "Was this useful?" not in reads.get(page).text
        assert reads.post(f"/trace/feedback?{ONE}", data={"useful": "yes"}).status_code == 403
        assert "Was this useful?" in judges.get(page).text
        assert judges.post(f"/trace/feedback?{ONE}", data={"useful": "yes"}).status_code == 303
        assert "Feedback by ops-7" in reads.get(page).text
