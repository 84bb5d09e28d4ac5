"""Where the run ends before its answer: budget, deadline, cancellation. There is no fallback then (SPEC R11)."""

import pytest

from demo.bounds import CHAT_LIMITS
from demo.offline_model.server import reply_to
from harness import CancelReason, LedgerUnavailable, RunEnded
from tests.demo.chats import DISKS, ask, limits, of_type, started, transitions
from tests.demo.scripted_model import answering, task_of


@pytest.mark.parametrize(
    ("changes", "resource"),
    [
        ({"model_calls": 2}, "model_calls"),
        ({"tool_calls": 2}, "tool_calls"),
        ({"per_tool": {**CHAT_LIMITS.per_tool, "search_logs": 1, "host_metrics": 1}}, None),
        ({"run_bytes": 300}, "run_bytes"),
        ({"total_tokens": 900}, "total_tokens"),
    ],
)
async def test_an_exhausted_budget_ends_the_run_without_a_fallback(chatting, journal, changes, resource):  # SPEC R11
    async with chatting(limits=limits(**changes)) as agent:
        question = "Is any disk close to full, and how much memory is left?"
        with pytest.raises(RunEnded) as caught:
            await ask(agent, question)
    ended = caught.value
    assert (ended.outcome, ended.session_id) == ("BUDGET_EXHAUSTED", "s-1")
    assert resource in (None, ended.resource)
    assert journal.state(ended.run_id).outcome == "BUDGET_EXHAUSTED"
    assert "fallback" not in {to for _, to, _ in transitions(journal, ended.run_id)}
    assert of_type(journal, ended.run_id, "graph.finished") == []


async def test_calls_that_one_reply_asks_for_are_made_all_or_none(chatting, journal):  # SPEC D6
    async with chatting(limits=limits(tool_calls=2)) as agent:
        with pytest.raises(RunEnded) as caught:
            await ask(agent, DISKS)
    assert caught.value.resource == "tool_calls"
    assert started(journal, caught.value.run_id, "/tool/") == []


async def test_a_passed_deadline_ends_the_run_without_a_fallback(chatting, journal):  # SPEC R11
    def slow(request):
        return reply_to(request)

    async with chatting(answering(slow, delay_s=0.25), timeout_s=0.6) as agent:
        with pytest.raises(RunEnded) as caught:
            await ask(agent, DISKS)
    ended = caught.value
    assert (ended.code, journal.state(ended.run_id).outcome) == ("timed_out", "TIMED_OUT")
    assert "fallback" not in {to for _, to, _ in transitions(journal, ended.run_id)}


async def test_a_signalled_cancellation_ends_the_run_without_a_fallback(chatting, journal):
    async with chatting() as agent:
        with pytest.raises(RunEnded) as caught:
            await ask(agent, DISKS, started=lambda run: run.cancellation.signal(CancelReason.CLIENT_DISCONNECTED))
    assert (caught.value.outcome, caught.value.reason) == ("CANCELLED", "CLIENT_DISCONNECTED")


async def test_a_failed_chat_is_not_remembered(chatting):
    async with chatting(limits=limits(model_calls=1)) as agent:
        with pytest.raises(RunEnded):
            await ask(agent, DISKS)
        assert await agent.memory.recall("s-1") == ()


async def test_an_unforeseen_failure_leaves_a_trace_of_what_really_happened(chatting, journal, monkeypatch):  # SPEC R11
    async def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("demo.graph.nodes.investigate", broken)
    async with chatting() as agent:
        with pytest.raises(RunEnded) as caught:
            await ask(agent, DISKS)
    assert (caught.value.outcome, caught.value.reason) == ("FAILED", "UNHANDLED_EXCEPTION")
    assert transitions(journal, caught.value.run_id) == [(None, "planner", "NEXT"), ("planner", "executor", "NEXT")]
    assert of_type(journal, caught.value.run_id, "graph.finished") == []


async def test_a_lost_ledger_ends_the_run_without_a_fallback(chatting, journal):  # SPEC R11, D1
    def answer(request):
        if task_of(request) == "plan":
            journal.fail_with = LedgerUnavailable("the disk is full")
        return reply_to(request)

    def back_again(reason):
        journal.fail_with = None

    async with chatting(answering(answer)) as agent:
        with pytest.raises(RunEnded) as caught:
            await ask(agent, DISKS, started=lambda run: run.cancellation.on_signal(back_again))
    assert (caught.value.code, caught.value.outcome) == ("ledger_unavailable", "FAILED")
    assert "fallback" not in {to for _, to, _ in transitions(journal, caught.value.run_id)}
