"""What the command line may say."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

PORT_MAX = 65_535


def parse(argv: list[str] | None, about: str | None) -> Namespace:
    """The options; wrong usage ends the program with code 2."""
    parser = ArgumentParser(prog="python -m demo", description=about)
    commands = ["run", "serve", "replay"]
    parser.add_argument("command", nargs="?", choices=commands, default="run", help="run is the default")
    parser.add_argument("run", nargs="?", metavar="SESSION/RUN", help="the run to replay")
    parser.add_argument("--logs", type=Path, default="/var/log", help="folder of log files to search (%(default)s)")
    parser.add_argument("--data", type=Path, default="data", help="folder to keep things in (%(default)s)")
    parser.add_argument("--db", help="ledger to use; else TACHOGRAPH_DB, else runs.db in the data folder")
    parser.add_argument("--port", type=_port, default=0, help="port of the app; a free one if left out")
    given = parser.parse_args(argv)
    if (given.command == "replay") != (given.run is not None):
        parser.error("replay takes the run as SESSION/RUN, and no other command does")
    return given


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= PORT_MAX):
        raise ArgumentTypeError(f"must be a whole number from 0 to {PORT_MAX}")
    return int(text)
