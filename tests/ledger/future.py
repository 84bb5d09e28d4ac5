"""Events that another version of the program, or no program of ours, put into a ledger."""

from __future__ import annotations

import sqlite3

from ledger.bytes import body_hash, next_link


def insert_event(connection: sqlite3.Connection, run_id: str, kind: str, version: int, body: bytes) -> None:
    """Append to a run whatever the body is, as its owner would: chained, and with the stream's head moved."""
    insert_into_stream(connection, f"r:{run_id}", kind, version, body)


def insert_into_stream(connection: sqlite3.Connection, stream_id: str, kind: str, version: int, body: bytes) -> None:
    """The same in any stream."""
    (pos,) = connection.execute("SELECT max(pos) + 1 FROM event").fetchone()
    session_id, run_id, seq, link = connection.execute(
        "SELECT session_id, run_id, head_seq + 1, head_link FROM stream WHERE stream_id = ?", (stream_id,)
    ).fetchone()
    link = next_link(link, seq, 5, body_hash(body))
    row = (pos, stream_id, seq, f"w9:{pos}", kind, version, session_id, run_id, 5, 5, body, body_hash(body), link)
    connection.execute(f"INSERT INTO event VALUES ({', '.join('?' * len(row))})", row)
    connection.execute("UPDATE stream SET head_seq = ?, head_link = ? WHERE stream_id = ?", (seq, link, stream_id))
