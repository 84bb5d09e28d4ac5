"""The record that is passed to every boundary (SPEC H1)."""

import asyncio
import dataclasses
import threading
from typing import Any

import pytest

from harness import Harness, InvalidInput, RunContext
from harness.events import RunStarted
from tests.harness.fakes import HandJournal, limits, only, race, say

HANDLES = ("deadline", "cancellation", "budget", "capacity", "retry_policies", "lifecycle")
UNSAFE_IDS = ["", " ", "\t\n", "x" * 129, "a/b", "a:b", "é", "a b", ".hidden", "-dash", "a\n", "a\x00", 7, b"run"]


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(RunContext)])
async def test_no_field_of_a_run_can_be_set(harness: Harness, field: str):  # H1
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(run, field, None)


async def test_a_run_has_slots_and_so_takes_no_further_attribute(harness: Harness):  # H1
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        assert not hasattr(run, "__dict__")


async def test_a_run_can_be_a_key_of_a_mapping(harness: Harness):  # H1
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        assert {run: 1}[run] == 1


@pytest.mark.parametrize("where", ["thread", "task"])
async def test_a_tool_elsewhere_sees_the_same_ids_and_the_same_handles(harness: Harness, where: str):  # H1a
    seen: dict[str, Any] = {}

    def look(run: RunContext) -> None:
        seen.update(run=run, thread=threading.get_ident())

    async def look_in_task(run: RunContext) -> None:
        await asyncio.create_task(asyncio.to_thread(look, run))

    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "look", look if where == "thread" else look_in_task)
    inner = seen["run"]
    assert seen["thread"] != threading.get_ident()
    assert (inner.session_id, inner.run_id) == (run.session_id, run.run_id)
    assert [name for name in HANDLES if getattr(inner, name) is not getattr(run, name)] == []


async def test_a_branch_has_the_same_handles_on_a_path_of_its_own(harness: Harness):  # H1a, D7
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        branch = run.branch("planner.1")
    assert branch.path == ("planner.1",)
    assert [name for name in HANDLES if getattr(branch, name) is not getattr(run, name)] == []


@pytest.mark.parametrize(
    ("field", "bad"),
    [("session_id", None)]
    + [(field, bad) for field in ("session_id", "run_id", "parent_run_id", "continues_run_id") for bad in UNSAFE_IDS],
    ids=repr,
)
def test_an_unsafe_id_is_refused_by_name_and_nothing_is_published(
    harness: Harness, journal: HandJournal, field: str, bad: Any
):  # H1b
    ids: dict[str, Any] = {"session_id": "s"} | {field: bad}
    with pytest.raises(InvalidInput) as refused:
        harness.run(limits=limits(), timeout_s=60, **ids)
    assert (refused.value.field, refused.value.code) == (field, "invalid_input")
    assert journal.submissions == []


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("limits", None),
        ("limits", {"model_calls": 1}),
        ("timeout_s", 0),
        ("timeout_s", -1),
        ("timeout_s", float("inf")),
        ("timeout_s", float("nan")),
        ("timeout_s", True),
        ("timeout_s", None),
        ("timeout_s", "60"),
        ("policies", {}),
        ("agent", ""),
        ("agent", "@1.4"),
        ("flow", "two words"),
        ("actor", "Zoë"),
        ("environment", " "),
        ("labels", ["a"]),
        ("labels", {"": "x"}),
        ("labels", {str(number): "x" for number in range(65)}),
        ("labels", {str(number): "x" * 256 for number in range(60)}),
        ("traceparent", "\n"),
        ("query", "x" * 1_000_001),
    ],
    ids=repr,
)
def test_a_bad_argument_of_a_run_is_refused_by_name(
    harness: Harness, journal: HandJournal, field: str, bad: Any
):  # H1b
    usual: dict[str, Any] = {"session_id": "s", "limits": limits(), "timeout_s": 60}
    with pytest.raises(InvalidInput) as refused:
        harness.run(**(usual | {field: bad}))
    assert refused.value.field == field
    assert journal.submissions == []


async def test_the_beginning_says_who_runs_what_within_which_limits(harness: Harness, journal: HandJournal):  # E11
    async with harness.run(
        session_id="s",
        run_id="r",
        query="why?",
        limits=limits(model_calls=3, per_tool={"grep": 2}),
        timeout_s=1.5,
        agent="triage@1.4",
        flow="CHAT_GRAPH",
        actor="u-17",
        environment="test",
        labels={"team": "ops"},
        parent_run_id="p",
        continues_run_id="c",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ):
        pass
    began = only(journal.events("r"), "run.started")
    assert isinstance(began, RunStarted)
    assert (began.agent, began.agent_version, began.flow, began.actor) == ("triage", "1.4", "CHAT_GRAPH", "u-17")
    assert (began.environment, began.labels, began.timeout_us) == ("test", {"team": "ops"}, 1_500_000)
    assert (began.parent_run_id, began.continues_run_id, began.query_bytes) == ("p", "c", 4)
    assert (began.limits["model_calls"], began.limits["tool:grep"], began.limits["tool_default"]) == (3, 2, 100)
    assert journal.contents[began.query_digest or ""].data == b"why?"


async def test_a_run_without_an_id_gets_one_of_its_own(harness: Harness):
    ids = []
    for _ in range(2):
        async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
            ids.append(run.run_id)
    assert len(set(ids)) == 2


async def test_an_id_that_was_used_is_refused_whoever_used_it(harness: Harness, journal: HandJournal):  # CASES 42
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60):
        for session_id in ("s", "other"):
            with pytest.raises(InvalidInput, match="was used before"):
                await harness.run(session_id=session_id, run_id="r", limits=limits(), timeout_s=60).__aenter__()
    with pytest.raises(InvalidInput, match="was used before"):
        await harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60).__aenter__()
    assert [event.type for event in journal.events("r")] == ["run.started", "run.terminated"]


async def test_a_block_is_entered_once(harness: Harness):
    opened = harness.run(session_id="s", limits=limits(), timeout_s=60)
    async with opened:
        with pytest.raises(InvalidInput, match="was entered before"):
            await opened.__aenter__()


async def test_two_runs_of_one_harness_share_no_count(harness: Harness):  # CASES 4
    async with (
        harness.run(session_id="s", limits=limits(), timeout_s=60) as one,
        harness.run(session_id="s", limits=limits(), timeout_s=60) as other,
    ):
        for run, calls in ((one, 3), (other, 1)):
            for _ in range(calls):
                await harness.tool(run, "say", say)
        assert [run.budget.snapshot().usage["tool_calls"] for run in (one, other)] == [3, 1]


async def test_a_harness_takes_no_settings_it_does_not_know(journal: HandJournal):
    with pytest.raises(TypeError):
        Harness(journal, retries=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["close_timeout_s", "permit_timeout_s"])
def test_a_time_out_of_the_harness_is_checked(journal: HandJournal, name: str):
    wrong: dict[str, Any] = {name: 0}
    with pytest.raises(InvalidInput, match=name):
        Harness(journal, **wrong)


async def test_ordinals_are_given_once_even_to_many_threads(harness: Harness):  # D7
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        given = race([lambda: run.next_ordinal("tool", "say")] * 32)
    assert sorted(map(int, map(str, given))) == list(range(1, 33))
