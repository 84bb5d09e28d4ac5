"""How a connection is kept from writing and from taking long, whatever the statement is: the server's part of it."""

import os
import socket
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any

import psycopg

from demo.bounds import SQL_CELL_BYTES_MAX, SQL_LOCK_TIMEOUT_S, SQL_TIMEOUT_S
from demo.databases import Engine

TIMEOUT_MS = int(SQL_TIMEOUT_S * 1000)

BEFORE: dict[Engine, tuple[str, ...]] = {
    "sqlite": ("PRAGMA query_only = ON", "PRAGMA trusted_schema = OFF"),
    # Within the transaction, so that it works through a pooler, too.
    "postgresql": (
        "SET TRANSACTION READ ONLY",
        f"SET LOCAL statement_timeout = {TIMEOUT_MS}",
        f"SET LOCAL lock_timeout = '{SQL_LOCK_TIMEOUT_S}s'",
        f"SET LOCAL idle_in_transaction_session_timeout = {2 * TIMEOUT_MS}",
        # Texts are quoted as this setting reads them.
        "SET LOCAL standard_conforming_strings = on",
    ),
    "mysql": (
        "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'",
        f"SET SESSION lock_wait_timeout = {SQL_LOCK_TIMEOUT_S}",
        # Of the session: a statement that commits by itself, as `DROP TABLE` does, must not find one that may write.
        "SET SESSION TRANSACTION READ ONLY",
        "START TRANSACTION READ ONLY",
    ),
}
"""Run before a statement, in this order."""
MARIADB_TIMEOUT = f"SET SESSION max_statement_time = {SQL_TIMEOUT_S}"
MYSQL_TIMEOUT = f"SET SESSION max_execution_time = {TIMEOUT_MS}"

SQLITE_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
SQLITE_FUNCTIONS_DENIED = frozenset({"load_extension", "regexp", "readfile", "writefile", "edit", "fts3_tokenizer"})
"""`regexp` is one of Python's that SQLAlchemy adds: it backtracks, and nothing could interrupt it."""
LIKE_PATTERN_CHARS_MAX = 200


def guard_sqlite(connection: sqlite3.Connection) -> None:
    """Let it do nothing but read, and make no huge value; to be called after everything else was set."""
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, SQL_CELL_BYTES_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE_PATTERN_CHARS_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_may)


def _may(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if (second or "").lower() in SQLITE_FUNCTIONS_DENIED else sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in SQLITE_ACTIONS else sqlite3.SQLITE_DENY


class Stopper:
    """Ends what a connection is at, from any thread and without waiting; each server has a time-out of its own, too."""

    def __init__(self, driver_connection: Any) -> None:
        self.is_stopped = False
        self._socket: socket.socket | None = None
        self._stop: Callable[[], object]
        if isinstance(driver_connection, sqlite3.Connection):
            self._stop = driver_connection.interrupt
        elif isinstance(driver_connection, psycopg.Connection):
            # It asks the server over a connection of its own, which takes a moment.
            self._stop = Thread(target=partial(_cancel, driver_connection), daemon=True).start
        else:
            # PyMySQL can only be cut off.
            self._socket = duplicate = socket.socket(fileno=os.dup(driver_connection._sock.fileno()))
            self._stop = partial(duplicate.shutdown, socket.SHUT_RDWR)

    def stop(self, *_: object) -> None:
        """Once is enough: by the time, or by the end of the run."""
        if self.is_stopped:
            return
        self.is_stopped = True
        # It may have ended in the meantime.
        with suppress(OSError, RuntimeError, sqlite3.Error):
            self._stop()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def _cancel(connection: psycopg.Connection[Any]) -> None:
    with suppress(psycopg.Error):
        connection.cancel_safe(timeout=SQL_TIMEOUT_S)
