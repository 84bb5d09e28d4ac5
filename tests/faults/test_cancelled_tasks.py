"""Tasks that are cancelled while they wait: an event is stored or it is not, and nothing stays open (CASES 37)."""

import asyncio
import random

from ledger import Ledger
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun


async def test_a_task_cancelled_in_the_middle_of_an_append_loses_nothing_that_was_submitted(tmp_path):
    moments = random.Random(5)
    async with await Ledger.open(blank_at(tmp_path / "runs.db")) as ledger:
        runs = [ScriptedRun(f"run-{number}") for number in range(60)]

        async def work(run):
            for submission in run.whole():
                await asyncio.wrap_future(ledger.journal.submit(submission))

        tasks = [asyncio.create_task(work(run)) for run in runs]
        for task in tasks:
            await asyncio.sleep(moments.random() * 0.004)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Whatever was submitted before this is stored before this.
        last = ScriptedRun("run-last")
        ledger.journal.submit(last.start()).result()
        for run in runs:
            stored = await ledger.reader.trace("session-1", run.run_id) if run.events_made else None
            assert (stored.run.event_count if stored else 0) == run.events_made


async def test_reads_that_are_cancelled_leave_the_reader_usable(tmp_path):
    moments = random.Random(6)
    async with await Ledger.open(blank_at(tmp_path / "runs.db")) as ledger:
        for submission in ScriptedRun().whole():
            ledger.journal.submit(submission).result()
        for _ in range(100):
            task = asyncio.create_task(ledger.reader.trace("session-1", "run-1"))
            await asyncio.sleep(moments.random() * 0.003)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert (await ledger.reader.trace("session-1", "run-1")).run.summary.status == "SUCCESS"
