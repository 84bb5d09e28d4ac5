"""What a file is, found out without changing anything: not even SQLite's side files are made."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from ledger.errors import LedgerFileError, LedgerMissing, LedgerNotMigrated, LedgerUnreadable, NotALedger
from ledger.store.identity import HEAD_REVISION, READ_META, READ_REVISION, Identity, checked
from ledger.store.place import check_single_name, size_of

COUNT_TABLES = "SELECT count(*) FROM sqlite_schema"


def identify(path: Path) -> Identity:
    """The ledger's identity, whatever known revision it is at; a `LedgerFileError` says what else it is."""
    _check_file(path)
    had_log = _has_log(path)
    try:
        return _read_identity(path, had_log)
    except LedgerFileError:
        # Somebody may have begun to write in between.
        if had_log or not _has_log(path):
            raise
        return _read_identity(path, True)


def require_current(path: Path) -> Identity:
    """As `identify`, and `LedgerNotMigrated` unless the schema is this program's."""
    check_single_name(path)
    identity = identify(path)
    if identity.revision != HEAD_REVISION:
        raise LedgerNotMigrated(path, identity.revision, HEAD_REVISION)
    return identity


def is_blank(path: Path) -> bool:
    """Whether nothing is there yet: no file, an empty one, or a database without any table.

    An empty file beside which SQLite has left files of its own was a database, and was cut to nothing.
    """
    if not path.exists():
        return True
    if path.is_file() and size_of(path) == 0:
        return not any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm"))
    _check_file(path)
    with contextlib.closing(_connect(path, _has_log(path))) as connection:
        try:
            return bool(connection.execute(COUNT_TABLES).fetchone()[0] == 0)
        except sqlite3.DatabaseError:
            return False


def _read_identity(path: Path, has_log: bool) -> Identity:
    with contextlib.closing(_connect(path, has_log)) as connection:
        try:
            meta = dict(connection.execute(READ_META).fetchall())
            revisions = [row[0] for row in connection.execute(READ_REVISION)]
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                raise NotALedger(path, "is a database, but no ledger") from error
            raise LedgerUnreadable(path, f"cannot be read ({error})") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # What SQLite says of a damaged schema may itself be no text.
            raise NotALedger(path, f"is no ledger ({error})") from error
    return checked(path, meta, revisions)


def _connect(path: Path, has_log: bool) -> sqlite3.Connection:
    """Without a log beside it the file is all there is, and reading it as immutable leaves no trace."""
    try:
        return sqlite3.connect(_address(path, is_alone=not has_log), uri=True)
    except sqlite3.Error as error:
        raise LedgerUnreadable(path, f"cannot be read ({error})") from error


def is_whole(path: Path) -> bool:
    """Whether the file is as long as it says; SQLite looks, so that no lock that it has on it is lost."""
    try:
        with contextlib.closing(sqlite3.connect(_address(path, is_alone=True), uri=True)) as connection:
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            return bool(connection.execute(COUNT_TABLES).fetchone()[0]) and path.stat().st_size % page_bytes == 0
    except sqlite3.Error:
        return False


def can_share(path: Path) -> bool:
    """Whether a reader there can make the side file that SQLite needs to read while others write."""
    return os.access(path.parent, os.W_OK)


def read_address(path: Path) -> str:
    """How SQLite is to open the ledger for reading.

    Where a reader can make no side file, and there is none, nobody is writing: the file is all there is.
    """
    is_alone = not can_share(path) and not _has_log(path) and not Path(f"{path}-shm").exists()
    return _address(path, is_alone=is_alone)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A plain connection that cannot write, for as long as it takes to look at something."""
    return sqlite3.connect(read_address(path), uri=True, isolation_level=None)


@contextlib.contextmanager
def one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """Everything in the block is read as of one moment; what it writes is taken back."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _address(path: Path, *, is_alone: bool) -> str:
    # The name may have any bytes.
    return f"file:{quote(os.fsencode(path))}?mode=ro{'&immutable=1' if is_alone else ''}"


def _has_log(path: Path) -> bool:
    return size_of(Path(f"{path}-wal")) > 0


def _check_file(path: Path) -> None:
    """Look at the file from outside only: closing it would take away the locks that this process's SQLite has on it."""
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise LedgerMissing(path) from error
    except OSError as error:
        raise LedgerUnreadable(path, f"cannot be read ({error.strerror})") from error
    if not stat.S_ISREG(found.st_mode):
        raise NotALedger(path, "is a folder" if stat.S_ISDIR(found.st_mode) else "is no regular file")
    if not os.access(path, os.R_OK):
        raise LedgerUnreadable(path, "cannot be read (no permission)")
    if found.st_size == 0:
        raise NotALedger(path, "is empty")
