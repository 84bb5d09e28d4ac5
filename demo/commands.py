"""The commands, from start to a clean end: on success, on failure, on Ctrl-C and on SIGTERM."""

import asyncio
from pathlib import Path
from threading import Event

from rich.console import Console

from demo.client import Client
from demo.configuration import Configuration
from demo.errors import DemoError
from demo.launch import demo_served, newest_run
from demo.replaying import execute_again
from demo.script import FIRST_QUESTION, run_demo
from demo.settings import ledger_url
from demo.terminal import complain
from harness import HarnessError
from harness.replay import Verdict
from ledger import LedgerError

FAILED = 1
UNTOLD = 2
INTERRUPTED = 130
"""As shells report a program that was stopped by Ctrl-C."""


def perform(command: str, console: Console, given: Configuration) -> int:
    """Bring everything up, do the command, take everything down; the exit code."""
    serves = command == "serve"
    try:
        with demo_served(console, given) as (url, ledger_file):
            (keep_serving if serves else run_demo)(console, url, ledger_file)
    except (DemoError, HarnessError, LedgerError, OSError) as error:
        complain(error)
        return FAILED
    except KeyboardInterrupt:
        return 0 if serves else INTERRUPTED
    except SystemExit as stopped:
        return 0 if serves else int(stopped.code or 0)
    return 0


def replay(console: Console, run: str, given: Configuration) -> int:
    """Execute a recorded run, named as SESSION/RUN, again; 0 if it is the same, 1 if not, 2 if that cannot be told."""
    session_id, _, run_id = run.partition("/")
    try:
        done = execute_again(ledger_url(given["data"], given["db"]), session_id, run_id)
    except (DemoError, HarnessError, LedgerError, OSError) as error:
        complain(error)
        return UNTOLD
    except KeyboardInterrupt:
        return INTERRUPTED
    console.print(str(done), markup=False, soft_wrap=True, style="green" if done.is_same else "red")
    return {Verdict.SAME: 0, Verdict.DIFFERENT: FAILED, Verdict.CANNOT: UNTOLD}[done.verdict]


def keep_serving(console: Console, url: str, ledger_file: Path) -> None:
    """Print the page of the newest run, which is asked for if there is none, then serve until told to stop."""
    newest = asyncio.run(newest_run(ledger_file))
    with Client(url) as client:
        if newest is None:
            console.print(f"· asking: {FIRST_QUESTION}", style="dim")
            asked = client.chat(FIRST_QUESTION)
            newest = (asked.session_id, asked.run_id)
        page = client.trace_page(*newest)
    console.print("\nA run to look at (Ctrl-C stops the server):")
    console.print(page, soft_wrap=True, style="bold")
    console.print(f"All runs are listed at {url}/", soft_wrap=True)
    Event().wait()
