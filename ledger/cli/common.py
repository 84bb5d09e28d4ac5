"""What the commands share: the ledger's address, JSON on request, and errors in one line."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import click
import orjson

from harness.errors import HarnessError
from ledger.audit.errors import DamagedTree, InconsistentLog, KeyNotFound
from ledger.erasing.errors import ErasureRefused
from ledger.errors import ContentNotFound, LedgerDamaged, LedgerError, RunNotFound, SessionNotFound
from ledger.records import ContentView
from ledger.tokens.errors import TokenNotFound
from ledger.words.text import one_line as one_line

if TYPE_CHECKING:
    from ledger.audit.signing.signing import Signing
    from ledger.ledger import Ledger

P = ParamSpec("P")

EXIT_NOT_FOUND = 1
"""There is no such run, or a rebuild found differences."""
EXIT_UNUSABLE = 2
"""The command was used wrongly, or the ledger cannot be used."""
EXIT_INTERRUPTED = 130
"""As shells report a program that was stopped by Ctrl-C."""
INTERRUPTED_GRACE_S = 2.0
"""For how long a command that was interrupted may still be at what it was doing."""

FOUND_WRONG = (
    RunNotFound,
    SessionNotFound,
    ContentNotFound,
    LedgerDamaged,
    KeyNotFound,
    InconsistentLog,
    DamagedTree,
    TokenNotFound,
    ErasureRefused,
)
"""What is no fault of the command: it is not there, or is not as it should be."""

db_option = click.option(
    "--db",
    envvar="TACHOGRAPH_DB",
    show_envvar=True,
    required=True,
    metavar="URL",
    help="The ledger: sqlite:///FILE, a path, or postgresql://USER@HOST/DATABASE.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def command(run: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """An asynchronous command whose errors are one line each, with an exit code that means something."""

    @functools.wraps(run)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            asyncio.run(_as_coroutine(run(*args, **kwargs)))
        except FOUND_WRONG as error:
            fail(str(error), EXIT_NOT_FOUND)
        except (LedgerError, HarnessError) as error:
            fail(str(error), EXIT_UNUSABLE)

    return wrapped


async def open_existing(db: str, *, signing: Signing | None = None) -> Ledger:
    """The ledger, open for writing; a `LedgerError` if there is none, and then none is made."""
    # Imported here: there are commands that need no database.
    from ledger.ledger import Ledger
    from ledger.reading.reader import LedgerReader

    async with await LedgerReader.open(db):
        pass
    return await Ledger.open(db, signing=signing)


def fail(message: str, exit_code: int) -> NoReturn:
    """Say what is wrong, in one line, and leave."""
    click.echo(f"Error: {' '.join(message.split())}", err=True)
    raise click.exceptions.Exit(exit_code)


@contextlib.contextmanager
def progress(label: str, as_json: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal's error stream, told how many steps are done and of how many."""
    hidden = as_json or not sys.stderr.isatty()
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=hidden) as bar:

        def on_progress(done: int, step_count: int) -> None:
            bar.length = max(step_count, 1)
            bar.update(done - bar.pos)

        yield on_progress


def keys_of(run: str) -> tuple[str, str]:
    """Both ids of a run, which is nobody's business but its session's."""
    session_id, slash, run_id = run.partition("/")
    if not slash:
        fail("name the run as SESSION/RUN", EXIT_UNUSABLE)
    return session_id, run_id


def print_json(value: object) -> None:
    """Records as JSON: bytes as text, digests and links as they are."""
    click.echo(orjson.dumps(plain(value), option=orjson.OPT_INDENT_2).decode())


def plain(value: Any) -> Any:
    """Records as dictionaries, and contents with their text."""
    if isinstance(value, ContentView):
        return {
            "digest": value.digest,
            "size_bytes": value.size_bytes,
            "media_type": value.media_type,
            "state": value.state,
            "text": value.text,
            "erasure": plain(value.erasure),
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def span(duration_us: int | None) -> str:
    """A duration for people."""
    return "-" if duration_us is None else f"{duration_us / 1_000:,.1f} ms"


def table(rows: list[list[str]], *, indent: str = "") -> str:
    """Rows as aligned columns; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(indent + line.rstrip() for line in lines)


async def _as_coroutine(awaitable: Awaitable[None]) -> None:
    try:
        await awaitable
    except asyncio.CancelledError:
        # A thread that waits for another process would keep this one for as long. It can be left as if it were killed,
        # which leaves nothing half done.
        leaving = threading.Timer(INTERRUPTED_GRACE_S, _leave)
        leaving.daemon = True
        leaving.start()
        raise


def _leave() -> None:
    click.echo("Interrupted", err=True)
    os._exit(EXIT_INTERRUPTED)
