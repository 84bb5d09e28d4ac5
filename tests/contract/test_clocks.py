"""Clocks that step: order is by sequence, and no duration is negative (SPEC D8)."""

import pytest

from harness.clock import ManualClock
from ledger.verifying import verify
from tests.ledger.scripted import EPOCH_US, ScriptedRun

HOUR_US = 3_600_000_000


@pytest.mark.parametrize("step_us", [-HOUR_US, HOUR_US, -EPOCH_US // 2], ids=["back", "forth", "back by decades"])
async def test_a_clock_that_steps_in_the_middle_of_a_run_changes_no_order_and_no_duration(
    database, step_us
):  # CASES 21, 28
    clock = ManualClock(wall_us=EPOCH_US)
    async with await database.open(wall_clock=clock) as ledger:
        run = ScriptedRun()
        submissions = list(run.whole())
        for submission in submissions[:5]:
            ledger.journal.submit(submission).result()
        clock.wall_us += step_us
        events = [
            event.model_copy(update={"occurred_us": event.occurred_us + step_us})
            for submission in submissions[5:]
            for event in submission.events
        ]
        contents = {content.digest: content for one in submissions[5:] for content in one.contents}
        ledger.journal.submit(run.submission(*events, contents=tuple(contents.values()))).result()
        stored = await ledger.reader.events("session-1", "run-1")
        assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
        assert (stored[-1].recorded_us > stored[0].recorded_us) == (step_us > 0)
        trace = await ledger.reader.trace("session-1", "run-1")
        assert trace.run.summary.status == "SUCCESS"
        durations = [row.duration_us for row in (*trace.agent_steps, *trace.tool_invocations)]
        assert min(durations) >= 0
        assert trace.run.elapsed_us > 0
        assert trace.run.summary.updated_us >= trace.run.started_us
        assert trace.chat_session.last_active_us >= trace.chat_session.created_us
        assert (await ledger.rebuild()).is_clean
    assert (await verify(database.url)).findings == ()
