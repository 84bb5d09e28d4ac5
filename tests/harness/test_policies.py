"""Policies: asked before a tool call, they fail closed, and what they decide is on record."""

import asyncio
import contextlib
import threading
from typing import Any, cast

import pytest

from harness import Decision, Harness, InvalidInput, RunContext, RunEnded, ToolDenied, ToolRequest, ToolRules
from harness.errors import LedgerUnavailable
from harness.retry import FailureType, tell
from tests.harness.fakes import (
    HandJournal,
    each,
    harness_over,
    left_with,
    limits,
    only,
    say,
    say_on_thread,
    types,
    until,
)

RUN: dict[str, Any] = {"session_id": "s", "run_id": "r", "limits": limits(), "timeout_s": 60}


async def allow(request: ToolRequest) -> Decision:
    return Decision.allow("FINE")


def deny(request: ToolRequest) -> Decision:
    return Decision.deny("NOT_TODAY")


def harness_with(journal: HandJournal, *policies: Any, **settings: Any) -> Harness:
    return harness_over(journal, policies=policies, **settings)


async def test_an_allowed_call_has_the_decision_in_the_append_of_its_start(journal):
    harness = harness_with(journal, allow)
    async with harness.run(**RUN) as run:
        assert await harness.tool(run, "look", say, args={"n": 1}, call_id="c", effect="read") == {"n": 1}
    (start,) = [submission for submission in journal.submissions if "attempt.started" in types(submission.events)]
    assert types(start.events) == ["policy.decided", "reservation.granted", "attempt.started"]
    decided, _, started = start.events
    assert (decided.boundary, decided.kind, decided.name) == (started.boundary, "tool", "look")
    assert (decided.policy, decided.allowed, decided.reason) == ("allow", True, "FINE")
    assert (decided.effect, decided.call_id, decided.input_digest) == ("read", "c", started.input_digest)


async def test_a_denied_call_is_on_record_before_it_is_refused_and_nothing_else_happens(journal):
    harness = harness_with(journal, deny)
    async with harness.run(**RUN) as run:
        before = run.budget.snapshot()
        journal.holds = True
        call = asyncio.create_task(harness.tool(run, "look", say, args={"n": 1}, call_id="c"))
        await until(lambda: journal.waiting)
        assert not call.done()
        journal.store_all()
        with pytest.raises(ToolDenied) as denied:
            await call
        assert run.budget.snapshot() == before
        assert run.lifecycle.is_running
    error = denied.value
    assert (error.code, error.session_id, error.run_id) == ("tool_denied", "s", "r")
    assert (error.tool, error.call_id, error.policy, error.reason) == ("look", "c", "deny", "NOT_TODAY")
    assert types(journal.events("r")) == ["run.started", "policy.decided", "run.terminated"]
    assert only(journal.events("r"), "run.terminated").outcome == "SUCCESS"


async def test_every_policy_must_allow_and_none_is_asked_after_the_first_that_denies(journal):
    asked: list[str] = []

    def never(request: ToolRequest) -> Decision:
        asked.append(request.name)
        return Decision.allow()

    harness = harness_with(journal, allow, deny, never)
    async with harness.run(**RUN) as run:
        with pytest.raises(ToolDenied):
            await harness.tool(run, "look", say)
    decided = each(journal.events("r"), "policy.decided")
    assert [(event.policy, event.allowed) for event in decided] == [("allow", True), ("deny", False)]
    assert asked == []


async def test_a_policy_sees_the_call_and_can_change_nothing_of_it(journal):
    seen: list[ToolRequest] = []

    def look_at(request: ToolRequest) -> Decision:
        seen.append(request)
        with pytest.raises(TypeError):
            cast(Any, request.arguments)["n"] = 2
        return Decision.allow()

    harness = harness_with(journal, look_at)
    async with harness.run(**RUN) as run:
        assert await harness.tool(run, say, call_id="c", tool_key="k", effect="write")(n=1) == {"n": 1}
    (request,) = seen
    assert (request.session_id, request.run_id, request.name) == ("s", "r", "say")
    assert (request.effect, request.call_id, request.tool_key) == ("write", "c", "k")
    assert request.arguments == {"n": 1}


async def test_models_and_guards_ask_no_policy(journal):
    harness = harness_with(journal, deny)
    async with harness.run(**RUN) as run:
        assert await harness.model(run, "planner", say) == {}
        assert await harness.guard(run, "evidence", say) == {}
    assert each(journal.events("r"), "policy.decided") == []


def raises(request: ToolRequest) -> Decision:
    raise ValueError("with a secret")


async def raises_later(request: ToolRequest) -> Decision:
    raise ValueError("with a secret")


def mistyped(request: ToolRequest) -> Any:
    return True


async def silent(request: ToolRequest) -> Any:
    return None


async def cancels_itself(request: ToolRequest) -> Decision:
    raise asyncio.CancelledError


async def too_slow(request: ToolRequest) -> Decision:
    await asyncio.Event().wait()
    return Decision.allow()


@pytest.mark.parametrize("policy", [raises, raises_later, mistyped, silent, cancels_itself, too_slow])
async def test_a_policy_that_fails_denies_and_the_log_names_it_without_a_payload(journal, caplog, policy):
    harness = harness_with(journal, policy, hook_timeout_s=0.05)
    async with harness.run(**RUN) as run:
        with pytest.raises(ToolDenied) as denied:
            await harness.tool(run, "look", say, args={"key": "secret"})
    decided = only(journal.events("r"), "policy.decided")
    assert (decided.policy, decided.allowed, decided.reason) == (policy.__name__, False, "POLICY_FAILED")
    assert denied.value.reason == "POLICY_FAILED"
    (line,) = [record.getMessage() for record in caplog.records if record.name == "harness.boundary.deciding"]
    assert policy.__name__ in line
    assert "secret" not in line


async def test_a_plain_policy_that_hangs_denies_and_keeps_only_its_thread(journal):
    free = threading.Event()

    def hangs(request: ToolRequest) -> Decision:
        free.wait(30)
        return Decision.allow()

    harness = harness_with(journal, hangs, hook_timeout_s=0.05)
    async with harness.run(**RUN) as run:
        with pytest.raises(ToolDenied):
            await harness.tool(run, "look", say)
    free.set()
    assert types(journal.events("r")) == ["run.started", "policy.decided", "run.terminated"]


async def test_a_denial_is_a_failure_of_its_own_type_that_is_never_retried(journal):  # H6
    harness = harness_with(journal, deny)

    async def outer(run: RunContext) -> Any:
        return await harness.tool(run, "inner", say)

    async with harness.run(**RUN) as run:
        with pytest.raises(ToolDenied):
            await harness.guard(run, "evidence", outer)  # A guard may be tried twice.
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.will_retry) == ("DENIED", False)
    denied = ToolDenied("s", "r", tool="look", call_id=None, policy="p", reason="NO")
    assert tell(denied).failure is FailureType.DENIED


async def test_a_call_that_is_allowed_and_passes_a_limit_has_both_on_record(journal):  # H4
    harness = harness_with(journal, allow)
    with left_with(RunEnded) as left:
        async with harness.run(**(RUN | {"limits": limits(tool_calls=1)})) as run:
            await harness.tool(run, "look", say)
            await harness.tool(run, "look", say)
    assert left.value.code == "budget_exhausted"
    refusal = [s for s in journal.submissions if "reservation.rejected" in types(s.events)]
    assert types(refusal[0].events) == ["policy.decided", "reservation.rejected", "cancellation.signalled"]


async def test_a_denied_call_does_not_end_the_run_at_a_limit_that_it_would_have_passed(journal):
    harness = harness_with(journal, ToolRules(deny={"drop"}))
    async with harness.run(**(RUN | {"limits": limits(tool_calls=1)})) as run:
        await harness.tool(run, "look", say)
        with pytest.raises(ToolDenied):
            await harness.tool(run, "drop", say)
    assert only(journal.events("r"), "run.terminated").outcome == "SUCCESS"


async def test_on_an_ended_run_no_policy_is_asked_and_nothing_is_appended(journal):  # E6
    asked: list[str] = []

    def ask(request: ToolRequest) -> Decision:
        asked.append(request.name)
        return Decision.allow()

    harness = harness_with(journal, ask)
    async with harness.run(**RUN) as run:
        pass
    with pytest.raises(RunEnded):
        await harness.tool(run, "look", say)
    assert asked == []
    assert types(journal.events("r")) == ["run.started", "run.terminated"]


async def test_a_run_that_ends_while_a_policy_thinks_lets_nothing_through(journal, clock):  # H2
    harness = harness_over(journal, clock, policies=(lambda request: clock.advance(seconds=61) or Decision.deny("NO"),))
    with left_with(RunEnded) as left:
        async with harness.run(**RUN) as run:
            await harness.tool(run, "look", say)
    assert left.value.outcome == "TIMED_OUT"
    assert each(journal.events("r"), "policy.decided") == []


async def test_a_decision_that_cannot_be_recorded_fails_the_run_and_invokes_nothing(journal):  # E3, D1
    harness = harness_with(journal, deny, close_timeout_s=0.05)
    with left_with(LedgerUnavailable):
        async with harness.run(**RUN) as run:
            journal.holds = True
            call = asyncio.create_task(harness.tool(run, "look", say))
            await until(lambda: journal.waiting)
            journal.lose()
            journal.store_all()
            await call
    assert only(journal.events("r"), "run.terminated").reason == "LEDGER_UNAVAILABLE"


async def test_a_task_that_is_cancelled_while_a_policy_thinks_gets_its_own_error(journal):  # CASES 18
    thinking, thought = asyncio.Event(), asyncio.Event()

    async def think(request: ToolRequest) -> Decision:
        thinking.set()
        try:
            await asyncio.Event().wait()
        finally:
            thought.set()
        raise AssertionError("it waits for ever")

    harness = harness_with(journal, think)

    async def work() -> None:
        async with harness.run(**RUN) as run:
            await harness.tool(run, "look", say)

    task = asyncio.create_task(work())
    await thinking.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await thought.wait()
    assert types(journal.events("r")) == ["run.started", "cancellation.signalled", "run.terminated"]


RULES: dict[str, tuple[dict[str, Any], str, str | None, str]] = {
    "no rule": ({}, "look", None, "ALLOWED"),
    "listed": ({"allow": {"look"}}, "look", None, "ALLOWED"),
    "not listed": ({"allow": {"look"}}, "drop", None, "TOOL_NOT_ALLOWED"),
    "an empty list": ({"allow": ()}, "look", None, "TOOL_NOT_ALLOWED"),
    "denied": ({"deny": ["drop"]}, "drop", "read", "TOOL_DENIED"),
    "denied although listed": ({"allow": {"drop"}, "deny": {"drop"}}, "drop", None, "TOOL_DENIED"),
    "reading": ({"effects": {"read"}}, "look", "read", "ALLOWED"),
    "writing": ({"effects": {"read"}}, "look", "write", "EFFECT_NOT_ALLOWED"),
    "unknown is not reading": ({"effects": {"read"}}, "look", None, "EFFECT_UNKNOWN"),
    "unknown is neither": ({"effects": {"read", "write"}}, "look", None, "EFFECT_UNKNOWN"),
    "no effect at all": ({"effects": ()}, "look", "read", "EFFECT_NOT_ALLOWED"),
    "names are exact": ({"deny": {"drop"}}, "Drop", None, "ALLOWED"),
}


@pytest.mark.parametrize("case", RULES)
async def test_rules_let_through_what_none_of_them_is_against(journal, case):
    rules, tool, effect, reason = RULES[case]
    harness = harness_with(journal, ToolRules(name="rules", **rules))
    async with harness.run(**RUN) as run:
        with contextlib.suppress(ToolDenied):
            await harness.tool(run, tool, say, effect=effect)
            assert reason == "ALLOWED"
    decided = only(journal.events("r"), "policy.decided")
    assert (decided.policy, decided.allowed, decided.reason) == ("rules", reason == "ALLOWED", reason)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("allow", "look"), ("deny", "drop"), ("deny", None), ("allow", {""}), ("allow", {7}), ("effects", {"delete"})],
)
def test_rules_that_would_not_mean_what_they_say_are_refused(field, wrong):
    with pytest.raises(InvalidInput) as refused:
        ToolRules(**{field: wrong})
    assert refused.value.field == field


@pytest.mark.parametrize("wrong", ["READ", "delete", "", 7])
async def test_an_effect_is_read_or_write_and_nothing_else(harness, wrong):
    async with harness.run(**RUN) as run:
        with pytest.raises(InvalidInput) as refused:
            harness.tool(run, "look", say_on_thread, effect=wrong)
    assert refused.value.field == "effect"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"policies": deny}, "policies"),
        ({"policies": (deny,) * 17}, "policies"),
        ({"policies": ("deny",)}, "fn"),
        ({"observers": (7,)}, "fn"),
        ({"observers": {}}, "observers"),
        ({"hook_timeout_s": 0}, "hook_timeout_s"),
        ({"policies": (type("Odd", (), {"name": "\n", "__call__": deny})(),)}, "policies[0].name"),
    ],
)
def test_hooks_that_could_not_be_called_are_refused_before_any_run(journal, settings, field):
    with pytest.raises(InvalidInput) as refused:
        harness_over(journal, **settings)
    assert refused.value.field == field


@pytest.mark.parametrize(("allowed", "reason"), [(1, "OK"), ("no", "OK"), (True, "no free text"), (True, "")])
def test_a_decision_is_yes_or_no_with_a_code(allowed, reason):
    with pytest.raises(InvalidInput):
        Decision(allowed, reason)
