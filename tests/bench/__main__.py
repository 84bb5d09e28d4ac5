"""`make bench`: measure everything, print a table, keep it in `build/bench.json`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.bench import (
    appends,
    boundary,
    burst,
    following,
    idle,
    importing,
    in_memory,
    postgres,
    queue,
    trace,
    whole_ledger,
)
from tests.bench.figure import Figure, show, write

REPORT = Path("build/bench.json")
MEASUREMENTS = (
    importing,
    idle,
    in_memory,
    queue,
    boundary,
    appends,
    burst,
    trace,
    whole_ledger,
    postgres,
    following,
)


async def measure() -> list[Figure]:
    """Every figure, one measurement after the other."""
    figures: list[Figure] = []
    # Beside the project, so that the disk is the one that ledgers are kept on and not one in memory.
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=REPORT.parent) as folder:
        for measurement in MEASUREMENTS:
            print(f"measuring: {measurement.__name__.rpartition('.')[2]}", file=sys.stderr, flush=True)
            figures += await measurement.measure(Path(folder))
    return figures


if __name__ == "__main__":
    measured = asyncio.run(measure())
    show(measured)
    write(measured, REPORT)
    print(f"written to {REPORT}")
    sys.exit(1 if any(row.met is False for row in measured) else 0)
