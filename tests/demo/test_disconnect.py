"""Clients that go away, and more clients than are served at once."""

import asyncio
import json
import socket
import threading
import time

import pytest

from demo.jobs import Jobs
from demo.offline_model.server import reply_to
from demo.serving import serving
from demo.sse import EventStream
from tests.demo.apps import app_served
from tests.demo.chats import DISKS
from tests.demo.scripted_model import answering

CHAT_BODY = json.dumps({"question": DISKS})


@pytest.fixture
def slow_app(tmp_path):
    """An app whose model takes its time, so that a client can leave meanwhile."""
    with serving("model", answering(reply_to, delay_s=0.4)) as model, app_served(tmp_path, model) as app:
        yield app


def send(app, connection, path, body):
    """Send a request; nobody reads the answer."""
    host, port = app.http.base_url.host, app.http.base_url.port
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())


def announce(app, connection, path):
    """Say that a body will come, and send its first byte only."""
    host, port = app.http.base_url.host, app.http.base_url.port
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())


def wait_for(condition, timeout_s=10.0):
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def runs(app):
    return app.query("SELECT status, cancel_reason FROM diagnosis_run")


@pytest.mark.parametrize(
    ("path", "body"), [("/api/chat", CHAT_BODY), ("/api/chat_stream", CHAT_BODY), ("/api/ai_ops", "{}")]
)
def test_a_client_that_goes_away_cancels_its_run(slow_app, path, body):  # SPEC H3
    with socket.create_connection((slow_app.http.base_url.host, slow_app.http.base_url.port)) as connection:
        send(slow_app, connection, path, body)
        wait_for(lambda: runs(slow_app))
    wait_for(lambda: runs(slow_app)[0][0] != "RUNNING")
    assert runs(slow_app) == [("CANCELLED", "CLIENT_DISCONNECTED")]


@pytest.mark.parametrize("path", ["/api/chat", "/api/chat_stream", "/api/ai_ops"])
def test_a_client_that_leaves_while_it_sends_is_nothing_unexpected(slow_app, caplog, path):
    with socket.create_connection((slow_app.http.base_url.host, slow_app.http.base_url.port)) as connection:
        announce(slow_app, connection, path)
    assert slow_app.chat("What is swap?").status_code == 200
    assert "unexpected" not in caplog.text


@pytest.mark.parametrize("path", ["/api/chat", "/api/chat_stream", "/api/ai_ops"])
def test_a_body_that_does_not_come_is_408_and_its_connection_is_closed(tmp_path, model_url, monkeypatch, path):
    monkeypatch.setattr("viewer.http.json_body.BODY_TIMEOUT_S", 0.1)
    with app_served(tmp_path, model_url) as app:
        with socket.create_connection((app.http.base_url.host, app.http.base_url.port)) as connection:
            announce(app, connection, path)
            connection.settimeout(10)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert app.row_counts()["diagnosis_run"] == 0
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "body_too_slow"


async def test_a_stream_whose_reader_leaves_leaves_no_task_behind():
    jobs = Jobs(1)
    job = jobs.start(lambda started: asyncio.Event().wait())
    reading = asyncio.create_task(EventStream().next(job))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait({reading})
    await jobs.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    ("grace_s", "expected"), [(10, ("SUCCESS", None)), (0, ("CANCELLED", "SHUTDOWN"))], ids=["in time", "too late"]
)
def test_stopping_the_app_waits_a_moment_and_then_ends_the_run(tmp_path, monkeypatch, grace_s, expected):
    monkeypatch.setattr("demo.serving.GRACEFUL_SHUTDOWN_S", grace_s)
    with serving("model", answering(reply_to, delay_s=0.2)) as model, socket.socket() as connection:
        with app_served(tmp_path, model) as app:
            connection.connect((app.http.base_url.host, app.http.base_url.port))
            send(app, connection, "/api/chat", CHAT_BODY)
            wait_for(lambda: runs(app))
        assert runs(app) == [expected]


def test_one_run_more_than_allowed_is_refused_and_creates_nothing(tmp_path):
    model = serving("model", answering(reply_to, delay_s=0.4))
    with model as url, app_served(tmp_path, url, active_runs_max=1) as app:
        asking = threading.Thread(target=lambda: app.chat(DISKS))
        asking.start()
        wait_for(lambda: runs(app))
        answer = app.chat(DISKS, "refused-1")
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_runs")
        assert answer.headers["retry-after"] == "2"
        assert app.query("SELECT session_id FROM chat_session WHERE session_id = 'refused-1'") == []
        asking.join()
        assert app.chat("What is swap?").status_code == 200
