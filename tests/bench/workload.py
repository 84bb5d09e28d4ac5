"""Runs that a benchmark can make any number of."""

from __future__ import annotations

from harness import Harness, Limits, RunContext
from harness.block.run import RunBlock

PLENTY = 1_000_000_000
EVENTS_PER_BOUNDARY = 3
"""Reservation, start and end of an attempt."""
EVENTS_PER_RUN = 2
"""Start and termination."""


def no_limit_in_the_way() -> Limits:
    """Limits that no benchmark reaches."""
    return Limits(
        model_calls=PLENTY,
        tool_calls=PLENTY,
        input_tokens=PLENTY,
        output_tokens=PLENTY,
        total_tokens=PLENTY,
        run_bytes=PLENTY,
        per_tool_default=PLENTY,
    )


async def echo(run: RunContext, *, number: int) -> int:
    """A tool that costs nothing."""
    return number


def open_run(harness: Harness) -> RunBlock:
    """A run that only the benchmark ends."""
    return harness.run(session_id="bench", limits=no_limit_in_the_way(), timeout_s=3600)


async def cross(harness: Harness, run: RunContext, numbers: range) -> None:
    """So many boundaries, one after the other."""
    for number in numbers:
        await harness.tool(run, "echo", echo, args={"number": number})


async def run_of(harness: Harness, session_id: str, *, events: int) -> str:
    """Make a run of about so many events; its id."""
    async with harness.run(
        session_id=session_id, query="How is the disk?", limits=no_limit_in_the_way(), timeout_s=3600
    ) as run:
        await cross(harness, run, range((events - EVENTS_PER_RUN) // EVENTS_PER_BOUNDARY))
    return run.run_id
