"""Watching the end of an SQLite log: told at once by a writer in this process, and seen soon where others write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

from ledger.following.bell import Bell
from ledger.store import statements
from ledger.store.probe import can_share, connect_to_read

POLL_S = 0.02
"""How often it is looked whether other processes have written; one look takes some microseconds."""


class SqliteTail:
    """A `ledger.following.following.Tail`; made and used in one loop."""

    def __init__(self, path: Path, bell: Bell, check: Callable[[], None]) -> None:
        """`check` raises what is wrong with the file."""
        check()
        self._check = check
        self._bell = bell
        self._rung = bell.listen()
        # Where no side file can be made nothing tells that somebody has written, and each look reads.
        self._connection = connect_to_read(path) if can_share(path) else None
        if self._connection is not None:
            self._connection.execute("PRAGMA busy_timeout = 0")
        self._version = -1

    async def grows(self) -> bool:
        if self._connection is not None and self._has_moved():
            return True
        timer = asyncio.get_running_loop().call_later(POLL_S, self._rung.set)
        try:
            await self._rung.wait()
        finally:
            timer.cancel()
        return self._has_moved()

    async def close(self) -> None:
        self._bell.leave(self._rung)
        if self._connection is not None:
            self._connection.close()

    def _has_moved(self) -> bool:
        self._check()
        self._rung.clear()
        if self._connection is None:
            return True
        try:
            (version,) = self._connection.execute(statements.DATA_VERSION).fetchone()
        except sqlite3.Error:
            return True  # Whatever it is, the read that follows meets it, and says so.
        if version == self._version:
            return False
        self._version = version
        return True
