"""`make soak`: kill loops on both engines, each for its part of the time; then a table of what was seen."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ledger import Ledger
from tests.servers.postgres import PostgresServer
from tests.soak.rounds import Tally, play

ROUNDS_PER_LEDGER = 20
"""Then a new one is begun, so that looking at it stays quick."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all engines together")
    parser.add_argument("--engine", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--seed", type=int, default=None, help="of the moments; they still depend on the machine")
    wanted = parser.parse_args()
    seed = wanted.seed if wanted.seed is not None else random.randrange(10**6)
    engines = ("sqlite", "postgres") if wanted.engine == "both" else (wanted.engine,)
    seconds = wanted.minutes * 60 / len(engines)
    tallies = {engine: SOAKS[engine](random.Random(seed), seconds) for engine in engines}
    show(tallies, seed)
    return 1 if any(tally.problems for tally in tallies.values()) else 0


def soak_sqlite(chance: random.Random, seconds: float) -> Tally:
    """Kill processes on files."""
    tally, until_s = Tally(), time.monotonic() + seconds
    while time.monotonic() < until_s and not tally.problems:
        with tempfile.TemporaryDirectory() as folder:
            url = str(Path(folder) / "runs.db")
            for _ in range(ROUNDS_PER_LEDGER):
                if time.monotonic() < until_s and not tally.problems:
                    asyncio.run(play(url, tally, chance))
                    progress("sqlite", tally)
    return tally


def soak_postgres(chance: random.Random, seconds: float) -> Tally:
    """Kill processes, and every other time the server under them."""
    tally, until_s = Tally(), time.monotonic() + seconds
    server = PostgresServer().start()

    def kill_server() -> None:
        server.kill()
        server.start()

    try:
        while time.monotonic() < until_s and not tally.problems:
            url = server.url(server.create_database())
            asyncio.run(_make(url))
            for _ in range(ROUNDS_PER_LEDGER):
                if time.monotonic() < until_s and not tally.problems:
                    asyncio.run(play(url, tally, chance, kill_server))
                    progress("postgres", tally)
    finally:
        server.stop()
    return tally


async def _make(url: str) -> None:
    async with await Ledger.open(url):
        pass


SOAKS = {"sqlite": soak_sqlite, "postgres": soak_postgres}


def progress(engine: str, tally: Tally) -> None:
    print(f"{engine}: round {tally.rounds}, {tally.events_acknowledged:,} acknowledged", file=sys.stderr, flush=True)


def show(tallies: dict[str, Tally], seed: int) -> None:
    """Print what was seen, engine beside engine."""
    table = Table(title=f"Killed, and looked at afterwards (seed {seed})", title_justify="left")
    table.add_column("")
    for engine in tallies:
        table.add_column(engine, justify="right")
    for figure in fields(Tally):
        values = [getattr(tally, figure.name) for tally in tallies.values()]
        table.add_row(figure.name.replace("_", " "), *map(_cell, values))
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    for tally in tallies.values():
        for problem in tally.problems:
            print(problem)


def _cell(value: float | list[str]) -> str:
    if isinstance(value, list):
        return str(len(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
