"""`python -m demo`: the demonstration; `python -m demo serve`: the app, served until it is stopped."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

TERMINATED = 143
"""As shells report a program that was stopped by SIGTERM."""
NARROWEST_COLUMNS = 100
"""Of what is not a terminal, such as a pipe or a file."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 only if everything went as it should."""
    given = _parser().parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else NARROWEST_COLUMNS)
    signal.signal(signal.SIGTERM, _terminate)
    console.print("· starting", style="dim")
    # Takes seconds, so it comes after the first line.
    from demo.commands import perform

    return perform(given.command, console, data_folder=given.data, log_folder=given.logs, db=given.db, port=given.port)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """End as on an error, so that everything is closed."""
    raise SystemExit(TERMINATED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["run", "serve"], default="run", help="run is the default")
    parser.add_argument("--logs", type=Path, default="/var/log", help="folder of log files to search (%(default)s)")
    parser.add_argument("--data", type=Path, default="data", help="folder to keep things in (%(default)s)")
    parser.add_argument("--db", help="ledger to use; else TACHOGRAPH_DB, else runs.db in the data folder")
    parser.add_argument("--port", type=int, default=0, help="port of the app; a free one if left out")
    return parser


if __name__ == "__main__":
    sys.exit(main())
