"""Which runs of a session belong together is told of that session alone (E11, R8)."""

from __future__ import annotations

import pytest

from ledger import RunNotFound
from ledger.reading.related import RELATED_MAX, Runs
from tests.ledger.scripted import ScriptedRun


def record(ledger, run_id, session_id="session-1", **said):
    run = ScriptedRun(run_id, session_id, writer_id=f"w-{run_id}")
    for submission in (run.start(**said), run.end()):
        ledger.journal.submit(submission).result()


async def test_parents_parts_and_continuations_are_found(ledger):
    record(ledger, "parent")
    record(ledger, "part-1", parent_run_id="parent")
    record(ledger, "part-2", parent_run_id="parent", continues_run_id="part-1")
    whole = await ledger.reader.related("session-1", "parent")
    assert [run_id for run_id, _ in whole.children.named] == ["part-1", "part-2"]
    assert (whole.children.count, whole.continued_by, whole.known) == (2, Runs((), 0), frozenset())
    assert (await ledger.reader.related("session-1", "part-2")).known == {"parent", "part-1"}
    assert [run_id for run_id, _ in (await ledger.reader.related("session-1", "part-1")).continued_by.named] == [
        "part-2"
    ]


async def test_runs_of_other_sessions_are_not_told_of(ledger):
    record(ledger, "parent")
    record(ledger, "elsewhere", "session-2", parent_run_id="parent")
    assert (await ledger.reader.related("session-1", "parent")).children.count == 0
    assert (await ledger.reader.related("session-2", "elsewhere")).known == frozenset()
    with pytest.raises(RunNotFound):  # CASES 43
        await ledger.reader.related("session-2", "parent")


async def test_of_many_parts_some_are_named_and_all_are_counted(ledger):
    record(ledger, "parent")
    for number in range(RELATED_MAX + 3):
        record(ledger, f"part-{number:02}", parent_run_id="parent")
    children = (await ledger.reader.related("session-1", "parent")).children
    assert (len(children.named), children.count) == (RELATED_MAX, RELATED_MAX + 3)
