"""What importing the harness adds to the start of Python, beside what importing pydantic alone adds."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.bench.figure import Figure, figure, timed_ns

ROUNDS = 15
AT_MOST_MS = 150


BARE, PYDANTIC, HARNESS = "pass", "from pydantic import BaseModel", "import harness"


async def measure(_: Path) -> list[Figure]:
    """Whole processes in turn, of which the least disturbed counts; the first ones compile what has no bytecode."""
    spent_ns: dict[str, list[int]] = {BARE: [], PYDANTIC: [], HARNESS: []}
    for _round in range(ROUNDS):
        for statement, durations_ns in spent_ns.items():
            durations_ns.append(timed_ns(partial(_run, statement)))
    bare_ms, pydantic_ms, harness_ms = (min(durations_ns) / 1e6 for durations_ns in spent_ns.values())
    value_ms, reference_ms = harness_ms - bare_ms, pydantic_ms - bare_ms
    return [figure(HARNESS, "ms", value_ms, PYDANTIC, reference_ms, at_most=AT_MOST_MS)]


def _run(statement: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", statement], check=True, env=environment)
