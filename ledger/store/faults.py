"""What SQLite raises, as errors of ours: the one place where the two are matched."""

from __future__ import annotations

import sqlite3

from harness.errors import LedgerUnavailable
from ledger.errors import ConstraintViolated

PROBLEMS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_READONLY: "the file is read-only",
    sqlite3.SQLITE_BUSY: "another program keeps the file locked",
    sqlite3.SQLITE_LOCKED: "another program keeps the file locked",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_NOTADB: "the file is no database",
    sqlite3.SQLITE_NOMEM: "memory ran out",
}


def unavailable(error: sqlite3.Error) -> LedgerUnavailable:
    """Why nothing could be written, in plain words."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return LedgerUnavailable(f"{PROBLEMS.get(primary, 'the database failed')} ({error})")


def violated(error: sqlite3.IntegrityError, event_type: str) -> ConstraintViolated:
    """Which rule the database found broken; triggers say `rule: detail`."""
    text = str(error)
    rule, colon, detail = text.partition(": ")
    if not colon or " " in rule:
        return ConstraintViolated(event_type, "constraint", text)
    return ConstraintViolated(event_type, rule, detail)
