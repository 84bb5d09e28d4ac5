"""Hearing of requests on SQLite: a thread looks whether anybody has written, and then at the watched runs' rows."""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path

import orjson

from ledger.requests import POLL_S, Requests
from ledger.store import statements
from ledger.store.probe import connect_to_read

log = logging.getLogger(__name__)


class SqliteRequests(Requests):
    """Its thread begins with the first run that is watched; while there is none it sleeps."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def begin(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._work, name="ledger-requests", daemon=True)
            self._thread.start()
        self.changed.notify_all()

    def close(self) -> None:
        """Tell nobody any more."""
        with self.changed:
            self._is_closed = True
            thread = self._thread
            self.changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _work(self) -> None:
        connection: sqlite3.Connection | None = None
        version = -1
        while (watched := self._next()) is not None:
            run_ids, has_new = watched
            try:
                connection = connection or connect_to_read(self._path)
                (found,) = connection.execute(statements.DATA_VERSION).fetchone()
                if found != version or has_new:
                    self.tell(connection.execute(statements.REQUESTS, (orjson.dumps(run_ids).decode(),)).fetchall())
                version = found
            except sqlite3.Error as error:
                version = -1
                log.warning("the ledger could not look for requests: %s", error)
        if connection is not None:
            connection.close()

    def _next(self) -> tuple[list[str], bool] | None:
        """The runs to look at, in a while; None once all is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self._is_closed, POLL_S)
            self.changed.wait_for(lambda: self._is_closed or self._watches)
            return None if self._is_closed else self.watched()
