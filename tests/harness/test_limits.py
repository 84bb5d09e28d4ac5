"""What limits may be, which of them only observe, and what repeats too often (SPEC H4, D13)."""

import asyncio
import enum
from typing import Any

import pytest

from harness import Harness, InvalidInput, Limits, RunContext, RunEnded, ScopeLimits, TokenUsage
from harness.budget import repeats
from harness.content import encode_content
from tests.harness.fakes import (
    PLENTY,
    HandJournal,
    Reply,
    each,
    harness_over,
    left_with,
    limits,
    only,
    race,
    say,
    types,
)

NO_FIGURES: list[Any] = [0, -1, True, False, float("inf"), float("nan"), 1.0, "7", 2**53, [], {}]


async def ask(run: RunContext, tokens: int = 0) -> Reply:
    return Reply(TokenUsage(tokens, 0))


@pytest.mark.parametrize("field", ["cost_micros", "repeated_calls"])
@pytest.mark.parametrize("bad", NO_FIGURES, ids=repr)
def test_an_optional_limit_that_is_given_is_a_positive_whole_number(field: str, bad: Any):  # H4, CASES 8
    with pytest.raises(InvalidInput, match=f"limits.{field} must be a whole number from 1 to 9007199254740991"):
        limits(**{field: bad})


@pytest.mark.parametrize("field", ["cost_micros", "repeated_calls", "per_tool_default"])
def test_an_optional_limit_of_none_is_no_limit_and_never_zero(field: str):  # CASES 8
    assert limits(**{field: None}).as_map().get(field) is None
    with pytest.raises(InvalidInput, match=f"limits.{field} .* not 0"):
        limits(**{field: 0})


@pytest.mark.parametrize("bad", NO_FIGURES, ids=repr)
@pytest.mark.parametrize("field", [name for name in PLENTY if name != "per_tool_default"])
def test_a_limit_of_a_scope_is_one_too(field: str, bad: Any):  # H4, D5, CASES 8
    with pytest.raises(InvalidInput, match=f"limits.{field} must be"):
        ScopeLimits(**{field: bad})
    nothing: dict[str, Any] = {field: None}
    assert ScopeLimits(**nothing).as_map() == {}


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (None, "not NoneType"),
        ("model_calls", "not str"),
        ({"model_calls": 1}, "not dict"),
        (7, "not int"),
        ({7}, "not int"),
        ({"cost_micros"}, "'cost_micros', for which there is no limit"),
        ({"per_tool"}, "for which there is no limit"),
        ({"tool:cat"}, "for which there is no limit"),
        ({"everything"}, "for which there is no limit"),
    ],
)
def test_only_limits_that_there_are_can_be_observed(bad: Any, problem: str):  # D13
    with pytest.raises(InvalidInput, match=problem) as refused:
        limits(observe=bad)
    assert refused.value.field == "limits.observe"


def test_an_observed_limit_is_told_apart_in_the_map():  # D13
    made = limits(per_tool={"grep": 2}, observe={"model_calls", "tool:grep", "tool_default"})
    flat = made.as_map()
    assert (flat["observe:model_calls"], flat["observe:tool:grep"], flat["observe:tool_default"]) == (100, 2, 100)
    assert {"model_calls", "tool:grep", "tool_default"}.isdisjoint(flat)
    assert flat["tool_calls"] == 100
    assert hash(made) == hash(limits(per_tool={"grep": 2}, observe=["tool_default", "tool:grep", "model_calls"]))


def test_limits_are_made_again_of_their_map():
    for made in (
        limits(),
        limits(per_tool_default=None, cost_micros=7, repeated_calls=2),
        limits(per_tool={"grep": 2, "tool:x": 3}, observe={"model_calls", "tool:grep", "tool_default"}),
    ):
        assert Limits.from_map(made.as_map()) == made


@pytest.mark.parametrize(
    ("changed", "resource", "crossing"),
    [
        ({"model_calls": 1}, "model_calls", lambda harness, run: harness.model(run, "ask", ask)),
        ({"tool_calls": 1}, "tool_calls", lambda harness, run: harness.tool(run, "say", say)),
        ({"per_tool": {"say": 1}}, "tool:say", lambda harness, run: harness.tool(run, "say", say)),
        ({"per_tool_default": 1}, "tool_default", lambda harness, run: harness.tool(run, "say", say)),
        ({"repeated_calls": 1}, "repeated_calls", lambda harness, run: harness.tool(run, "say", say)),
    ],
)
async def test_an_observed_limit_lets_the_work_through_and_records_what_it_would_have_refused(
    harness: Harness, journal: HandJournal, changed: dict[str, Any], resource: str, crossing: Any
):  # D13
    observing = limits(**changed, observe={resource})
    async with harness.run(session_id="s", run_id="r", limits=observing, timeout_s=60) as run:
        await crossing(harness, run)
        assert "limit.would_reject" not in types(journal.events("r"))
        await crossing(harness, run)
    would = only(journal.events("r"), "limit.would_reject")
    assert (would.amount, would.used, would.limit) == (1, 1, 1)
    second = each(journal.events("r"), "attempt.started")[1]
    assert (would.attempt_id, would.boundary) == (second.attempt_id, second.boundary)
    (start,) = [each for each in journal.submissions if would in each.events]
    assert types(start.events) == ["reservation.granted", "limit.would_reject", "attempt.started"]
    assert journal.state("r").outcome == "SUCCESS"


async def test_usage_that_has_passed_an_observed_limit_is_told_at_every_boundary_and_the_run_goes_on(
    harness: Harness, journal: HandJournal
):  # D13, H4a
    async with harness.run(
        session_id="s", run_id="r", limits=limits(input_tokens=10, observe={"input_tokens"}), timeout_s=60
    ) as run:
        await harness.model(run, "ask", ask, args={"tokens": 10})
        await harness.tool(run, "say", say)
        await harness.model(run, "ask", ask, args={"tokens": 1})
        await harness.tool(run, "say", say)
        await harness.guard(run, "check", say)
    would = each(journal.events("r"), "limit.would_reject")
    assert [(event.kind, event.resource, event.amount, event.used, event.limit) for event in would] == [
        ("tool", "input_tokens", 0, 11, 10),
        ("guard", "input_tokens", 0, 11, 10),
    ]


async def test_calls_past_an_observed_limit_are_told_where_they_are_made_and_at_no_other_boundary(
    harness: Harness, journal: HandJournal
):  # D13
    observing = limits(
        per_tool={"say": 1}, tool_calls=1, model_calls=1, observe={"tool:say", "tool_calls", "model_calls"}
    )
    async with harness.run(session_id="s", run_id="r", limits=observing, timeout_s=60) as run:
        for _ in range(2):
            await harness.tool(run, "say", say)
        await harness.guard(run, "check", say)
        for _ in range(2):
            await harness.model(run, "ask", ask)
    would = each(journal.events("r"), "limit.would_reject")
    assert [(event.kind, event.resource) for event in would] == [
        ("tool", "tool_calls"),
        ("tool", "tool:say"),
        ("model", "model_calls"),
    ]


async def test_an_observed_limit_of_one_tool_is_not_replaced_by_the_enforced_default(
    harness: Harness, journal: HandJournal
):  # D13
    observing = limits(per_tool={"say": 1}, per_tool_default=1, observe={"tool:say"})
    with left_with(RunEnded, match="tool:other 1 of 1"):
        async with harness.run(session_id="s", run_id="r", limits=observing, timeout_s=60) as run:
            for _ in range(3):
                await harness.tool(run, "say", say)
            await harness.tool(run, "other", say)
            await harness.tool(run, "other", say)
    assert journal.state("r").usage["tool:say"] == 3


async def test_an_enforced_limit_ends_the_run_beside_an_observed_one(harness: Harness, journal: HandJournal):  # D13
    observing = limits(tool_calls=2, per_tool={"say": 1}, observe={"tool:say"})
    with left_with(RunEnded, match="tool_calls 2 of 2"):
        async with harness.run(session_id="s", run_id="r", limits=observing, timeout_s=60) as run:
            for _ in range(3):
                await harness.tool(run, "say", say)
    assert len(each(journal.events("r"), "limit.would_reject")) == 1


async def test_observed_bytes_are_let_through_the_counter_the_harness_and_the_capture(
    harness: Harness, journal: HandJournal
):  # D13, H9
    async with harness.run(
        session_id="s", run_id="r", limits=limits(run_bytes=10, observe={"run_bytes"}), timeout_s=60
    ) as run:
        run.capacity.reserve(11)
        harness.reserve_bytes(run, 7)
        await harness.tool(run, "cat", lambda run: "x" * 50)
        assert (run.capacity.used_bytes, run.capacity.limit_bytes) == (11 + 7 + 2 + 50, 10)
    would = each(journal.events("r"), "limit.would_reject")
    assert [(event.name, event.amount, event.used) for event in would] == [
        ("capture", 11, 0),
        ("capture", 7, 11),
        ("cat", 2, 18),
    ]
    assert only(journal.events("r"), "attempt.succeeded").output_stored


async def test_a_snapshot_shows_both_kinds_of_limit(harness: Harness):  # D13
    observing = limits(model_calls=3, observe={"model_calls"})
    async with harness.run(session_id="s", limits=observing, timeout_s=60) as run:
        snapshot: Any = run.budget.snapshot()
        assert snapshot.observed == {"model_calls": 3}
        assert "model_calls" not in snapshot.limits
        assert snapshot.limits["tool_calls"] == 100
        with pytest.raises(TypeError):
            snapshot.observed["model_calls"] = 0


async def test_the_same_call_once_too_often_is_not_invoked_and_ends_the_run(
    harness: Harness, journal: HandJournal
):  # H4: no loop of an agent goes on for ever
    with left_with(RunEnded) as ended:
        async with harness.run(session_id="s", run_id="r", limits=limits(repeated_calls=2), timeout_s=60) as run:
            for pattern in ("OOM", "disk", "OOM"):
                await harness.tool(run, "grep", say, args={"pattern": pattern})
            await harness.tool(run, "cat", say, args={"pattern": "OOM"})
            await harness.tool(run.branch("b"), "grep", say, args={"pattern": "OOM"})
    assert (ended.value.code, ended.value.resource) == ("budget_exhausted", "repeat:grep")
    assert (ended.value.used, ended.value.limit) == (2, 2)
    assert types(journal.events("r")).count("attempt.started") == 4
    assert only(journal.events("r"), "reservation.rejected").resource == "repeat:grep"


async def test_of_many_threads_that_make_the_same_call_as_many_get_through_as_may(journal: HandJournal):  # CASES 2
    harness = harness_over(journal)
    with left_with(RunEnded, match="repeat:say 3 of 3"):
        async with harness.run(session_id="s", run_id="r", limits=limits(repeated_calls=3), timeout_s=60) as run:

            def call(number: int) -> Any:
                async def work() -> Any:
                    return await harness.tool(run.branch(f"{number}"), "say", say, args={"n": 1})

                return lambda: asyncio.run(work())

            results = await asyncio.to_thread(race, [call(number) for number in range(16)])
    assert [type(result) for result in results].count(dict) == 3
    assert journal.state("r").usage["tool:say"] == 3


async def test_a_call_is_the_same_in_whatever_order_its_arguments_are_named(harness: Harness):
    async def call_twice() -> None:
        async with harness.run(session_id="s", limits=limits(repeated_calls=1), timeout_s=60) as run:
            await harness.tool(run, "say", say, args={"n": 1, "m": 2})
            await harness.tool(run, "say", say, args={"m": 2, "n": 1})

    with pytest.raises(RunEnded) as caught:
        await call_twice()
    assert (caught.value.resource, caught.value.used, caught.value.limit) == ("repeat:say", 1, 1)


async def test_two_runs_do_not_share_their_counts_of_repeated_calls(harness: Harness):  # CASES 4
    for _ in range(3):
        async with harness.run(session_id="s", limits=limits(repeated_calls=1), timeout_s=60) as run:
            await harness.tool(run, "say", say)


@pytest.mark.parametrize(
    ("changed", "used"),
    [({}, 0), ({"repeated_calls": 5}, 1), ({"repeated_calls": 5, "observe": {"repeated_calls"}}, 1)],
    ids=["unlimited", "limited", "observed"],
)
async def test_calls_are_remembered_where_repeating_them_has_a_limit_and_nowhere_else(
    harness: Harness, changed: dict[str, Any], used: int
):
    async with harness.run(session_id="s", limits=limits(**changed), timeout_s=60) as run:
        await harness.tool(run, "grep", say, args={"pattern": "OOM"})
        assert run.live.repeats.of(("grep", encode_content({"pattern": "OOM"}).fingerprint)) == used


def test_only_so_many_distinct_calls_are_remembered_and_the_latest_of_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(repeats, "MAX_CALLS_REMEMBERED", 2)
    counts = repeats.Repeats()
    for fingerprint in (b"a", b"b", b"a", b"c"):
        counts.add(("grep", fingerprint))
    assert [counts.of(("grep", fingerprint)) for fingerprint in (b"a", b"b", b"c")] == [2, 0, 1]


def test_limits_of_a_run_can_be_those_of_a_scope():  # D5: a scope has the same resources
    assert isinstance(limits(), ScopeLimits)
    assert {*Limits.__dataclass_fields__} == {*ScopeLimits.__dataclass_fields__}


class Tools(str, enum.Enum):  # noqa: UP042 - a `StrEnum` looks right by itself
    """As applications spell their names; `f"{Tools.LOOK}"` is `Tools.LOOK`."""

    LOOK = "look"


@pytest.mark.parametrize(("named", "called"), [(Tools.LOOK, "look"), ("look", Tools.LOOK), (Tools.LOOK, Tools.LOOK)])
async def test_a_tool_has_one_limit_however_its_name_is_spelled(journal, harness, named, called):  # H4
    with left_with(RunEnded, match="tool:look 1 of 1"):
        async with harness.run(session_id="s", run_id="r", limits=limits(per_tool={named: 1}), timeout_s=60) as run:
            for _ in range(2):
                await harness.tool(run, called, say)
    assert only(journal.events("r"), "run.started").limits["tool:look"] == 1
