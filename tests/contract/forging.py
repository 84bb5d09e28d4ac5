"""Somebody who owns a database, and takes away all that guards the ledger in it."""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple

from tests.contract.databases import Outsider

TABLES = ("event", "stream", "content", "tile", "checkpoint", "ledger_meta", "diagnosis_run", "agent_step",
          "tool_invocation", "case_library", "chat_session")  # fmt: skip
GUARDED = (*TABLES, "leaf", "tree_head")
ALWAYS_ON = (
    "SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tgrelid::regclass, tgname) FROM pg_trigger"
    " WHERE tgenabled = 'A' AND NOT tgisinternal"
)
"""How PostgreSQL's triggers are put back that hold for replicas, too."""
KEYS = {
    "diagnosis_run": "run_id",
    "agent_step": "run_id",
    "tool_invocation": "run_id",
    "case_library": "diagnosis_id",
    "chat_session": "session_id",
}
"""By projection: whose a row is."""
OF_EVENT = "WHERE stream_id = ? AND seq = ?"


class Expected(NamedTuple):
    """What must be found."""

    problems: frozenset[str]
    streams: frozenset[str | None] = frozenset({None})
    """In one of them; None is the ledger."""
    seqs: range | None = None
    """There, in a stream."""

    def check(self, findings: list[dict[str, Any]]) -> None:
        """One of these must be it."""
        assert any(
            found["problem"] in self.problems
            and found["stream_id"] in self.streams
            and (self.seqs is None or found["seq"] in self.seqs)
            for found in findings
        ), (self, findings)


def found_at(stream_id: str, seq: int, *problems: str, before: int = 0, after: int = 0) -> Expected:
    """One of the problems, at that event or so many before or after it."""
    return Expected(frozenset(problems), frozenset({stream_id}), range(seq - before, seq + after + 1))


class Forger:
    """Somebody with a connection to the database and a mind of his own."""

    def __init__(self, outsider: Outsider, random: Random) -> None:
        self.outsider = outsider
        self.random = random
        self._guards: list[tuple[Any, ...]] = []

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.outsider.execute(statement, values).fetchall()

    def take_guards_away(self) -> None:
        if self.outsider.dialect == "postgresql":
            self._guards = self.execute(ALWAYS_ON)
            for table in GUARDED:
                self.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
            return
        self.execute("PRAGMA ignore_check_constraints = ON")
        self._guards = self.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
        for (name,) in self.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'"):
            self.execute(f"DROP TRIGGER {name}")

    def put_guards_back(self) -> None:
        if self.outsider.dialect == "postgresql":
            for table in GUARDED:
                self.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")
        for (guard,) in self._guards:
            self.execute(guard)

    def an_event(self, stream_id: str | None = None) -> tuple[str, int]:
        streams = self.execute("SELECT stream_id, head_seq FROM stream ORDER BY stream_id")
        stream_id, head_seq = self.random.choice([one for one in streams if stream_id in (None, one[0])])
        return stream_id, self.random.randint(1, head_seq)

    def head_of(self, stream_id: str) -> int:
        ((head_seq,),) = self.execute("SELECT head_seq FROM stream WHERE stream_id = ?", stream_id)
        return int(head_seq)

    def bodies_of(self, stream_id: str) -> list[dict[str, Any]]:
        rows = self.execute("SELECT body FROM event WHERE stream_id = ? ORDER BY seq", stream_id)
        return [json.loads(bytes(body)) for (body,) in rows]

    def shift(self, stream_id: str, after: int, by: int) -> None:
        """Give all events of a stream after one other numbers."""
        self.execute("UPDATE event SET seq = -seq WHERE stream_id = ? AND seq > ?", stream_id, after)
        self.execute(f"UPDATE event SET seq = {by} - seq WHERE stream_id = ? AND seq < 0", stream_id)
        if self.outsider.dialect == "postgresql":
            self.execute("UPDATE leaf SET seq = -seq WHERE stream_id = ? AND seq > ?", stream_id, after)
            self.execute(f"UPDATE leaf SET seq = {by} - seq WHERE stream_id = ? AND seq < 0", stream_id)

    def remove(self, stream_id: str, seq: int) -> None:
        """An event, and its place."""
        for table in ("leaf", "event") if self.outsider.dialect == "postgresql" else ("event",):
            self.execute(f"DELETE FROM {table} {OF_EVENT}", stream_id, seq)

    def close_places(self) -> None:
        """Let the public order have no gap again."""
        if self.outsider.dialect == "postgresql":
            self.execute("UPDATE leaf SET leaf_index = -1 - leaf_index")
            self.execute(
                "UPDATE leaf SET leaf_index = placed.place FROM (SELECT leaf_index AS old,"
                " row_number() OVER (ORDER BY leaf_index DESC) - 1 AS place FROM leaf) AS placed"
                " WHERE leaf.leaf_index = placed.old"
            )
            self.execute("UPDATE tree_head SET size = (SELECT count(*) FROM leaf)")
            return
        for place, (pos,) in enumerate(self.execute("SELECT pos FROM event ORDER BY pos"), 1):
            self.execute("UPDATE event SET pos = ? WHERE pos = ?", place, pos)

    def delete_streams(self, *stream_ids: str) -> None:
        """Events, contents, rows and all."""
        for stream_id in stream_ids:
            key = stream_id[2:]
            tables = [table for table, column in KEYS.items() if (column == "session_id") is (stream_id[0] == "s")]
            for table in tables:
                self.execute(f"DELETE FROM {table} WHERE {KEYS[table]} = ?", key)
            if self.outsider.dialect == "postgresql":
                self.execute("DELETE FROM leaf WHERE stream_id = ?", stream_id)
            for table in ("content", "event", "stream"):
                self.execute(f"DELETE FROM {table} WHERE stream_id = ?", stream_id)
