"""What the demonstration holds against the app, and how it shows a run; and where its settings come from."""

import copy
import re
import sqlite3
from contextlib import closing

import pytest
from rich.console import Console

from demo.client import Asked, Client, RequestFailed
from demo.inspection import inspect_session
from demo.launch import keep_loopback_direct
from demo.memory import MemoryUnusable
from demo.memory.sqlite import SqliteMemory
from demo.rendering import run_line, show_trace, shown
from demo.script import NotAsItShouldBe, check_inspection, check_trace
from harness import SystemWallClock
from tests.demo.apps import app_served
from tests.demo.chats import DISKS


@pytest.fixture(scope="module")
def told(tmp_path_factory, model_url):
    """Two questions, their traces, and the ledger's file."""
    with app_served(tmp_path_factory.mktemp("app"), model_url) as app, Client(app.url) as client:
        first = client.chat(DISKS)
        second = client.chat("And its logs?", first.session_id)
        traces = [client.trace(asked.session_id, asked.run_id) for asked in (first, second)]
        yield [first, second], traces, app.file


def test_a_run_as_it_should_be_passes(told):
    asked, traces, file = told
    check_trace(traces[0], asked[0])
    check_inspection(inspect_session(file, asked[0].session_id), *asked)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda trace: trace["run"].update(runId="run-x"), "another run"),
        (lambda trace: trace["run"].update(status="FAILED"), "ended FAILED"),
        (lambda trace: trace.update(answer="x"), "recorded answer"),
        (lambda trace: trace["agentSteps"].pop(), "number of steps"),
        (lambda trace: trace["toolInvocations"].clear(), "number of tools"),
        (lambda trace: trace["agentSteps"][0].update(sessionId="s-x"), "rows of another run"),
    ],
)
def test_a_trace_that_is_off_is_noticed(told, change, complaint):
    (asked, _), (trace, _), _ = told
    wrong = copy.deepcopy(trace)
    change(wrong)
    with pytest.raises(NotAsItShouldBe, match=complaint):
        check_trace(wrong, asked)


def test_a_missing_run_is_noticed_in_the_file(told):
    (first, second), _, file = told
    with pytest.raises(NotAsItShouldBe, match="exactly its two runs"):
        check_inspection(inspect_session(file, first.session_id), first, Asked("", second.session_id, "run-x", ""))


def test_looking_into_the_file_cannot_change_it(told, monkeypatch):
    (first, _), _, file = told
    monkeypatch.setattr("demo.inspection.RUNS_OF_SESSION", "DELETE FROM diagnosis_run WHERE session_id = :session_id")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        inspect_session(file, first.session_id)


def test_a_row_of_another_session_is_counted_as_foreign(tmp_path):
    # The ledger itself refuses such a row, so the look into the file is tried on a file made for it.
    file = tmp_path / "broken.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE diagnosis_run (run_id, session_id, created_us)")
        db.execute("CREATE TABLE event (stream_id, session_id, run_id)")
        db.execute("CREATE TABLE agent_step (run_id, session_id)")
        db.execute("CREATE TABLE tool_invocation (run_id, session_id)")
        db.execute("INSERT INTO diagnosis_run VALUES ('r-1', 's-1', 0)")
        db.executemany("INSERT INTO event VALUES ('r:r-1', ?, ?)", [("s-1", "r-1"), ("s-2", "r-1"), ("s-1", "r-2")])
        db.executemany("INSERT INTO agent_step VALUES ('r-1', ?)", [("s-1",), ("s-2",)])
    found = inspect_session(file, "s-1")
    assert [(row.row_count, row.foreign_count) for row in found.rows] == [(3, 2), (2, 1), (0, 0)]


def test_a_run_is_one_line_that_a_program_can_read(told):
    (asked, _), (trace, _), _ = told
    line = run_line(trace, "http://x/trace")
    assert line == (
        f"run sessionId={asked.session_id} runId={asked.run_id} status=SUCCESS steps=6 tools=3 trace=http://x/trace"
    )


def test_a_trace_is_shown_with_question_verdict_steps_tools_and_answer(told, capsys):
    _, (trace, _), _ = told
    show_trace(Console(width=120), trace, "http://x/trace")
    out = capsys.readouterr().out
    way = "planner → executor → semantic_guard → evidence_guard → composer"
    for text in (DISKS, "SUCCESS · CHAT_GRAPH", way, "● router"):
        assert text in out
    assert "▪ host_metrics" in out
    assert "kernel: No space left on device" in out


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_keeps_each_step_and_its_time_on_one_line(told, capsys, width):
    _, (trace, _), _ = told
    show_trace(Console(width=width), trace, "http://x/trace")
    rows = [line for line in capsys.readouterr().out.splitlines() if re.search("[●▪] ", line)]
    assert len(rows) == len(trace["agentSteps"]) + len(trace["toolInvocations"])
    for line in rows:
        assert re.search(r"[●▪] \w+ .* \d[\d.]* m?s\b", line), line


def test_text_cannot_steer_the_terminal():
    assert shown("a\x1b[31mb\u202ec\nd\x9be") == "a·[31mb·c\nd·e"


def test_an_error_of_the_app_is_told_with_its_code(told, tmp_path, model_url):
    with app_served(tmp_path, model_url) as app, Client(app.url) as client:
        with pytest.raises(RequestFailed, match="400 invalid_input: question must not be blank"):
            client.chat(" ")
        with pytest.raises(RequestFailed, match="404 run_not_found"):
            client.trace("s-1", "run-x")


def test_an_app_that_is_not_there_is_told():
    with Client("http://127.0.0.1:9") as client, pytest.raises(RequestFailed, match="no answer"):
        client.chat("hi")


@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_memory_that_cannot_be_used_is_named(tmp_path, place):
    path = tmp_path / "memory.db"
    path.mkdir() if place == "folder" else path.write_text("junk" * 100)
    with pytest.raises(MemoryUnusable, match=re.escape(str(path))):
        SqliteMemory(path, SystemWallClock())


def test_no_proxy_stands_between_the_app_and_its_model():
    environment = {"NO_PROXY": "example.org"}
    keep_loopback_direct(environment)
    assert environment == {"NO_PROXY": "example.org,127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
