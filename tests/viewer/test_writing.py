"""Feedback and cancelling over real sockets and a real ledger: bound to exactly one run (SPEC R6, E7, D15)."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn

from harness import Harness, RunContext
from ledger import Ledger
from tests.viewer.fake_reader import FakeReader
from tests.viewer.real_runs import LIMITS
from tests.viewer.served import client_of
from viewer.app import create_app
from viewer.serving.server import config_of
from viewer.serving.sockets import on_port

CASES = "SELECT diagnosis_id, query_digest, answer_digest, withdrawn FROM case_library"
ANSWERED = "SELECT query_digest, answer_digest FROM diagnosis_run WHERE run_id = 'run-1'"
CANCEL = "/api/diagnosis/s-1/runs/run-open/cancel"


class Writable:
    """A writable viewer, and two sessions with an ended run each; the first has a running one, too."""

    def __init__(self, http: httpx2.Client, file: Path) -> None:
        self.http = http
        self.file = file
        self.ended = threading.Event()

    def feedback(self, **body):
        return self.http.post("/api/feedback", json=body)

    def recorded(self, session_id, run_id):
        path = f"/api/diagnosis/{session_id}/trace"
        return self.http.get(path, params={"runId": run_id}).json()["data"]

    def rows(self, sql):
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as db:
            return db.execute(sql).fetchall()

    @property
    def events(self):
        return self.rows("SELECT count(*) FROM event")


@pytest.fixture
def viewer(tmp_path) -> Iterator[Writable]:
    with writable(tmp_path / "runs.db") as viewer:
        yield viewer


@contextmanager
def writable(file: Path) -> Iterator[Writable]:
    started, viewers = threading.Event(), []

    async def serve() -> None:
        async with await Ledger.open(file) as ledger:
            with on_port("127.0.0.1", 0) as listener:
                url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                server = uvicorn.Server(config_of(create_app(ledger.reader, writer=ledger)))
                with httpx2.Client(base_url=url, timeout=30) as http:
                    viewers.append((Writable(http, file), server))
                    working = asyncio.create_task(work(ledger, viewers[0][0].ended, started))
                    await server.serve(sockets=[listener])
                    working.cancel()
                    await asyncio.wait({working})

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(20)
    viewer, server = viewers[0]
    yield viewer
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


async def work(ledger: Ledger, ended: threading.Event, started: threading.Event) -> None:
    """Two answered runs, then one that works until it is told to stop."""
    harness = Harness(ledger.journal)
    for number in (1, 2):
        session_id, run_id, query = f"s-{number}", f"run-{number}", f"question {number}"
        async with harness.run(session_id=session_id, run_id=run_id, query=query, limits=LIMITS, timeout_s=60) as run:
            harness.answer(run, f"answer {number}")

    async def think(run: RunContext) -> None:
        started.set()
        await asyncio.Event().wait()

    try:
        async with harness.run(session_id="s-1", run_id="run-open", query="?", limits=LIMITS, timeout_s=60) as run:
            await harness.model(run, "thinking", think)
    finally:
        ended.set()


def test_feedback_is_bound_to_the_run_it_names_and_answers_with_its_id(viewer):  # R6
    answer = viewer.feedback(sessionId="s-1", runId="run-1", useful=False, comment="No, it was the network.")
    assert (answer.status_code, answer.json()["code"]) == (200, "ok")
    assert answer.json()["data"] == {"sessionId": "s-1", "runId": "run-1", "useful": False, "caseId": None}
    feedback = viewer.recorded("s-1", "run-1")["feedback"]
    assert (feedback["useful"], feedback["comment"]) == (False, "No, it was the network.")
    assert viewer.recorded("s-2", "run-2")["feedback"] is None
    assert viewer.recorded("s-1", "run-open")["feedback"] is None


@pytest.mark.parametrize("missing", ["runId", "sessionId", "useful"])
def test_feedback_that_leaves_out_what_it_needs_is_rejected_and_bound_to_no_run(viewer, missing):  # R6
    body = {"sessionId": "s-1", "runId": "run-1", "useful": True}
    before = viewer.events
    answer = viewer.feedback(**{name: value for name, value in body.items() if name != missing})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert missing in answer.json()["message"]
    assert viewer.events == before


def test_feedback_on_a_run_of_another_session_fails_and_changes_neither(viewer):  # R6, CASES 43
    before = viewer.events
    foreign = viewer.feedback(sessionId="s-1", runId="run-2", useful=True)
    unknown = viewer.feedback(sessionId="s-1", runId="run-9", useful=True)
    assert (foreign.status_code, foreign.json()["code"]) == (404, "run_not_found")
    assert foreign.content == unknown.content
    assert viewer.events == before
    assert viewer.rows(CASES) == []


def test_useful_feedback_makes_one_case_of_that_runs_question_and_answer(viewer):  # R6
    first, again = (viewer.feedback(sessionId="s-1", runId="run-1", useful=True).json()["data"] for _ in range(2))
    assert first["caseId"] == again["caseId"] is not None
    assert viewer.rows(CASES) == [("run-1", *viewer.rows(ANSWERED)[0], 0)]


def test_feedback_revised_to_not_useful_counts_and_leaves_the_case_withdrawn(viewer):  # R6
    for useful in (True, False):
        viewer.feedback(sessionId="s-1", runId="run-1", useful=useful)
    assert viewer.recorded("s-1", "run-1")["feedback"]["useful"] is False
    assert [row[3] for row in viewer.rows(CASES)] == [1]


BAD_FEEDBACK = {
    "useful is no word": ({"useful": "yes"}, 400, "invalid_input"),
    "useful is no number": ({"useful": 1}, 400, "invalid_input"),
    "an unknown field": ({"rating": 5}, 400, "invalid_input"),
    "an unsafe id": ({"runId": "../run-1"}, 400, "invalid_input"),
    "a comment that is no text": ({"comment": 5}, 400, "invalid_input"),
    "a comment that is too long": ({"comment": "x" * 70_000}, 413, "body_too_large"),
}


@pytest.mark.parametrize("name", BAD_FEEDBACK)
def test_what_is_no_feedback_is_refused_before_anything_is_written(viewer, name):
    change, status, code = BAD_FEEDBACK[name]
    before = viewer.events
    answer = viewer.feedback(**({"sessionId": "s-1", "runId": "run-1", "useful": True} | change))
    assert (answer.status_code, answer.json()["code"], answer.json()["data"]) == (status, code, None)
    assert viewer.events == before


def test_a_run_that_is_cancelled_over_the_api_ends_cancelled(viewer):  # E7, D3
    answer = viewer.http.post(CANCEL)
    assert answer.status_code == 202
    assert answer.json()["data"] == {"sessionId": "s-1", "runId": "run-open", "askedBefore": False}
    assert viewer.ended.wait(20)
    run = viewer.recorded("s-1", "run-open")["run"]
    assert (run["status"], run["cancelReason"]) == ("CANCELLED", "USER_REQUESTED")
    again = viewer.http.post(CANCEL)
    assert (again.status_code, again.json()["code"]) == (409, "already_terminated")
    assert again.json()["data"] == {"sessionId": "s-1", "runId": "run-open", "outcome": "CANCELLED"}


def test_cancelling_may_be_given_a_reason_that_there_is(viewer):
    refused = viewer.http.post(CANCEL, json={"reason": "BOREDOM"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_input")
    assert viewer.http.post(CANCEL, json={"reason": "SHUTDOWN"}).status_code == 202
    assert viewer.ended.wait(20)
    assert viewer.recorded("s-1", "run-open")["run"]["cancelReason"] == "SHUTDOWN"


def test_a_foreign_run_and_an_unknown_one_are_not_cancelled_in_the_same_words(viewer):  # CASES 43
    before = viewer.events
    answers = [viewer.http.post(f"/api/diagnosis/s-2/runs/{run_id}/cancel") for run_id in ("run-open", "run-9")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert viewer.events == before


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_a_page_of_another_origin_can_neither_judge_nor_cancel(viewer, headers):
    before = viewer.events
    body = {"sessionId": "s-1", "runId": "run-1", "useful": True}
    for answer in (
        viewer.http.post("/api/feedback", json=body, headers=headers),
        viewer.http.post(CANCEL, headers=headers),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
    assert viewer.events == before


def test_our_own_page_can(viewer):
    headers = {"Origin": f"http://{viewer.http.base_url.netloc.decode()}", "Sec-Fetch-Site": "same-origin"}
    assert viewer.http.post(CANCEL, headers=headers).status_code == 202


@pytest.mark.parametrize("path", ["/api/feedback", CANCEL])
def test_a_viewer_that_only_reads_says_so(path):
    with client_of(FakeReader()) as client:
        answer = client.post(path, json={"sessionId": "s-1", "runId": "run-1", "useful": True})
    assert (answer.status_code, answer.json()["code"]) == (403, "read_only")
