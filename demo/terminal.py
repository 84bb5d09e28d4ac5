"""Where the command prints: a terminal, a pipe, a file, and what happens when nothing more can be written there."""

import io
import os
import sys

from rich.console import Console

from demo.configuration import Configuration

COLUMNS_WITHOUT_TERMINAL = 100
"""Of what is no terminal and whose width COLUMNS does not tell."""


def open_console() -> Console:
    """A console that prints what its encoding lacks as `?`; `OSError` if there is no standard output."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(highlight=False, width=None if known else COLUMNS_WITHOUT_TERMINAL)


def show_configuration(console: Console, given: Configuration) -> None:
    """Each setting with its value and where it comes from; secrets are not shown."""
    rows = [(name, one.shown, one.origin) for name, one in given.given.items()]
    name_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    for name, shown, origin in rows:
        line = f"{name:<{name_width}}  {shown:<{value_width}}  {origin}"
        console.print(line, markup=False, soft_wrap=True, style="dim" if origin == "default" else "")


def complain(problem: object) -> None:
    """One line on the error stream."""
    print(f"error: {' '.join(str(problem).split())}", file=sys.stderr)


def give_up_unwritten() -> None:
    """Let go of what could not be written, so that the interpreter does not try once more and fail at its end."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
