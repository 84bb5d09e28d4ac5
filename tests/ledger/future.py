"""Events that another version of the program, or no program of ours, put into a ledger."""

from __future__ import annotations

from typing import Any

from ledger.bytes import body_hash, next_link

STREAM = "SELECT session_id, run_id, head_seq + 1, head_link FROM stream WHERE stream_id = ?"
COLUMNS = (
    "stream_id",
    "seq",
    "event_id",
    "type",
    "version",
    "session_id",
    "run_id",
    "occurred_us",
    "recorded_us",
    "body",
    "body_hash",
    "link",
)


def insert_event(connection: Any, run_id: str, kind: str, version: int, body: bytes) -> None:
    """Append to a run whatever the body is, as its owner would: chained, and with the stream's head moved."""
    insert_into_stream(connection, f"r:{run_id}", kind, version, body)


def insert_into_stream(connection: Any, stream_id: str, kind: str, version: int, body: bytes) -> None:
    """The same in any stream."""
    add_event(connection, stream_id, type=kind, version=version, body=body)


def add_event(connection: Any, stream_id: str, **given: Any) -> None:
    """Append an event as its owner would, but for what is `given`."""
    session_id, run_id, seq, link = connection.execute(STREAM, (stream_id,)).fetchone()
    body = given.get("body", b"{}")
    row: dict[str, Any] = {
        "stream_id": stream_id,
        "seq": seq,
        "event_id": f"w9:{seq}",
        "type": "graph.transitioned",
        "version": 1,
        "session_id": session_id,
        "run_id": run_id,
        "occurred_us": 5,
        "recorded_us": 5,
        "body": body,
        "body_hash": body_hash(body),
        "link": next_link(link, seq, 5, body_hash(body)),
    } | given
    names, values = ", ".join(COLUMNS), [row[name] for name in COLUMNS]
    head = [row["seq"], row["link"], stream_id]
    if getattr(connection, "dialect", "sqlite") == "postgresql":
        marks = ", ".join(f"?::{_kind(name)}" for name in COLUMNS)
        connection.execute(
            "WITH head AS (UPDATE stream SET head_seq = ?, head_link = ? WHERE stream_id = ? RETURNING stream_id)"
            f" INSERT INTO event ({names}) SELECT {marks} FROM head",
            [*head, *values],
        )
        return
    (pos,) = connection.execute("SELECT max(pos) + 1 FROM event").fetchone()
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    connection.execute(f"INSERT INTO event (pos, {names}) VALUES ({marks})", [pos, *values])
    connection.execute("UPDATE stream SET head_seq = ?, head_link = ? WHERE stream_id = ?", head)


def _kind(column: str) -> str:
    if column in ("body", "body_hash", "link"):
        return "bytea"
    return "bigint" if column in ("seq", "version", "occurred_us", "recorded_us") else "text"
