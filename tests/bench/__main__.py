"""`make bench`: measure everything, print a table, keep it in `build/bench.json`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from tests.bench import (
    appends,
    big_ledger,
    big_verify,
    boundary,
    bundles,
    burst,
    cold_start,
    first_visit,
    following,
    idle,
    importing,
    in_memory,
    live_pages,
    long_page,
    long_run,
    postgres,
    proving,
    queue,
    stepping,
    trace,
    trace_requests,
    whole_ledger,
)
from tests.bench.figure import Figure, show, write

REPORT = Path("build/bench.json")
MEASUREMENTS = (
    importing,
    cold_start,
    idle,
    in_memory,
    queue,
    boundary,
    appends,
    burst,
    trace,
    trace_requests,
    first_visit,
    long_page,
    long_run,
    stepping,
    whole_ledger,
    proving,
    postgres,
    following,
    live_pages,
    bundles,
)
BIG = (big_ledger, big_verify)
ALL = (*MEASUREMENTS, *BIG)


async def measure(wanted: Sequence[ModuleType]) -> list[Figure]:
    """Every figure, one measurement after the other."""
    figures: list[Figure] = []
    # Beside the project, so that the disk is the one that ledgers are kept on and not one in memory.
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=REPORT.parent) as folder:
        for measurement in wanted:
            print(f"measuring: {_name(measurement)}", file=sys.stderr, flush=True)
            figures += await measurement.measure(Path(folder))
    return figures


def chosen(arguments: Sequence[str]) -> Sequence[ModuleType]:
    """The measurements that are named, or all; `--big` adds what takes minutes and gigabytes."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(map(_name, ALL)))
    parser.add_argument("--big", action="store_true", help="measure in ledgers of millions of events too")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - set(map(_name, ALL))
    if unknown:
        parser.error(f"there is no measurement named {', '.join(sorted(unknown))}")
    wanted = {*(given.names or map(_name, MEASUREMENTS)), *(map(_name, BIG) if given.big else [])}
    return [one for one in ALL if _name(one) in wanted]


def _name(measurement: ModuleType) -> str:
    return measurement.__name__.rpartition(".")[2]


if __name__ == "__main__":
    measured = asyncio.run(measure(chosen(sys.argv[1:])))
    show(measured)
    write(measured, REPORT)
    print(f"written to {REPORT}")
    sys.exit(1 if any(row.met is False for row in measured) else 0)
