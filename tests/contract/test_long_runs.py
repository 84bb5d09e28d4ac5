"""A long run is read page by page, in memory for one page (SPEC D14)."""

import gc
import tracemalloc

import pytest

from harness.errors import InvalidInput
from ledger import LedgerReader, RunNotFound
from tests.ledger.scripted import ScriptedRun

PAGE = 40
SHORT, LONG = 200, 2_000
AT_ONCE = 100


def record(ledger, run, tools):
    """Record so many tool calls, and a model step for every tenth."""
    ledger.journal.submit(run.start())
    for start in range(0, tools, AT_ONCE):
        events, contents = [], {}
        for number in range(start, start + AT_ONCE):
            attempts = [run.attempt(), *([run.attempt("model", "planner")] if number % 10 == 0 else [])]
            for attempt in attempts:
                for submission in (attempt.start(f"input {number}"), attempt.succeed(f"{number} " + "x" * 500)):
                    events += submission.events
                    contents |= {content.digest: content for content in submission.contents}
        last = ledger.journal.submit(run.submission(*events, contents=tuple(contents.values())))
    last.result()


async def pages(read, run, number):
    """Every page there is, one at a time; nothing is kept of it."""
    last = 0
    while page := await read(run.session_id, run.run_id, last, PAGE):
        yield page
        last = getattr(page[-1], number)


async def test_the_pages_of_a_run_are_its_trace(ledger):  # CASES 40
    run = ScriptedRun()
    record(ledger, run, SHORT)
    reader = ledger.reader
    trace = await reader.trace(run.session_id, run.run_id)
    tools = [tool async for page in pages(reader.tools, run, "invocation_no") for tool in page]
    steps = [step async for page in pages(reader.steps, run, "step_no") for step in page]
    assert (len(tools), len(steps)) == (SHORT, SHORT // 10)
    assert (tuple(tools), tuple(steps)) == (trace.tool_invocations, trace.agent_steps)
    events = [event async for page in pages(reader.events, run, "seq") for event in page]
    assert [event.seq for event in events] == list(range(1, trace.run.event_count + 1))
    overview = await reader.overview(run.session_id, run.run_id)
    assert (overview.run, overview.agent_steps, overview.tool_invocations) == (trace.run, (), ())


async def test_reading_a_long_run_needs_memory_for_one_page_and_not_for_the_run(ledger, database):  # CASES 40
    runs = {size: ScriptedRun(f"run-{size}") for size in (SHORT, LONG)}
    for size, run in runs.items():
        record(ledger, run, size)
    async with await LedgerReader.open(database.url) as reader:

        async def peak_bytes(run):
            await reader.overview(run.session_id, run.run_id)
            gc.collect()
            gc.freeze()  # of all that was there before nothing is looked at again
            tracemalloc.start()
            for read, number in ((reader.tools, "invocation_no"), (reader.steps, "step_no"), (reader.events, "seq")):
                async for page in pages(read, run, number):
                    del page
                    gc.collect()  # only what is held on to counts, and not what is about to go
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            gc.unfreeze()
            return peak

        await peak_bytes(runs[SHORT])  # what is made once, and remembered
        peaks = {size: [await peak_bytes(run) for _ in range(3)] for size, run in runs.items()}
        # Other threads only ever add to what is measured; so the least is nearest to what reading takes.
        assert min(peaks[LONG]) < 2 * min(peaks[SHORT])  # and is ten times as long


@pytest.mark.parametrize("read", ["tools", "steps", "overview"])
async def test_a_page_of_another_sessions_run_is_not_found(ledger, read):  # CASES 43
    ledger.journal.submit(ScriptedRun().start()).result()
    for keys in (("session-2", "run-1"), ("session-1", "run-2")):
        with pytest.raises(RunNotFound):
            await getattr(ledger.reader, read)(*keys)


@pytest.mark.parametrize("read", ["tools", "steps"])
@pytest.mark.parametrize("values", [(-1, 5), (0, 0), (0, 501), (True, 5)])
async def test_a_page_has_a_size_and_a_beginning_that_make_sense(ledger, read, values):
    with pytest.raises(InvalidInput):
        await getattr(ledger.reader, read)("session-1", "run-1", *values)
