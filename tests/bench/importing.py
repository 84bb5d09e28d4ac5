"""What importing the harness adds to the start of Python, beside what importing pydantic alone adds."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.bench.figure import Figure, figure, median_ms, timed_ns

ROUNDS = 15
AT_MOST_MS = 150


BARE, PYDANTIC, HARNESS = "pass", "from pydantic import BaseModel", "import harness"


async def measure(_: Path) -> list[Figure]:
    """Whole processes in turn; a first one of each, which compiles what has no bytecode, does not count."""
    spent_ns: dict[str, list[int]] = {BARE: [], PYDANTIC: [], HARNESS: []}
    for _round in range(1 + ROUNDS):
        for statement, durations_ns in spent_ns.items():
            durations_ns.append(timed_ns(partial(_run, statement)))
    bare_ms, pydantic_ms, harness_ms = (median_ms(durations_ns[1:]) for durations_ns in spent_ns.values())
    value_ms, reference_ms = harness_ms - bare_ms, pydantic_ms - bare_ms
    return [figure(HARNESS, "ms", value_ms, PYDANTIC, reference_ms, at_most=AT_MOST_MS)]


def _run(statement: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", statement], check=True, env=environment)
