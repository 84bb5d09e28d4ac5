"""Whatever is logged, at the lowest level of everything, it is nothing that a run holds (SPEC E10)."""

import logging

import pytest

from harness import CancelReason, Harness, Limits, RunEnded
from ledger import LedgerReader
from ledger.verifying import verify

SECRET = "hunter2"
LIMITS = Limits(
    model_calls=5,
    tool_calls=5,
    per_tool_default=5,
    input_tokens=99,
    output_tokens=99,
    total_tokens=99,
    run_bytes=99_999,
)


async def fail(run, *, password):
    raise ValueError(f"{password} is wrong")


async def answer(run, *, prompt):
    return f"you said: {prompt}"


async def test_no_content_reaches_a_log_whatever_is_logged(ledger, database, caplog):
    for name in ("", "sqlalchemy", "sqlalchemy.engine", "aiosqlite", "asyncio"):
        caplog.set_level(logging.DEBUG, name)
    harness = Harness(journal=ledger.journal)
    with pytest.raises(ValueError, match=SECRET):
        await cross(harness)
    with pytest.raises(RunEnded):
        await cancel(harness)
    async with await LedgerReader.open(database.url) as reader:
        found = (await reader.recent_runs()).rows[-1]
        trace = await reader.trace("s-1", found.run_id)
    await ledger.record_feedback("s-1", found.run_id, useful=True, comment=f"no, it is not {SECRET}")
    assert SECRET in trace.run.summary.query
    await ledger.rebuild()
    assert (await verify(database.url)).is_right
    lines = [logging.Formatter().format(record) for record in caplog.records]
    assert lines
    assert [line for line in lines if SECRET in line] == []


async def cross(harness):
    async with harness.run(session_id="s-1", query=f"is it {SECRET}?", limits=LIMITS, timeout_s=60) as run:
        await harness.model(run, "planner", answer, args={"prompt": f"try {SECRET}"})
        await harness.tool(run, "login", fail, args={"password": SECRET})


async def cancel(harness):
    async with harness.run(session_id="s-2", limits=LIMITS, timeout_s=60) as run:
        run.cancellation.on_signal(fail_to_clean_up)
        run.cancellation.signal(CancelReason.USER_REQUESTED)


def fail_to_clean_up(*_):
    raise OSError(f"cannot close the session of {SECRET}")
