"""Chats whose conversation is in a real Redis: continuous while it is there, and answered without it (SPEC R2, R10)."""

import asyncio

import pytest
import redis

from demo.inspection import inspect_session
from demo.memory.redis import key_of
from demo.offline_model.server import reply_to
from demo.serving import serving
from tests.demo.apps import app_served
from tests.demo.chats import DISKS
from tests.demo.scripted_model import answering
from tests.servers.postgres import free_port
from tests.servers.redis import redis_running

FOLLOW_UP = "And what about its logs?"
FOLLOWING = "Following up on disk space."


@pytest.fixture
def server(tmp_path):
    with redis_running(tmp_path) as server:
        yield server


@pytest.fixture
def app(tmp_path, model_url, server):
    with app_served(tmp_path, model_url, redis_url=server.url) as app:
        yield app


def turns_in(server, session_id):
    with redis.Redis.from_url(server.url) as client:
        return client.llen(key_of(session_id))


def chat(app, question=DISKS):
    answer = app.chat(question, "s-1")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_two_chats_in_one_session_are_two_runs_with_their_own_rows_and_one_conversation(app, server):  # SPEC R10
    first, second = chat(app), chat(app, FOLLOW_UP)
    found = inspect_session(app.file, "s-1")
    assert found.run_ids == (first["runId"], second["runId"])
    assert all(row.row_count > 0 and row.foreign_count == 0 for row in found.rows)
    assert (first["turnsRemembered"], second["turnsRemembered"]) == (0, 1)
    assert second["answer"].startswith(FOLLOWING)
    assert turns_in(server, "s-1") == 2
    assert not (app.file.parent / "memory.db").exists()
    assert app.query("SELECT message_pair_count FROM chat_session") == [(2,)]


def test_no_history_is_in_the_ledger_but_in_redis_alone(app, server):  # SPEC R1
    app.chat("What is swap? xylophone", "s-1")
    second = chat(app, "What is swap? again")
    contents = app.query("SELECT data FROM content WHERE stream_id = ? AND data IS NOT NULL", f"r:{second['runId']}")
    assert contents
    assert not any(b"xylophone" in data for (data,) in contents)


def without_conversation(answer):
    return (answer["turnsRemembered"], answer["turnKept"]) == (None, False)


def test_redis_that_is_away_costs_the_conversation_and_no_answer(tmp_path, model_url, caplog):
    with app_served(tmp_path, model_url, redis_url=f"redis://:hunter2@127.0.0.1:{free_port()}/0") as app:
        answer = chat(app)
        run = app.trace(answer)["run"]
        ops = app.http.post("/api/ai_ops", json={"sessionId": "s-1"})
    assert without_conversation(answer)
    assert (run["status"], run["labels"]) == ("SUCCESS", {"turns_remembered": "unavailable", "cases": "configured"})
    assert '"type":"done"' in ops.text
    assert "session s-1 goes on without its conversation: Redis did not answer as it should" in caplog.text
    assert "session s-1 will not remember its latest turn" in caplog.text
    assert "hunter2" not in caplog.text


def test_redis_that_says_nothing_is_waited_for_no_longer_than_its_bound(app, server, monkeypatch):
    first = chat(app)
    monkeypatch.setattr("demo.memory.redis.MEMORY_TIMEOUT_S", 0.2)
    with server.silent():
        second = chat(app, FOLLOW_UP)
    assert first["turnKept"]
    assert without_conversation(second)
    assert not second["answer"].startswith(FOLLOWING)
    # What was under way when the time was up may have been done; what comes after is as ever.
    assert chat(app, FOLLOW_UP)["turnsRemembered"] in (1, 2)


def test_redis_that_is_restarted_while_the_model_is_asked_keeps_the_turn_all_the_same(tmp_path, server):
    restarted = []

    def reply(request):
        if not restarted:
            restarted.append(server.restart())
        return reply_to(request)

    with (
        serving("model", answering(reply)) as model,
        app_served(tmp_path, model, redis_url=server.url) as app,
    ):
        first, second = chat(app), chat(app, FOLLOW_UP)
    assert (first["turnsRemembered"], first["turnKept"]) == (0, True)
    assert second["turnsRemembered"] == 1


def test_redis_that_goes_away_while_the_model_is_asked_is_told_in_the_answer(tmp_path, server):
    def reply(request):
        server.stop()
        return reply_to(request)

    with (
        serving("model", answering(reply)) as model,
        app_served(tmp_path, model, redis_url=server.url) as app,
    ):
        answer = chat(app)
    assert (answer["turnsRemembered"], answer["turnKept"]) == (0, False)


def test_a_conversation_is_cleared_in_redis_and_its_runs_stay(app, server):
    first = chat(app)
    assert app.http.post("/api/chat/clear", json={"sessionId": "s-1"}).status_code == 200
    assert turns_in(server, "s-1") == 0
    assert app.trace(first)["run"]["status"] == "SUCCESS"
    assert chat(app, FOLLOW_UP)["turnsRemembered"] == 0


def test_what_cannot_be_cleared_is_said_and_is_not_on_record(app, server):
    chat(app)
    before = app.row_counts()
    server.stop()
    answer = app.http.post("/api/chat/clear", json={"sessionId": "s-1"})
    assert (answer.status_code, answer.json()["code"]) == (503, "memory_unavailable")
    assert app.row_counts() == before


async def test_many_chats_at_once_find_their_own_conversation(app):
    def talk(number):
        first = app.chat(DISKS if number % 2 else "What is swap?", f"many-{number}").json()["data"]
        return first, app.chat(FOLLOW_UP, f"many-{number}").json()["data"]

    talks = await asyncio.gather(*(asyncio.to_thread(talk, number) for number in range(6)))
    assert [second["turnsRemembered"] for _, second in talks] == [1] * 6
    assert [second["answer"].startswith(FOLLOWING) for _, second in talks] == [bool(n % 2) for n in range(6)]
