"""A model's endpoint that is away, slow, goes away or comes back in the middle of a run: an answer, and no waiting."""

import asyncio
from contextlib import ExitStack

from demo.offline_model.faults import Fault
from demo.offline_model.server import reply_to
from demo.serving import serving
from tests.demo.chats import DISKS, agent_at, ask, of_type, transitions
from tests.demo.conftest import offline_model
from tests.demo.scripted_model import Plan, answering, with_faults
from tests.servers.postgres import free_port


def failures(journal, run_id):
    return [(event.failure, event.will_retry) for event in of_type(journal, run_id, "attempt.failed")]


async def test_one_that_is_away_is_done_without(journal, tmp_path):  # R11
    async with agent_at(journal, tmp_path, f"http://127.0.0.1:{free_port()}") as agent:
        answer = await ask(agent, DISKS)
    assert failures(journal, answer.run_id) == [("TRANSPORT", True), ("TRANSPORT", False), ("TRANSPORT", False)]
    assert (answer.degraded, journal.state(answer.run_id).outcome) == (True, "SUCCESS")
    assert "`/` is" in answer.text


async def test_one_that_comes_back_between_two_attempts_answers_all_that_follows(journal, tmp_path):  # H6
    port = free_port()
    with ExitStack() as servers:

        async def come_back(delay_s):
            servers.enter_context(serving("model", offline_model, port=port))

        async with agent_at(journal, tmp_path, f"http://127.0.0.1:{port}", sleep=come_back) as agent:
            answer = await ask(agent, DISKS)
    assert failures(journal, answer.run_id) == [("TRANSPORT", True)]
    assert not answer.degraded


async def test_one_that_goes_away_leaves_what_the_tools_found(journal, tmp_path):  # R11
    plan = Plan()
    plan.due = {"judge": [Fault.SERVER_ERROR]}
    servers = ExitStack()

    async def go_away(delay_s):
        await asyncio.to_thread(servers.close)

    with servers:
        url = servers.enter_context(serving("model", with_faults(plan)))
        async with agent_at(journal, tmp_path, url, sleep=go_away) as agent:
            answer = await ask(agent, DISKS)
    assert failures(journal, answer.run_id) == [("PROVIDER_ERROR", True), ("TRANSPORT", False)]
    assert transitions(journal, answer.run_id)[-1] == ("semantic_guard", "fallback", "FALLBACK")
    assert "No space left on device" in answer.text


async def test_one_that_is_too_slow_is_done_without(journal, tmp_path):  # R11
    with serving("model", answering(reply_to, delay_s=0.4)) as url:
        async with agent_at(journal, tmp_path, url, model_timeout_s=0.1) as agent:
            answer = await ask(agent, DISKS)
    assert failures(journal, answer.run_id) == [("TIMEOUT", True), ("TIMEOUT", False), ("TIMEOUT", False)]
    assert answer.degraded


async def test_one_that_is_back_for_the_next_question_is_asked_as_ever(journal, tmp_path):
    port = free_port()
    async with agent_at(journal, tmp_path, f"http://127.0.0.1:{port}") as agent:
        without = await ask(agent, DISKS)
        with serving("model", offline_model, port=port):
            again = await ask(agent, DISKS)
    assert (without.degraded, again.degraded) == (True, False)
