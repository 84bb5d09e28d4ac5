"""Real runs of the app are executed again with every server stopped (SPEC D7)."""

import asyncio
import socket
import threading

import pytest
from rich.console import Console

from demo import investigation
from demo.commands import replay
from demo.configuration import read_configuration
from demo.graph import build, nodes
from demo.offline_model.faults import Fault
from demo.offline_model.server import reply_to
from demo.replaying import execute_again
from demo.serving import serving
from demo.settings import ledger_url
from harness.replay import Kind, Verdict
from ledger import Ledger
from tests.demo.apps import app_served
from tests.demo.chats import DISKS, limits
from tests.demo.conftest import offline_model
from tests.demo.scripted_model import answering, failing, failing_from, with_faults
from tests.demo.test_disconnect import CHAT_BODY, send, wait_for


def recorded(folder, *asked, open_model=offline_model, is_away=False, **settings):
    """The runs that requests made, in the order in which they began, each as its ids and its outcome."""
    with serving("model", open_model) as url, app_served(folder, NOWHERE if is_away else url, **settings) as app:
        for request in asked:
            request(app)
        wait_for(lambda: not app.query("SELECT 1 FROM diagnosis_run WHERE status = 'RUNNING'"))
        return app.query("SELECT session_id, run_id, status FROM diagnosis_run ORDER BY created_us")


def chat(question=DISKS, session_id="s-1"):
    return lambda app: app.chat(question, session_id)


def check(app):
    app.http.post("/api/ai_ops", json={"sessionId": "s-1"})


def clear(app):
    assert app.http.post("/api/chat/clear", json={"sessionId": "s-1"}).status_code == 200


def leave(app):
    with socket.create_connection((app.http.base_url.host, app.http.base_url.port)) as connection:
        send(app, connection, "/api/chat", CHAT_BODY)
        wait_for(lambda: app.query("SELECT 1 FROM agent_step"))


def cancel(app):
    """Ask for a chat, and have somebody else cancel it, from another process as it were."""
    asking = threading.Thread(target=app.chat, args=(DISKS, "s-1"))
    asking.start()
    wait_for(lambda: app.query("SELECT 1 FROM agent_step"))

    async def cancel_it():
        (keys,) = app.query("SELECT session_id, run_id FROM diagnosis_run")
        async with await Ledger.open(f"sqlite:///{app.file}") as ledger:
            await ledger.cancel(*keys)

    asyncio.run(cancel_it())
    asking.join()


def configured(folder):
    return read_configuration({"data": str(folder)}, {}, only=("data", "db"))


def again(folder, run):
    return execute_again(ledger_url(folder), *run[:2])


SLOW = answering(reply_to, delay_s=0.3)


def refusing_to_judge(task: str | None) -> Fault | None:
    return Fault.REFUSAL if task == "judge" else None


NOWHERE = "http://127.0.0.1:9"
FOLLOW_UP = chat("And what do its logs say?")
SCENARIOS = {
    "a conversation and a check": ([chat("What is swap?"), chat(), FOLLOW_UP, check], {}, ["SUCCESS"] * 4),
    "a conversation that was cleared": ([chat(), clear, FOLLOW_UP], {}, ["SUCCESS"] * 2),
    "a router that is tried again": ([chat()], {"open_model": failing(503)}, ["SUCCESS"]),
    "a judge that is tried again": ([chat()], {"open_model": failing(0, 0, 0, 0, 500)}, ["SUCCESS"]),
    "a judge that refuses": ([chat()], {"open_model": with_faults(refusing_to_judge)}, ["SUCCESS"]),
    "a model that is away": ([chat(), check], {"is_away": True}, ["SUCCESS", "FAILED"]),
    "a report that nobody writes": ([check], {"open_model": failing_from("answer")}, ["SUCCESS"]),
    "a client that leaves": ([leave], {"open_model": SLOW}, ["CANCELLED"]),
    "a request to cancel": ([cancel], {"open_model": SLOW}, ["CANCELLED"]),
    "a deadline": ([chat()], {"open_model": SLOW, "timeout_s": 0.4}, ["TIMED_OUT"]),
    "a limit of steps": ([chat()], {"limits": limits(model_calls=2)}, ["BUDGET_EXHAUSTED"]),
    "a limit of tools": ([chat()], {"limits": limits(tool_calls=2)}, ["BUDGET_EXHAUSTED"]),
    "a limit of bytes": ([chat()], {"limits": limits(run_bytes=600)}, ["BUDGET_EXHAUSTED"]),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_runs_of_the_app_are_the_same_without_any_server(tmp_path, name):
    asked, settings, outcomes = SCENARIOS[name]
    runs = recorded(tmp_path, *asked, **settings)
    assert [run[2] for run in runs] == outcomes
    for run in runs:
        done = again(tmp_path, run)
        assert done.is_same, str(done)
        assert done.crossed_count + done.others_count == done.event_count


@pytest.fixture(scope="module")
def one_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    (run,) = recorded(folder, chat())
    return folder, run


def test_another_prompt_is_told_by_the_digest_of_what_the_model_was_given(one_run, monkeypatch):  # D10
    monkeypatch.setattr(nodes, "PLAN", nodes.PLAN + " Be brief.")
    done = again(*one_run)
    assert done.divergence.kind is Kind.ARGUMENTS
    assert "planner.1/model/planner/1/1" in str(done)
    (difference,) = done.divergence.differences
    assert "only its digest is on record" in difference.recorded
    assert "Be brief." in difference.crossed


def test_another_order_of_tools_is_told_with_both_calls(one_run, monkeypatch):
    call_all = investigation._call_all
    monkeypatch.setattr(investigation, "_call_all", lambda trip, calls: call_all(trip, calls[::-1]))
    done = again(*one_run)
    assert done.verdict is Verdict.DIFFERENT
    assert "batch/tools/1/1/0/tool/" in str(done)
    assert "host_metrics" in str(done)


def test_a_further_call_of_a_tool_is_an_extra_boundary(one_run, monkeypatch):
    async def composer(trip, state):
        await investigation.call_tools(trip, [investigation.ToolCall("c", "host_metrics", "{}")])
        return await nodes.composer(trip, state)

    monkeypatch.setitem(build.NODES, "composer", (composer, build.NODES["composer"][1]))
    done = again(*one_run)
    assert done.divergence.kind is Kind.EXTRA
    assert "composer.5/batch/tools/1/1, not let through" in str(done)
    assert "recorded: reservation.granted composer.5/model/composer/1/1" in str(done)


def test_the_command_says_the_verdict_by_its_exit_code(one_run, monkeypatch, capsys):
    folder, (session_id, run_id, _) = one_run
    named = f"{session_id}/{run_id}"
    assert replay(Console(width=100), named, configured(folder)) == 0
    assert capsys.readouterr().out.startswith("same\n")
    monkeypatch.setattr(nodes, "PLAN", "Plan.")
    assert replay(Console(width=100), named, configured(folder)) == 1
    assert capsys.readouterr().out.startswith("different arguments at event ")
    for unusable in (run_id, f"s-2/{run_id}"):
        assert replay(Console(width=100), unusable, configured(folder)) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_conversation_whose_beginning_was_erased_says_so(tmp_path, capsys):  # E10
    first, second = recorded(tmp_path, chat(), FOLLOW_UP)

    async def erase():
        async with await Ledger.open(ledger_url(tmp_path)) as ledger:
            await ledger.erase(run=(first[0], first[1]), actor="dpo-1")

    asyncio.run(erase())
    assert replay(Console(width=100), f"{second[0]}/{second[1]}", configured(tmp_path)) == 2
    told = f"cannot re-execute: run {first[1]} of the conversation was erased, and it was remembered"
    assert told in capsys.readouterr().err
