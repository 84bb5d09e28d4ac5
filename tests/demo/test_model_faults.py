"""Each way in which a model's endpoint can fail, over a real socket: what is answered, and what is recorded."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from demo.offline_model import MODEL_NAME
from demo.offline_model.faults import RETRY_AFTER_S, Fault
from demo.prompts import ROUTE
from demo.serving import serving
from harness import CancelReason, RunEnded
from tests.demo.chats import DISKS, agent_at, ask, of_type, started, transitions
from tests.demo.scripted_model import Plan, with_faults

FAILURES = {
    Fault.UNAUTHORIZED: "REJECTED_REQUEST",
    Fault.NOT_FOUND: "NOT_FOUND",
    Fault.RATE_LIMITED: "RATE_LIMITED",
    Fault.RATE_LIMITED_UNTIL: "RATE_LIMITED",
    Fault.RATE_LIMITED_FOR_LONG: "RATE_LIMITED",
    Fault.SERVER_ERROR: "PROVIDER_ERROR",
    Fault.RESET: "TRANSPORT",
    Fault.TRUNCATED: "TRANSPORT",
    Fault.MALFORMED_JSON: "MALFORMED_REPLY",
    Fault.EMPTY: "MALFORMED_REPLY",
    Fault.REFUSAL: "BUSINESS_REJECTION",
    Fault.FILTERED: "BUSINESS_REJECTION",
    Fault.SILENCE: "TIMEOUT",
}
"""As what the record classifies them where a text is due."""
FINAL = {Fault.UNAUTHORIZED, Fault.NOT_FOUND, Fault.REFUSAL, Fault.FILTERED, Fault.RATE_LIMITED_FOR_LONG}
"""Not tried again even by those who may: no technical failure, or not before the deadline."""
SAYS_USAGE = {Fault.EMPTY, Fault.REFUSAL, Fault.FILTERED}
SILENCE_S = 2
"""After so long a model is silent; a busy machine answers sooner."""
UNHURRIED_S = 30


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Plan, str]]:
    plan = Plan()
    with serving("model", with_faults(plan)) as url:
        yield plan, url


@pytest.fixture
def plan(served) -> Plan:
    plan, _ = served
    plan.clear()
    return plan


@pytest.fixture
def slept() -> list[float]:
    """Seconds waited between attempts; nobody really waits."""
    return []


@pytest.fixture
def asking(served, plan, slept, journal, tmp_path):
    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)

    def agent(**settings: Any):
        is_silent = Fault.SILENCE in (*plan.stays.values(), *(fault for due in plan.due.values() for fault in due))
        model_timeout_s = SILENCE_S if is_silent else UNHURRIED_S
        usual: dict[str, Any] = {"model_timeout_s": model_timeout_s, "sleep": sleep}
        return agent_at(journal, tmp_path, served[1], **(usual | settings))

    return agent


def ends(journal, run_id, part):
    """How each attempt at a step ended, and what is known of its usage."""
    found = []
    for begun in started(journal, run_id, part):
        own = [event for event in journal.events(run_id) if getattr(event, "attempt_id", None) == begun.attempt_id]
        (end,) = [event for event in own if event.type in {"attempt.succeeded", "attempt.failed"}]
        (settled,) = [event for event in own if event.type == "usage.settled"]
        said = ("ok", None) if end.type == "attempt.succeeded" else (end.failure, end.will_retry)
        assert settled.complete == (settled.usage is not None)
        found.append((*said, settled.complete))
    return found


def outcome(journal, run_id):
    state = journal.state(run_id)
    return state.outcome, state.reason


def test_every_fault_is_tried_here():
    assert set(FAILURES) | {Fault.WRONG_TOOL, Fault.WRONG_ARGUMENTS, Fault.NO_USAGE} == set(Fault)


@pytest.mark.parametrize("fault", FAILURES, ids=lambda fault: fault.name)
class TestAFault:
    async def test_of_router_and_semantic_guard_is_tried_again_once_if_it_is_technical(
        self, asking, plan, journal, fault
    ):  # H6
        plan.due |= {"route": [fault], "judge": [fault]}
        async with asking() as agent:
            answer = await ask(agent, DISKS)
        failed = (FAILURES[fault], fault not in FINAL, fault in SAYS_USAGE)
        expected = [failed] if fault in FINAL else [failed, ("ok", None, True)]
        assert ends(journal, answer.run_id, "/router/") == expected
        assert ends(journal, answer.run_id, "/semantic_guard/") == expected
        # Without a router the graph is taken; without a judge, no answer is made of the evidence.
        assert (answer.flow.value, answer.degraded) == ("CHAT_GRAPH", fault in FINAL)
        assert outcome(journal, answer.run_id)[0] == "SUCCESS"

    async def test_of_the_composer_is_one_attempt_and_leads_to_the_fallback(
        self, asking, plan, journal, fault
    ):  # H6, R11
        plan.stays = {"answer": fault}
        async with asking() as agent:
            answer = await ask(agent, DISKS)
        assert ends(journal, answer.run_id, "/model/composer/") == [(FAILURES[fault], False, fault in SAYS_USAGE)]
        assert transitions(journal, answer.run_id)[-1] == ("composer", "fallback", "FALLBACK")
        (finished,) = of_type(journal, answer.run_id, "graph.finished")
        assert (finished.final_node, finished.reason, finished.degraded) == ("fallback", "MODEL_FAILED", True)
        assert outcome(journal, answer.run_id)[0] == "SUCCESS"
        assert "No space left on device" in answer.text

    async def test_of_a_chat_without_a_graph_fails_the_run_since_no_answer_is_safe(
        self, asking, plan, journal, fault
    ):  # R11
        plan.stays = {"chat": fault}
        async with asking() as agent:
            with pytest.raises(RunEnded) as caught:
                await ask(agent, "What is swap?")
        ended = caught.value
        assert (ended.session_id, ended.outcome, ended.reason) == ("s-1", "FAILED", "MODEL_FAILED")
        assert outcome(journal, ended.run_id) == ("FAILED", "MODEL_FAILED")
        assert ends(journal, ended.run_id, "/model/chat/") == [(FAILURES[fault], False, fault in SAYS_USAGE)]
        assert of_type(journal, ended.run_id, "answer.recorded") == []


@pytest.mark.parametrize(("fault", "attempt_count"), [(Fault.SERVER_ERROR, 2), (Fault.REFUSAL, 1)])
async def test_evidence_that_nobody_judged_is_told_without_a_diagnosis(
    asking, plan, journal, fault, attempt_count
):  # H6, R11
    plan.stays = {"judge": fault}
    async with asking() as agent:
        answer = await ask(agent, DISKS)
    assert len(ends(journal, answer.run_id, "/semantic_guard/")) == attempt_count
    assert transitions(journal, answer.run_id)[-1] == ("semantic_guard", "fallback", "FALLBACK")
    assert (answer.degraded, outcome(journal, answer.run_id)[0]) == (True, "SUCCESS")
    assert "No space left on device" in answer.text


# A date is told to the second, and so is the time by which it is read, which uvicorn takes once a second.
@pytest.mark.parametrize(
    ("fault", "at_least_s", "at_most_s"),
    [(Fault.RATE_LIMITED, RETRY_AFTER_S, RETRY_AFTER_S), (Fault.RATE_LIMITED_UNTIL, 0, RETRY_AFTER_S + 2)],
)
async def test_the_wait_that_a_provider_asks_for_is_kept_and_on_record(
    asking, plan, journal, slept, fault, at_least_s, at_most_s
):  # H6
    plan.due["route"] = [fault]
    async with asking() as agent:
        run_id = (await ask(agent, "What is swap?")).run_id
    (scheduled,) = of_type(journal, run_id, "retry.scheduled")
    assert at_least_s <= scheduled.delay_us / 1e6 <= at_most_s
    assert slept == [scheduled.delay_us / 1e6]


async def test_a_wait_beyond_the_deadline_is_not_begun(asking, plan, journal, slept):  # H6, R11
    plan.due["route"] = [Fault.RATE_LIMITED_FOR_LONG]
    async with asking() as agent:
        run_id = (await ask(agent, DISKS)).run_id
    (refused,) = of_type(journal, run_id, "retry.refused")
    assert (refused.failure, refused.reason, slept) == ("RATE_LIMITED", "DEADLINE_EXCEEDED", [])


async def test_a_run_that_is_stopped_does_not_wait_for_its_next_attempt(asking, plan, journal):  # H3, H6
    plan.stays = {"route": Fault.RATE_LIMITED}
    began = []

    async def wait_for_ever(delay_s: float) -> None:
        asyncio.get_running_loop().call_soon(began[0].cancellation.signal, CancelReason.USER_REQUESTED)
        await asyncio.Event().wait()

    async with asking(sleep=wait_for_ever) as agent:
        with pytest.raises(RunEnded) as caught:
            await ask(agent, DISKS, started=began.append)
    assert (caught.value.outcome, caught.value.reason) == ("CANCELLED", "USER_REQUESTED")
    assert ends(journal, caught.value.run_id, "/router/") == [("RATE_LIMITED", True, False)]


@pytest.mark.parametrize(
    ("task", "step", "kind"),
    [
        ("plan", "planner", "DIAGNOSIS_AGENT"),
        ("investigate", "executor", "DIAGNOSIS_AGENT"),
        ("repair", "executor", "EVIDENCE_REPAIR"),
    ],
)
async def test_planner_executor_and_repair_have_one_attempt(asking, plan, journal, task, step, kind):  # H6, R11
    plan.stays = {task: Fault.SERVER_ERROR}
    async with asking() as agent:
        answer = await ask(agent, "find `zebra unicorn` in the logs")
    assert ends(journal, answer.run_id, f"/model/{step}/")[-1] == ("PROVIDER_ERROR", False, False)
    *_, last = started(journal, answer.run_id, f"/model/{step}/")
    assert (last.operation, last.max_attempts) == (kind, 1)
    assert (answer.degraded, outcome(journal, answer.run_id)[0]) == (True, "SUCCESS")


@pytest.mark.parametrize("task", ["plan", "investigate", "repair"])
async def test_a_reply_with_nothing_in_it_asks_for_nothing(asking, plan, journal, task):
    plan.stays = {task: Fault.EMPTY}
    async with asking() as agent:
        answer = await ask(agent, "find `zebra unicorn` in the logs" if task == "repair" else DISKS)
    assert of_type(journal, answer.run_id, "attempt.failed") == []
    assert answer.degraded == (task == "repair")


@pytest.mark.parametrize(
    ("fault", "failed", "denied_count"), [(Fault.WRONG_TOOL, [], 1), (Fault.WRONG_ARGUMENTS, ["INVALID_ARGUMENTS"], 0)]
)
async def test_a_wrong_call_goes_back_to_the_model_and_the_run_can_still_succeed(
    asking, plan, journal, fault, failed, denied_count
):
    plan.due["investigate"] = [fault]
    async with asking() as agent:
        answer = await ask(agent, DISKS)
    assert [event.failure for event in of_type(journal, answer.run_id, "attempt.failed")] == failed
    denied = [event for event in of_type(journal, answer.run_id, "policy.decided") if not event.allowed]
    assert len(denied) == denied_count
    assert (answer.degraded, outcome(journal, answer.run_id)[0]) == (False, "SUCCESS")


@pytest.mark.parametrize("fault", [Fault.WRONG_TOOL, Fault.WRONG_ARGUMENTS])
async def test_a_model_that_only_makes_wrong_calls_is_given_two_tries_a_visit_and_one_repair(
    asking, plan, journal, fault
):  # R11
    plan.stays = {"investigate": fault, "repair": fault}
    async with asking() as agent:
        answer = await ask(agent, DISKS)
    assert len(ends(journal, answer.run_id, "/model/executor/")) == 4
    assert [cause for _, _, cause in transitions(journal, answer.run_id)].count("REPAIR") == 1
    (finished,) = of_type(journal, answer.run_id, "graph.finished")
    assert (finished.reason, finished.degraded, answer.degraded) == ("NO_EVIDENCE", True, True)
    assert "`/` is" in answer.text


async def test_usage_that_is_not_told_is_unknown_and_not_nothing(asking, plan, journal):  # H4a
    plan.stays = {"answer": Fault.NO_USAGE}
    async with asking() as agent:
        answer = await ask(agent, DISKS)
    assert ends(journal, answer.run_id, "/model/composer/") == [("ok", None, False)]
    assert ends(journal, answer.run_id, "/model/planner/") == [("ok", None, True)]
    assert not answer.degraded


async def test_a_reply_that_never_comes_cannot_hold_a_run_beyond_its_deadline(asking, plan, journal):  # H2, R11
    plan.stays = {"investigate": Fault.SILENCE}
    async with asking(model_timeout_s=UNHURRIED_S, timeout_s=SILENCE_S) as agent:
        with pytest.raises(RunEnded) as caught:
            await ask(agent, DISKS)
    ended = caught.value
    assert (ended.session_id, ended.outcome) == ("s-1", "TIMED_OUT")
    assert outcome(journal, ended.run_id)[0] == "TIMED_OUT"
    assert transitions(journal, ended.run_id)[-1] == ("planner", "executor", "NEXT")
    assert of_type(journal, ended.run_id, "graph.finished") == []


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.TRUNCATED])
def test_a_connection_really_breaks(served, plan, fault):
    plan.stays = {"route": fault}
    url = httpx2.URL(served[1])
    asked = {"model": MODEL_NAME, "messages": [{"role": "system", "content": ROUTE}]}
    body = json.dumps(asked).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((url.host, url.port)) as connection:
        connection.sendall(head.encode() + body)
        if fault is Fault.RESET:
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
        else:
            with connection.makefile("rb") as answer:
                fields, _, sent = answer.read().partition(b"\r\n\r\n")
            assert 0 < len(sent) < int(fields.lower().partition(b"content-length: ")[2].split()[0])
