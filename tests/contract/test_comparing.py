"""Two runs compared: what they share, what differs, and of what nobody can tell."""

import pytest

from ledger import RunNotFound
from ledger.audit.comparing import comparing
from ledger.audit.comparing.comparing import compare
from tests.ledger.scripted import ScriptedRun

A, B = ("session-1", "run-1"), ("session-1", "run-2")


def record(ledger, *submissions):
    for submission in submissions:
        ledger.journal.submit(submission).result()


def signs(found):
    return [(entry.sign, (entry.a or entry.b).name) for entry in found.entries]


def told(found):
    return {
        (entry.a.name, difference.what): (difference.a, difference.b)
        for entry in found.entries
        for difference in entry.differences
    }


async def test_a_run_is_the_same_as_itself_and_as_one_that_did_the_same(ledger):
    for run_id in ("run-1", "run-2"):
        record(ledger, *ScriptedRun(run_id).whole())
    for other in (A, B):
        found = await compare(ledger.reader, A, other)
        assert (found.is_same, found.unknown_count, found.is_longest) == (True, 0, True)
        assert {entry.sign for entry in found.entries} == {"same"}


async def test_what_is_added_missing_or_different_is_told_of_its_boundary(ledger):
    one, two = ScriptedRun("run-1"), ScriptedRun("run-2")
    for run, extra in ((one, "only_here"), (two, "only_there")):
        step, tool, again = run.attempt("model", "planner"), run.attempt(ordinal=1), run.attempt("tool", extra)
        more = 3 if run is two else 0
        record(
            ledger,
            run.start(limits={"model_calls": 9 + more, "tool_calls": 9}),
            step.start("Which logs?"),
            step.succeed("these", usage={"input_tokens": 12 + more}),
            tool.start({"pattern": "OOM" if run is one else "XXL"}),
            tool.fail() if run is two else tool.succeed("connection refused"),
            again.start(),
            again.succeed(),
            run.end() if run is one else run.end("FAILED", "UNHANDLED_EXCEPTION"),
        )
    found = await compare(ledger.reader, A, B)
    assert signs(found) == [
        ("different", "planner"),
        ("different", "query_logs"),
        ("only_a", "only_here"),
        ("only_b", "only_there"),
        ("different", "run"),
    ]
    assert told(found) == {
        ("planner", "input tokens"): ("12", "15"),
        ("query_logs", "outcome"): ("success", "failed (transport)"),
        ("query_logs", "input"): ("17 bytes", "other 17 bytes"),
        ("run", "outcome"): ("success (completed)", "failed (unhandled exception)"),
    }
    assert [(each.what, each.a, each.b) for each in found.differences] == [
        ("status", "SUCCESS", "FAILED"),
        ("reason", "COMPLETED", "UNHANDLED_EXCEPTION"),
        ("limit model_calls", "9", "12"),
    ]
    assert ("input_tokens", 12, 15) in found.usage
    back = await compare(ledger.reader, B, A)
    assert [(each.what, each.b, each.a) for each in back.differences] == list(found.differences)
    assert (back.count("only_a"), back.count("only_b"), back.count("different")) == (1, 1, 3)
    assert not found.is_same


async def test_of_contents_that_cannot_be_read_nobody_can_tell_unless_their_size_differs(ledger):  # E10
    for run_id in ("run-1", "run-2"):
        run = ScriptedRun(run_id)
        same, other = run.attempt("model", "planner"), run.attempt("model", "writer")
        record(ledger, run.start(), same.start(f"salt of {run_id}", keep=False), same.succeed())
        record(ledger, other.start("short" if run_id == "run-1" else "much longer", keep=False), other.succeed())
    found = await compare(ledger.reader, A, B)
    assert [entry.cannot_tell for entry in found.entries] == [["input"], []]
    assert told(found) == {("writer", "input"): ("5 bytes", "11 bytes")}
    await ledger.erase(run=A, actor="dpo-1", reason="USER_REQUEST")
    await ledger.erase(run=B, actor="dpo-1", reason="USER_REQUEST")
    assert (await compare(ledger.reader, A, B)).unknown_count == 1  # of one salt and so of one digest are the others


async def test_contents_are_read_in_batches_of_a_bounded_size(ledger, monkeypatch):
    monkeypatch.setattr(comparing, "BATCH_BYTES", 25)
    for run_id in ("run-1", "run-2"):
        run = ScriptedRun(run_id)
        record(ledger, run.start())
        for number in range(4):
            tool = run.attempt(name=f"tool-{number}", ordinal=1)
            record(ledger, tool.start(f"{number} {run_id}"), tool.succeed(f"{number} {run_id[::-1]}"))
    asked = []

    class Watched:
        overview, events = ledger.reader.overview, ledger.reader.events

        async def contents(self, session_id, run_id, digests):
            asked.append(len(digests))
            return await ledger.reader.contents(session_id, run_id, digests)

    found = await compare(Watched(), A, B)
    assert (len(asked), set(asked)) == (16, {1})
    assert {entry.sign for entry in found.entries} == {"different"}


async def test_a_run_of_another_session_is_not_compared(ledger):  # R4, CASES 43
    record(ledger, ScriptedRun("run-1").start())
    for a, b in ((A, B), (("session-2", "run-1"), A)):
        with pytest.raises(RunNotFound):
            await compare(ledger.reader, a, b)
    with pytest.raises(RunNotFound):
        await ledger.reader.contents("session-2", "run-1", ["0" * 64])
