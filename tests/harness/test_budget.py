"""Limits hold, and what is charged is exactly what was let through (SPEC H4, H4a, H9)."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from harness import (
    BudgetSnapshot,
    CancelReason,
    CapacityExceeded,
    Capture,
    CapturePolicy,
    FailureType,
    Harness,
    InvalidInput,
    Limits,
    OperationKind,
    RunContext,
    RunEnded,
    TokenUsage,
    TypedFailure,
    redaction,
)
from harness.content import MAX_CONTENT_BYTES
from tests.harness.fakes import PLENTY, HandJournal, each, harness_over, left_with, limits, only, race, say, types

NO_LIMITS: list[Any] = [0, -1, True, False, None, float("inf"), float("nan"), 1.0, "7", 2**53, [], {}]


@dataclass(frozen=True)
class Reply:
    usage: Any
    text: str = "ok"


def replying(usage: Any) -> Any:
    async def ask(run: RunContext) -> Reply:
        return Reply(usage)

    return ask


def is_consistent(snapshot: BudgetSnapshot) -> bool:
    per_tool = sum(used for name, used in snapshot.usage.items() if name.startswith("tool:"))
    return per_tool == snapshot.usage.get("tool_calls", 0)


@pytest.mark.parametrize("field", [name for name in PLENTY if name != "per_tool_default"])
@pytest.mark.parametrize("bad", NO_LIMITS, ids=repr)
def test_a_limit_is_a_positive_whole_number(field: str, bad: Any):  # H4, CASES 8
    with pytest.raises(InvalidInput) as refused:
        limits(**{field: bad})
    assert refused.value.field == f"limits.{field}"


@pytest.mark.parametrize("bad", [value for value in NO_LIMITS if value is not None], ids=repr)
def test_a_limit_of_one_tool_or_of_every_other_is_one_too(bad: Any):  # H4, CASES 8
    with pytest.raises(InvalidInput, match="per_tool_default"):
        limits(per_tool_default=bad)
    with pytest.raises(InvalidInput, match="grep"):
        limits(per_tool={"grep": bad})


@pytest.mark.parametrize("bad", [None, [("grep", 1)], {"": 1}, {"a\n": 1}, {7: 1}, {f"t{n}": 1 for n in range(51)}])
def test_per_tool_limits_are_a_mapping_from_names(bad: Any):  # CASES 8
    with pytest.raises(InvalidInput, match="per_tool"):
        limits(per_tool=bad)


@pytest.mark.parametrize("field", [name for name in PLENTY if name != "per_tool_default"])
def test_no_limit_has_a_default(field: str):  # H4
    with pytest.raises(TypeError, match=field):
        Limits(**{name: value for name, value in PLENTY.items() if name != field})


def test_limits_do_not_change_with_the_mapping_they_came_from():  # H4
    per_tool = {"grep": 1}
    made = limits(per_tool=per_tool)
    per_tool["grep"] = 99
    assert made.per_tool == {"grep": 1}
    assert hash(made) == hash(limits(per_tool={"grep": 1}))


async def test_a_tool_without_a_limit_is_refused_unless_there_is_a_default(
    harness: Harness, journal: HandJournal
):  # H4
    named = limits(per_tool={"grep": 1}, per_tool_default=None)
    async with harness.run(session_id="s", run_id="r", limits=named, timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="cat has no limit"):
            harness.tool(run, "cat", say)
        await harness.tool(run, "grep", say)
    assert types(journal.events("r")).count("attempt.started") == 1


@pytest.mark.parametrize(
    ("changed", "crossing", "resource"),
    [
        ({"model_calls": 2}, lambda harness, run: harness.model(run, "ask", say), "model_calls"),
        ({"tool_calls": 2}, lambda harness, run: harness.tool(run, "say", say), "tool_calls"),
        ({"per_tool": {"say": 2}}, lambda harness, run: harness.tool(run, "say", say), "tool:say"),
        ({"per_tool_default": 2}, lambda harness, run: harness.tool(run, "say", say), "tool:say"),
    ],
)
async def test_the_call_beyond_a_limit_is_not_reserved_and_ends_the_run(
    harness: Harness, journal: HandJournal, changed: dict[str, Any], crossing: Any, resource: str
):  # H4, CASES 7
    reasons: list[CancelReason] = []
    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(**changed), timeout_s=60) as run:
            run.cancellation.on_signal(reasons.append)
            for _ in range(2):
                await crossing(harness, run)
            before = run.budget.snapshot()
            with pytest.raises(RunEnded) as refused:
                await crossing(harness, run)
            assert run.budget.snapshot() == before
            assert is_consistent(before)
    assert (refused.value.resource, refused.value.used, refused.value.limit) == (resource, 2, 2)
    assert (ended.value.code, reasons) == ("budget_exhausted", [CancelReason.BUDGET_EXHAUSTED])
    rejected = only(journal.events("r"), "reservation.rejected")
    assert (rejected.resource, rejected.amount, rejected.used, rejected.limit) == (resource, 1, 2, 2)
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.resource, end.used, end.limit) == ("BUDGET_EXHAUSTED", resource, 2, 2)


async def test_a_block_that_swallows_the_refusal_is_still_no_success(harness: Harness, journal: HandJournal):  # CASES 7
    with left_with(RunEnded, match="BUDGET_EXHAUSTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(tool_calls=60), timeout_s=60) as run:
            for _ in range(61):
                try:
                    await harness.tool(run, "say", say)
                except RunEnded:
                    harness_refused = True
    assert harness_refused
    assert journal.state("r").outcome == "BUDGET_EXHAUSTED"


async def test_of_eight_calls_that_race_for_six_exactly_six_start(harness: Harness, journal: HandJournal):  # CASES 1
    started = []

    async def work(run: RunContext) -> None:
        started.append(run.attempt_id)
        await asyncio.sleep(0)

    with left_with(RunEnded, match="tool_calls 6 of 6"):
        async with harness.run(session_id="s", run_id="r", limits=limits(tool_calls=6), timeout_s=60) as run:
            calls = [harness.tool(run.branch(f"call.{n}"), "work", work) for n in range(8)]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(result) for result in results].count(RunEnded) == 2
    assert len(started) == 6
    assert journal.state("r").usage["tool_calls"] == 6


async def test_of_sixty_four_threads_one_gets_the_last_call_and_the_sums_agree_at_every_moment(
    journal: HandJournal,
):  # CASES 2
    harness = harness_over(journal)
    snapshots: list[BudgetSnapshot] = []
    is_over = threading.Event()

    def watch(run: RunContext) -> None:
        while not is_over.is_set():
            snapshots.append(run.budget.snapshot())

    with left_with(RunEnded, match="tool:rare 1 of 1"):
        allowed = limits(tool_calls=1000, per_tool={"rare": 1, "common": 1000})
        async with harness.run(session_id="s", run_id="r", limits=allowed, timeout_s=60) as run:
            watching = threading.Thread(target=watch, args=(run,))
            watching.start()
            for _ in range(50):
                await harness.tool(run, "common", say)

            def call(number: int) -> Any:
                return lambda: asyncio.run(_await(harness.tool(run.branch(f"thread.{number}"), "rare", say)))

            results = await asyncio.to_thread(race, [call(number) for number in range(64)])
            is_over.set()
            watching.join(timeout=30)
    assert [type(result) for result in results].count(dict) == 1
    assert [type(result) for result in results].count(RunEnded) == 63
    assert [snapshot for snapshot in snapshots if not is_consistent(snapshot)] == []
    usage = journal.state("r").usage
    assert (usage["tool:rare"], usage["tool:common"], usage["tool_calls"]) == (1, 50, 51)


async def _await(awaitable: Any) -> Any:
    return await awaitable


async def test_tokens_above_a_limit_are_recorded_as_they_were_and_refuse_the_next_step(
    harness: Harness, journal: HandJournal
):  # H4a, CASES 3
    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(output_tokens=100), timeout_s=60) as run:
            reply = await harness.model(run, "ask", replying(TokenUsage(7, 11_210)))
            assert reply.text == "ok"
            assert run.budget.snapshot().usage["output_tokens"] == 11_210
            assert run.cancellation.reason is CancelReason.BUDGET_EXHAUSTED
            with pytest.raises(RunEnded, match="output_tokens 11210 of 100"):
                await harness.tool(run, "say", say)
    assert (ended.value.outcome, ended.value.used, ended.value.limit) == ("BUDGET_EXHAUSTED", 11_210, 100)
    settled = only(journal.events("r"), "usage.settled")
    assert (settled.usage, settled.complete) == (
        {"input_tokens": 7, "output_tokens": 11_210, "total_tokens": 11_217},
        True,
    )
    assert types(journal.events("r")).count("attempt.started") == 1


async def test_tokens_at_a_limit_are_within_it(harness: Harness):  # H4a
    async with harness.run(session_id="s", limits=limits(total_tokens=10), timeout_s=60) as run:
        await harness.model(run, "ask", replying(TokenUsage(4, 6)))
        await harness.model(run, "ask", replying(TokenUsage(0, 0)))
        assert run.budget.snapshot().usage["total_tokens"] == 10


@pytest.mark.parametrize("usage", [None, {"input_tokens": 1}, "12", TokenUsage()], ids=repr)
async def test_usage_that_nobody_reported_is_unknown_and_not_zero(
    harness: Harness, journal: HandJournal, usage: Any
):  # H4a, CASES 9
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", replying(usage))
        assert run.budget.snapshot().usage_unknown_count == 1
        assert "input_tokens" not in run.budget.snapshot().usage
    settled = only(journal.events("r"), "usage.settled")
    assert (settled.usage, settled.complete) == (None, False)


async def test_half_known_usage_is_charged_as_far_as_it_is_known(harness: Harness, journal: HandJournal):  # H4a
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", replying(TokenUsage(input_tokens=5)))
    state = journal.state("r")
    assert (state.usage["input_tokens"], state.usage["total_tokens"], state.usage_unknown_count) == (5, 5, 1)
    assert "output_tokens" not in state.usage


async def test_zero_tokens_are_known_to_be_zero(harness: Harness, journal: HandJournal):  # CASES 8, 9
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", replying(TokenUsage(0, 0)))
    assert (journal.state("r").usage["input_tokens"], journal.state("r").usage_unknown_count) == (0, 0)


async def test_a_broken_model_call_has_unknown_usage(harness: Harness, journal: HandJournal):  # CASES 9
    async def break_off(run: RunContext) -> None:
        raise ConnectionError("the stream broke")

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(ConnectionError):
            await harness.model(run, "ask", break_off)
    assert journal.state("r").usage_unknown_count == 1


async def test_a_failed_attempt_that_reports_usage_is_charged(harness: Harness, journal: HandJournal):  # CASES 11
    async def malformed(run: RunContext) -> None:
        raise TypedFailure(FailureType.MALFORMED_REPLY, "no JSON", usage=TokenUsage(30, 4))

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypedFailure):
            await harness.model(run, "route", malformed, kind=OperationKind.INTENT_ROUTER)
    state = journal.state("r")
    assert (state.usage["model_calls"], state.usage["input_tokens"], state.usage["output_tokens"]) == (2, 60, 8)


async def test_twelve_attempts_that_end_at_once_in_threads_add_up_exactly(journal: HandJournal):  # CASES 12
    harness = harness_over(journal)
    barrier = threading.Barrier(12)

    def ask(run: RunContext, tokens: int) -> Reply:
        barrier.wait(timeout=30)
        return Reply(TokenUsage(tokens, 1))

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await asyncio.gather(
            *(harness.model(run.branch(f"{n}"), "ask", ask, args={"tokens": 1000 + n}) for n in range(12))
        )
    usage = journal.state("r").usage
    assert (usage["input_tokens"], usage["output_tokens"], usage["model_calls"]) == (12_066, 12, 12)


@pytest.mark.parametrize("bad", [-1, True, 1.0, "7", 10**12 + 1], ids=repr)
def test_a_token_count_is_a_whole_number_from_zero(bad: Any):
    with pytest.raises(InvalidInput, match=r"usage\.input_tokens"):
        TokenUsage(bad, 1)


async def test_a_nested_loop_over_the_same_run_counts_on(harness: Harness, journal: HandJournal):  # CASES 6
    async def agent(run: RunContext) -> None:
        for _ in range(3):
            await harness.tool(run, "say", say)

    with left_with(RunEnded, match="tool:say 5 of 5"):
        async with harness.run(session_id="s", run_id="r", limits=limits(per_tool={"say": 5}), timeout_s=60) as run:
            await harness.model(run, "agent", agent)
            await harness.model(run, "agent", agent)
    assert journal.state("r").usage["tool:say"] == 5


async def test_a_snapshot_cannot_be_used_to_change_the_usage(harness: Harness):  # H4
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "say", say)
        snapshot: Any = run.budget.snapshot()
        for figures in (snapshot.usage, snapshot.limits):
            with pytest.raises(TypeError):
                figures["tool_calls"] = 0
        assert run.budget.snapshot().usage["tool_calls"] == 1


async def test_the_counter_alone_rejects_and_leaves_usage_and_run_as_they_were(harness: Harness):  # H9
    async with harness.run(session_id="s", limits=limits(run_bytes=100), timeout_s=60) as run:
        run.capacity.reserve(60)
        run.capacity.reserve(40)
        with pytest.raises(CapacityExceeded) as refused:
            run.capacity.reserve(1)
        assert (refused.value.amount_bytes, refused.value.used_bytes, refused.value.limit_bytes) == (1, 100, 100)
        assert (run.capacity.used_bytes, run.capacity.limit_bytes) == (100, 100)
        assert run.lifecycle.is_running


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "7", None], ids=repr)
async def test_only_positive_bytes_are_reserved(harness: Harness, bad: Any):  # H9
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        for reserve in (run.capacity.reserve, lambda size: harness.reserve_bytes(run, size)):
            with pytest.raises(InvalidInput, match="size_bytes"):
                reserve(bad)
        assert run.capacity.used_bytes == 0


async def test_threads_that_race_for_bytes_never_pass_the_limit(harness: Harness):  # H9
    async with harness.run(session_id="s", limits=limits(run_bytes=100), timeout_s=60) as run:
        results = race([lambda: run.capacity.reserve(30)] * 16)
        assert results.count(None) == 3
        assert run.capacity.used_bytes == 90


async def test_crossing_the_byte_limit_through_the_harness_ends_the_run(harness: Harness, journal: HandJournal):  # H9
    with left_with(RunEnded, match="run_bytes 60 of 100"):
        async with harness.run(session_id="s", run_id="r", limits=limits(run_bytes=100), timeout_s=60) as run:
            harness.reserve_bytes(run, 60)
            harness.reserve_bytes(run, 41)
    rejected = only(journal.events("r"), "reservation.rejected")
    assert (rejected.resource, rejected.amount, rejected.used) == ("run_bytes", 41, 60)
    assert journal.state("r").usage["run_bytes"] == 60


async def test_a_result_too_big_is_returned_but_kept_as_size_and_digest_only(
    harness: Harness, journal: HandJournal
):  # H9
    with left_with(RunEnded, match="run_bytes"):
        async with harness.run(session_id="s", run_id="r", limits=limits(run_bytes=100), timeout_s=60) as run:
            assert len(await harness.tool(run, "cat", lambda run: "x" * 5_000)) == 5_000
            with pytest.raises(RunEnded, match="BUDGET_EXHAUSTED"):
                await harness.tool(run, "cat", say)
    ended = only(journal.events("r"), "attempt.succeeded")
    assert (ended.output_bytes, ended.output_stored) == (5_000, False)
    kept = journal.contents[ended.output_digest]
    assert (kept.size_bytes, kept.data) == (5_000, None)
    assert journal.state("r").usage["run_bytes"] <= 100


async def test_what_is_too_big_for_any_journal_is_kept_as_size_and_digest(
    harness: Harness, journal: HandJournal, monkeypatch: pytest.MonkeyPatch
):  # D10, CASES 26: and ends no run
    monkeypatch.setattr(redaction, "MAX_CONTENT_BYTES", 100)
    big = "x" * 101
    async with harness.run(session_id="s", run_id="r", query=big, limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "cat", say, args={"text": big})
        await harness.tool(run, "cat", say, args={"text": "small"})
        harness.answer(run, big)
    assert {kept.data for kept in journal.contents.values()} == {None, b'{"text":"small"}'}
    assert journal.state("r").usage["run_bytes"] == 2 * len('{"text":"small"}')
    recorded = only(journal.events("r"), "answer.recorded")
    assert (recorded.answer_bytes, recorded.answer_stored) == (101, False)


async def test_a_result_that_no_journal_would_keep_is_recorded_by_size_and_digest_and_the_run_goes_on(
    harness: Harness, journal: HandJournal
):  # CASES 26
    roomy = limits(run_bytes=10 * MAX_CONTENT_BYTES)
    async with harness.run(session_id="s", run_id="r", limits=roomy, timeout_s=60) as run:
        await harness.tool(run, "cat", lambda run: bytes(MAX_CONTENT_BYTES + 1))
    ended = only(journal.events("r"), "attempt.succeeded")
    assert (ended.output_bytes, ended.output_stored) == (MAX_CONTENT_BYTES + 1, False)
    assert journal.state("r").outcome == "SUCCESS"


async def test_arguments_too_big_are_refused_before_anything_is_invoked(harness: Harness, journal: HandJournal):  # H9
    with pytest.raises(RunEnded, match="run_bytes"):
        async with harness.run(session_id="s", run_id="r", limits=limits(run_bytes=100), timeout_s=60) as run:
            await harness.tool(run, "say", say, args={"text": "x" * 1_000})
    assert "attempt.started" not in types(journal.events("r"))


async def test_bytes_are_those_of_utf_8(harness: Harness, journal: HandJournal):  # H9
    async with harness.run(session_id="s", run_id="r", query="naïve 🙂", limits=limits(), timeout_s=60) as run:
        assert run.capacity.used_bytes == len("naïve 🙂".encode())


async def test_content_that_is_not_kept_costs_no_bytes(journal: HandJournal):  # H9, D10
    nothing = CapturePolicy(**dict.fromkeys(CapturePolicy.__dataclass_fields__, Capture.DIGEST_ONLY))
    harness = harness_over(journal, capture=nothing)
    async with harness.run(session_id="s", run_id="r", query="why?", limits=limits(run_bytes=1), timeout_s=60) as run:
        await harness.tool(run, "say", say, args={"text": "x" * 1_000})
        harness.answer(run, "because")
        assert run.capacity.used_bytes == 0
    assert [content.data for content in journal.contents.values()] == [None] * len(journal.contents)


async def test_model_input_is_digest_only_by_default(harness: Harness, journal: HandJournal):  # D10
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "ask", lambda run, prompt: "a reply", args={"prompt": "hello"})
    began = only(journal.events("r"), "attempt.started")
    assert (began.input_stored, journal.contents[began.input_digest].data) == (False, None)


async def test_a_late_model_reply_above_a_limit_ends_the_run(harness: Harness, journal: HandJournal):  # H4a, D4
    started, go_on = threading.Event(), threading.Event()

    def ask(run: RunContext) -> Reply:
        started.set()
        go_on.wait(timeout=30)
        return Reply(TokenUsage(1, 500))

    with left_with(RunEnded, match="output_tokens 500 of 100"):
        async with harness.run(session_id="s", run_id="r", limits=limits(output_tokens=100), timeout_s=60) as run:
            asking = asyncio.ensure_future(harness.model(run, "ask", ask))
            await asyncio.to_thread(started.wait, 30)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert run.budget.snapshot().usage_unknown_count == 1
            go_on.set()
            await asyncio.to_thread(_join_tool_threads)
    assert only(journal.events("r"), "usage.settled").complete
    assert journal.state("r").usage_unknown_count == 0
    assert each(journal.events("r"), "attempt.finished_late") != []


def _join_tool_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "harness-tool":
            thread.join(timeout=30)
