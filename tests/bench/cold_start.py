"""What `tachograph serve` takes from its start to the first byte of a page, and what it then holds in memory.

Beside a bare Python that imports the libraries below it and does nothing with them.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from time import perf_counter_ns

import psutil

from harness import Harness
from ledger import Ledger
from tests.bench.figure import Figure, figure
from tests.bench.workload import run_of

ROUNDS = 7
AT_MOST_MS = 1_500
AT_MOST_MB = 120
LIBRARIES = "import starlette.applications, uvicorn, sqlalchemy"
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def measure(folder: Path) -> list[Figure]:
    """Whole processes in turn, of which the least disturbed counts; the first ones compile what has no bytecode."""
    path = folder / "cold.db"
    async with await Ledger.open(path) as ledger:
        await run_of(Harness(ledger.journal), "bench", events=20)
    rounds = [(*_serve(path), *_import_libraries()) for _ in range(ROUNDS)]
    served_ms, served_mb, imported_ms, imported_mb = (min(values) for values in zip(*rounds, strict=True))
    return [
        figure("serve, start to first byte", "ms", served_ms, LIBRARIES, imported_ms, at_most=AT_MOST_MS),
        figure("serve, resident after a page", "MB", served_mb, LIBRARIES, imported_mb, at_most=AT_MOST_MB),
    ]


def _serve(path: Path) -> tuple[float, float]:
    command = [str(Path(sys.executable).parent / "tachograph"), "serve", "--db", str(path), "--port", "0"]
    started_ns = perf_counter_ns()
    with _process(command) as process:
        assert process.stdout is not None
        ready = re.search(r":(\d+)/", process.stdout.readline())
        assert ready is not None
        with socket.create_connection(("127.0.0.1", int(ready[1]))) as connection:
            connection.sendall(REQUEST)
            assert connection.recv(12) == b"HTTP/1.1 200"
            took_ms = (perf_counter_ns() - started_ns) / 1e6
        held_mb = _resident_mb(process)
        process.terminate()
    return took_ms, held_mb


def _import_libraries() -> tuple[float, float]:
    started_ns = perf_counter_ns()
    with _process([sys.executable, "-c", f"{LIBRARIES}; print(flush=True); input()"]) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        took_ms = (perf_counter_ns() - started_ns) / 1e6
        held_mb = _resident_mb(process)
        process.stdin.write("\n")
    return took_ms, held_mb


def _process(command: list[str]) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(command, text=True, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _resident_mb(process: subprocess.Popen[str]) -> float:
    return float(psutil.Process(process.pid).memory_info().rss / 1e6)
