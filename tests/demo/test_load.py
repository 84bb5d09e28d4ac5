"""Two hundred chats at once in fifty sessions, through the real app: each run holds its own, and nothing else."""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from demo.bounds import CHAT_LIMITS
from demo.offline_model import create_offline_model
from demo.serving import serving
from harness import SystemWallClock
from ledger.verifying import verify
from tests.demo.apps import app_served
from tests.demo.chats import limits
from tests.demo.test_disconnect import wait_for

pytestmark = pytest.mark.timeout(240)

CHATS = 200
SESSIONS = 50
SIMPLE = "What is swap?"
# What one such chat needs and little more, so that nobody can spend from another's budget unseen.
TIGHT = limits(model_calls=8, tool_calls=8, per_tool={**CHAT_LIMITS.per_tool, "search_logs": 1})
SETTINGS = {"active_runs_max": CHATS, "limits": TIGHT, "timeout_s": 120.0, "model_timeout_s": 120.0}


@dataclass(frozen=True, slots=True)
class Chat:
    """One of them; three of four look for a word that no other looks for."""

    number: int

    @property
    def word(self) -> str:
        return f"marker-{self.number:03}"

    @property
    def is_simple(self) -> bool:
        return self.number % 4 == 3

    @property
    def is_greedy(self) -> bool:
        """Whether it asks for more than its budget holds."""
        return self.number % 20 == 0

    @property
    def body(self) -> dict[str, str]:
        words = f"`{self.word}` and `marker-no`" if self.is_greedy else f"`{self.word}`"
        question = SIMPLE if self.is_simple else f"find {words} in the logs, and how much memory is left?"
        return {"question": question, "sessionId": f"s-{self.number // (CHATS // SESSIONS)}"}


ALL = [Chat(number) for number in range(CHATS)]


def held(gate: threading.Event):
    """The offline model, which answers once the gate is open."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[ASGIApp]:
        model = create_offline_model(SystemWallClock())

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            while scope["path"] != "/healthz" and not gate.is_set():
                await asyncio.sleep(0.05)
            await model(scope, receive, send)

        yield app

    return opened


async def ask_all(url: str) -> list[dict[str, Any]]:
    pool = httpx2.Limits(max_connections=CHATS)
    async with httpx2.AsyncClient(base_url=url, timeout=120, trust_env=False, limits=pool) as http:
        answers = await asyncio.gather(*(http.post("/api/chat", json=chat.body) for chat in ALL))
    assert [answer.status_code for answer in answers] == [409 if chat.is_greedy else 200 for chat in ALL]
    return [answer.json()["data"] for answer in answers]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """The app after it, the answers in the order of `ALL`, and what one request more was told meanwhile."""
    gate = threading.Event()
    folder = tmp_path_factory.mktemp("load")
    with serving("model", held(gate)) as model, app_served(folder, model, **SETTINGS) as app:
        (folder / "logs" / "app.log").write_text("".join(f"{chat.word} failed\n" for chat in ALL))
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(asyncio.run, ask_all(app.url))
            try:
                wait_for(lambda: app.query(RUNNING) == [(CHATS,)], timeout_s=50)
                refused = app.chat(SIMPLE, "s-too-many")
            finally:
                gate.set()
            yield app, asking.result(), refused


RUNNING = "SELECT count(*) FROM diagnosis_run WHERE status = 'RUNNING'"


def test_one_more_than_may_run_at_once_is_refused_and_leaves_nothing(loaded):
    app, _, refused = loaded
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")
    assert app.query("SELECT 1 FROM stream WHERE session_id = 's-too-many'") == []


def test_each_answer_is_made_of_what_its_own_run_found(loaded):  # CASES 41
    app, answers, _ = loaded
    failed = "SELECT name, failure, duration_us FROM agent_step WHERE failure IS NOT NULL"
    assert app.query(failed) == []
    for chat, answer in zip(ALL, answers, strict=True):
        assert answer["sessionId"] == chat.body["sessionId"]
        if chat.is_greedy:
            assert answer["outcome"] == "BUDGET_EXHAUSTED"
            continue
        found = set(re.findall(r"marker-\d+", answer["answer"]))
        assert found == (set() if chat.is_simple else {chat.word})
        assert answer["agentFlow"] == ("CHAT_SIMPLE" if chat.is_simple else "CHAT_GRAPH")
        assert not answer["degraded"]


def test_each_run_has_its_own_events_and_rows_and_no_others(loaded):  # SPEC R3, E4
    app, answers, _ = loaded
    session_of = {answer["runId"]: answer["sessionId"] for answer in answers}
    assert len(session_of) == CHATS
    rows = app.query("SELECT run_id, session_id, status, step_count, tool_call_count FROM diagnosis_run")
    assert {row[0]: row[1] for row in rows} == session_of
    greedy = {answer["runId"] for chat, answer in zip(ALL, answers, strict=True) if chat.is_greedy}
    assert {row[0] for row in rows if row[2] == "BUDGET_EXHAUSTED"} == greedy
    assert Counter(row[2] for row in rows) == {"SUCCESS": CHATS - len(greedy), "BUDGET_EXHAUSTED": len(greedy)}

    events = app.query("SELECT stream_id, seq, body FROM event WHERE stream_id LIKE 'r:%' ORDER BY stream_id, seq")
    bodies = [(stream_id, seq, json.loads(body)) for stream_id, seq, body in events]
    assert all(
        (stream_id, body["session_id"]) == (f"r:{body['run_id']}", session_of[body["run_id"]])
        for stream_id, _, body in bodies
    )
    heads = dict(app.query("SELECT stream_id, head_seq FROM stream WHERE kind = 'run'"))
    assert heads == Counter(stream_id for stream_id, _, _ in bodies)
    assert heads == {stream_id: seq for stream_id, seq, _ in bodies}

    started = Counter((b["run_id"], b["kind"]) for _, _, b in bodies if b["type"] == "attempt.started")
    steps, tools = (
        Counter(app.query(f"SELECT run_id, session_id FROM {table}")) for table in ("agent_step", "tool_invocation")
    )
    for run_id, session_id, _, step_count, tool_call_count in rows:
        assert steps.pop((run_id, session_id)) == step_count == started[run_id, "model"]
        assert tools.pop((run_id, session_id), 0) == tool_call_count == started[run_id, "tool"]
    assert not steps
    assert not tools


def test_no_run_used_more_than_it_might(loaded):  # SPEC H4
    app, _, _ = loaded
    for text in app.query("SELECT limits, usage FROM diagnosis_run"):
        most, used = map(json.loads, text)
        assert all(used[name] <= most[name] for name in used.keys() & most.keys())
        assert used["model_calls"] > 0
    refused = app.query("SELECT session_id FROM event WHERE type = 'reservation.rejected'")
    assert sorted(refused) == sorted((chat.body["sessionId"],) for chat in ALL if chat.is_greedy)


def test_every_session_has_its_own_answers(loaded):  # SPEC R1
    app, _, _ = loaded
    counted = dict(app.query("SELECT session_id, message_pair_count FROM chat_session"))
    assert counted == Counter(chat.body["sessionId"] for chat in ALL if not chat.is_greedy)


async def test_the_ledger_verifies_afterwards(loaded):  # SPEC E9
    app, _, _ = loaded
    report = await verify(app.file)
    assert report.findings == ()
