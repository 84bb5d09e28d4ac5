"""Conversations in a file of their own, which every machine can keep: the default."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from demo.bounds import MEMORY_TIMEOUT_S, MEMORY_TTL_S, MEMORY_TURNS_MAX
from demo.memory.turns import MemoryUnavailable, MemoryUnusable, Turn, cut
from harness.clock import WallClock

CREATE_TURN = """
    CREATE TABLE IF NOT EXISTS turn (
        session_id TEXT NOT NULL,
        turn_no INTEGER NOT NULL,
        question TEXT NOT NULL,
        answer TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        PRIMARY KEY (session_id, turn_no)
    ) WITHOUT ROWID
"""
INDEX_TURNS_BY_TIME = "CREATE INDEX IF NOT EXISTS turn_by_time ON turn (created_us)"
LATEST_TURNS = """
    SELECT question, answer FROM turn
    WHERE session_id = :session_id AND (SELECT max(created_us) FROM turn WHERE session_id = :session_id) > :since_us
    ORDER BY turn_no DESC LIMIT :turns
"""
INSERT_TURN = """
    INSERT INTO turn (session_id, turn_no, question, answer, created_us)
    SELECT :session_id, coalesce(max(turn_no), 0) + 1, :question, :answer, :now_us
    FROM turn WHERE session_id = :session_id
"""
DELETE_OLD_TURNS = """
    DELETE FROM turn WHERE session_id = :session_id
    AND turn_no <= (SELECT max(turn_no) FROM turn WHERE session_id = :session_id) - :turns
"""
DELETE_TURNS = "DELETE FROM turn WHERE session_id = :session_id"
DELETE_EXPIRED = """
    DELETE FROM turn WHERE session_id IN (
        SELECT session_id FROM turn AS old WHERE created_us <= :since_us AND NOT EXISTS (
            SELECT 1 FROM turn AS later WHERE later.session_id = old.session_id AND later.created_us > :since_us
        )
    )
"""

Value = TypeVar("Value")


class SqliteMemory:
    """Conversations in an SQLite file; its statements run on threads, one at a time."""

    def __init__(self, path: Path, clock: WallClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        try:
            self._db = _open(path)
        except sqlite3.Error as error:
            raise MemoryUnusable(f"{path} cannot keep conversations: {error}; move it away") from error

    async def recall(self, session_id: str) -> tuple[Turn, ...]:
        """The latest turns, oldest first; none once the conversation has expired."""
        return await asyncio.to_thread(self._locked, lambda: self._recall(session_id))

    async def remember(self, session_id: str, turn: Turn) -> None:
        """Add a turn, forget the oldest beyond the bound and every conversation that has expired."""
        await asyncio.to_thread(self._locked, lambda: self._remember(session_id, turn))

    async def forget(self, session_id: str) -> None:
        """Forget the whole conversation."""
        await asyncio.to_thread(self._locked, lambda: self._forget(session_id))

    def close(self) -> None:
        """Close the file."""
        self._locked(self._db.close)

    def _locked(self, work: Callable[[], Value]) -> Value:
        with self._lock:
            try:
                return work()
            except sqlite3.Error as error:
                raise MemoryUnavailable(f"the file of conversations cannot be used now ({error})") from error

    def _recall(self, session_id: str) -> tuple[Turn, ...]:
        given = {"session_id": session_id, "since_us": self._since_us(), "turns": MEMORY_TURNS_MAX}
        return tuple(Turn(*row) for row in reversed(self._db.execute(LATEST_TURNS, given).fetchall()))

    def _remember(self, session_id: str, turn: Turn) -> None:
        given = {
            "session_id": session_id,
            "question": cut(turn.question),
            "answer": cut(turn.answer),
            "now_us": self._clock.now_us(),
            "since_us": self._since_us(),
            "turns": MEMORY_TURNS_MAX,
        }
        with self._db:
            for statement in (DELETE_EXPIRED, INSERT_TURN, DELETE_OLD_TURNS):
                self._db.execute(statement, given)

    def _forget(self, session_id: str) -> None:
        with self._db:
            self._db.execute(DELETE_TURNS, {"session_id": session_id})

    def _since_us(self) -> int:
        return self._clock.now_us() - MEMORY_TTL_S * 1_000_000


def _open(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=MEMORY_TIMEOUT_S, check_same_thread=False)
    try:
        db.execute("PRAGMA secure_delete = ON")
        with db:
            db.execute(CREATE_TURN)
            db.execute(INDEX_TURNS_BY_TIME)
    except sqlite3.Error:
        db.close()
        raise
    return db
