"""A page of a run that is too long to be read as a whole: its rows with their contents, and a line of every other."""

import pytest

from ledger import RunNotFound
from ledger.reading.parts import RunPart
from tests.ledger.scripted import ScriptedRun
from tests.ledger.test_past import eventful


async def test_a_page_has_its_rows_with_contents_and_a_line_of_every_other(database):  # CASES 40
    run = ScriptedRun("run-1", "session-1")
    async with await database.open() as ledger:
        for submission in eventful(run):
            ledger.journal.submit(submission).result()
        whole = await ledger.reader.trace("session-1", "run-1")
        part = await ledger.reader.part("session-1", "run-1", tools_after=1, limit=1)
        assert part.trace.tool_invocations == whole.tool_invocations[1:2]
        assert part.trace.agent_steps == whole.agent_steps
        assert (part.trace.run, part.trace.answer) == (whole.run, whole.answer)
        assert [(work.kind, work.number, work.name, work.status) for work in part.works] == [
            (work.kind, work.number, work.name, work.status) for work in RunPart.of(whole).works
        ]
        with pytest.raises(RunNotFound):
            await ledger.reader.part("session-2", "run-1")


async def test_a_short_run_is_read_with_its_events_at_once_and_a_longer_one_is_left_to_its_parts(database):  # R4
    run = ScriptedRun("run-1", "session-1")
    async with await database.open() as ledger:
        for submission in eventful(run):
            ledger.journal.submit(submission).result()
        trace, events = (
            await ledger.reader.trace("session-1", "run-1"),
            await ledger.reader.events("session-1", "run-1"),
        )
        assert await ledger.reader.whole("session-1", "run-1", len(events)) == (trace, events)
        assert await ledger.reader.whole("session-1", "run-1", len(events) - 1) is None
        with pytest.raises(RunNotFound):
            await ledger.reader.whole("session-2", "run-1", len(events))
