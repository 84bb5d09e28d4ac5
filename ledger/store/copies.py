"""Copies of a ledger's file: made while others write, in a folder apart, and put in place whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ledger.errors import LedgerUnreadable
from ledger.schema import metadata
from ledger.store import statements
from ledger.store.identity import READ_META
from ledger.store.place import prepare_folder, sync
from ledger.store.probe import connect_to_read
from ledger.store.sqlite import connect

PAGES_AT_ONCE = 2_048
PRIVATE = ("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA synchronous = FULL", "PRAGMA journal_mode = DELETE")
"""Nobody else has the copy open, and one file is all there is of it."""
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
OURS_BESIDE = {"alembic_version", "owner", "leaf", "tree_head", "run_text"}
"""Tables of ours that only one of the engines has, or that only migrations know; and what SQLite has of an index."""
INDEX_TABLES = "run_text_index"
UPDATE_META = "UPDATE ledger_meta SET value = ? WHERE key = ?"
INSERT_META = "INSERT INTO ledger_meta (key, value) VALUES (?, ?)"

Progress = Callable[[int, int], None]


@contextlib.contextmanager
def made_beside(target: Path) -> Iterator[Path]:
    """Where to make what is to be at `target`, which appears there when the block ends well; else nothing is left.

    `LedgerUnreadable` where something is there already, which is never overwritten.
    """
    _refuse_to_overwrite(target)
    prepare_folder(target)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as error:
        raise LedgerUnreadable(target, f"cannot be written ({error.strerror})") from error
    try:
        made = folder / target.name
        yield made
        sync(made)
        _refuse_to_overwrite(target)
        made.rename(target)
        sync(target.parent)
    except OSError as error:
        raise LedgerUnreadable(target, f"cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy_file(source: Path, target: Path, meta: Mapping[str, str], on_progress: Progress) -> None:
    """Copy the ledger as it is in one moment, page by page, and let the copy say of itself what `meta` holds."""
    try:
        with contextlib.closing(connect_to_read(source)) as ledger:
            # Within a transaction, so that what others commit meanwhile does not make it begin anew.
            ledger.execute("BEGIN")
            ledger.execute("SELECT count(*) FROM ledger_meta").fetchone()
            with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:

                def heard(_: int, remaining: int, total: int) -> None:
                    on_progress(total - remaining, total)

                ledger.backup(copy, pages=PAGES_AT_ONCE, progress=heard)
        set_meta(target, meta)
    except sqlite3.Error as error:
        raise LedgerUnreadable(source, f"cannot be copied ({error})") from error


def set_meta(path: Path, meta: Mapping[str, str]) -> None:
    """Let a copy that nobody else has open say this of itself."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as copy:
        for pragma in PRIVATE:
            copy.execute(pragma)
        put_meta(copy, meta)


def mark(path: Path, meta: Mapping[str, str]) -> None:
    """Let a ledger say this of itself; call with its write lock held."""
    try:
        with contextlib.closing(connect(path)) as ledger:
            put_meta(ledger, meta)
    except sqlite3.Error as error:
        raise LedgerUnreadable(path, f"cannot be marked ({error})") from error


def read_meta(path: Path) -> dict[str, str]:
    """What a ledger says of itself."""
    try:
        with contextlib.closing(connect_to_read(path)) as ledger:
            return dict(ledger.execute(READ_META))
    except sqlite3.Error as error:
        raise LedgerUnreadable(path, f"cannot be read ({error})") from error


def other_tables(path: Path) -> tuple[str, ...]:
    """Tables in the file that are not the ledger's."""
    with contextlib.closing(connect_to_read(path)) as ledger:
        return not_ours(name for (name,) in ledger.execute(TABLES))


def not_ours(tables: Iterable[str]) -> tuple[str, ...]:
    """Those of the tables that are not a ledger's, on any engine."""
    others = {*tables} - {*metadata.tables} - OURS_BESIDE
    return tuple(sorted(name for name in others if not name.startswith(INDEX_TABLES)))


def count_events(path: Path) -> int:
    """Events of the log."""
    with contextlib.closing(connect_to_read(path)) as ledger:
        return int(ledger.execute(statements.LAST_POS).fetchone()[0])


def put_meta(connection: sqlite3.Connection, meta: Mapping[str, str]) -> None:
    """Let a ledger say this of itself, in a transaction of its own."""
    connection.execute("BEGIN IMMEDIATE")
    for key, value in meta.items():
        if connection.execute(UPDATE_META, (value, key)).rowcount == 0:
            connection.execute(INSERT_META, (key, value))
    connection.execute("COMMIT")


def _refuse_to_overwrite(target: Path) -> None:
    for path in (target, Path(f"{target}-wal"), Path(f"{target}-journal"), Path(f"{target}.owners")):
        if os.path.lexists(path):
            raise LedgerUnreadable(path, "is there already, and nothing is overwritten")
