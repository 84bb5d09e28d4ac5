"""Statements of SQLite that its writer runs, or that several modules share, by name; SQLite compiles each once."""

from __future__ import annotations

from harness.ids import run_stream, session_stream
from ledger.projections.rows import (
    ATTEMPT_FIXED,
    CASE_FIXED,
    RUN_FIXED,
    CaseRow,
    RunMoving,
    RunRow,
    SessionShare,
    StepRow,
    ToolRow,
)


def _upsert(table: str, columns: tuple[str, ...], key: tuple[str, ...], fixed: frozenset[str]) -> str:
    """Insert a row whole, or bring an existing one up to date; what is fixed at its first insert costs nothing then."""
    marks = ", ".join("?" * len(columns))
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in fixed)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - names of ours
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
    )


BEGIN = "BEGIN IMMEDIATE"
DATA_VERSION = "PRAGMA data_version"
"""Changes whenever another connection has committed."""

LAST_POS = "SELECT coalesce(max(pos), 0) FROM event"
STREAM_EXISTS = "SELECT 1 FROM stream WHERE stream_id = ?"
STREAM = (
    "SELECT stream_id, kind, session_id, run_id, head_seq, head_link, owner_id, owner_epoch"
    " FROM stream WHERE stream_id = ?"
)
STREAM_HEAD = "SELECT session_id, head_seq, head_link, owner_id, owner_epoch FROM stream WHERE stream_id = ?"
BODIES_BETWEEN = "SELECT seq, body FROM event WHERE stream_id = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
FIND_EVENTS = (
    "SELECT event.event_id, event.seq, event.body_hash, event.link"
    " FROM json_each(?) AS wanted CROSS JOIN event"
    " WHERE event.stream_id = ? AND event.event_id = wanted.value"
)
REQUESTS = (
    "SELECT run_id, cancel_reason FROM json_each(?) AS watched CROSS JOIN diagnosis_run"
    " WHERE run_id = watched.value AND cancel_reason IS NOT NULL"
)
OWNERS = "SELECT DISTINCT owner_id FROM stream WHERE owner_id IS NOT NULL AND owner_id <> ? ORDER BY owner_id"
RUNS_OF_OWNER = "SELECT run_id FROM stream WHERE owner_id = ? AND stream_id > ? ORDER BY stream_id LIMIT ?"

INSERT_STREAM = (
    "INSERT INTO stream (stream_id, kind, session_id, run_id, head_seq, head_link, owner_id, owner_epoch)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
UPDATE_STREAM = "UPDATE stream SET head_seq = ?, head_link = ?, owner_id = ?, owner_epoch = ? WHERE stream_id = ?"
MOVE_STREAM = "UPDATE stream SET head_seq = ?, head_link = ? WHERE stream_id = ?"
"""The same where the owner stays, and with it the index of owners."""
INSERT_EVENT = (
    "INSERT INTO event (pos, stream_id, seq, event_id, type, version, session_id, run_id,"
    " occurred_us, recorded_us, body, body_hash, link) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_CONTENT = (
    "INSERT INTO content (stream_id, digest, salt, size_bytes, media_type, encoding, data, state)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (stream_id, digest) DO UPDATE SET"
    " encoding = excluded.encoding, data = excluded.data, state = excluded.state"
    " WHERE content.state = 'digest_only' AND excluded.state = 'stored'"
)

UPSERT_RUN = _upsert("diagnosis_run", RunRow._fields, ("run_id",), RUN_FIXED)
UPDATE_RUN = f"UPDATE diagnosis_run SET {' = ?, '.join(RunMoving._fields)} = ? WHERE run_id = ?"  # noqa: S608 - as above
UPSERT_STEP = _upsert("agent_step", StepRow._fields, ("run_id", "step_no"), ATTEMPT_FIXED)
UPSERT_TOOL = _upsert("tool_invocation", ToolRow._fields, ("run_id", "invocation_no"), ATTEMPT_FIXED)
UPSERT_CASE = _upsert("case_library", CaseRow._fields, ("diagnosis_id",), CASE_FIXED)
ADD_TO_SESSION = (
    f"INSERT INTO chat_session ({', '.join(SessionShare._fields)}, expires_us)"  # noqa: S608 - names of ours
    " VALUES (?1, ?2, ?3, ?4, ?5, ?3 + ?5)"
    " ON CONFLICT (session_id) DO UPDATE SET"
    " created_us = min(created_us, excluded.created_us),"
    " last_active_us = max(last_active_us, excluded.last_active_us),"
    " message_pair_count = message_pair_count + excluded.message_pair_count,"
    " ttl_us = coalesce(ttl_us, excluded.ttl_us),"
    " expires_us = max(last_active_us, excluded.last_active_us) + coalesce(ttl_us, excluded.ttl_us)"
)

RUNS_AFTER = (
    "SELECT stream_id, run_id, head_seq FROM stream WHERE stream_id > ? AND stream_id >= 'r:' AND stream_id < 'r;'"
    " ORDER BY stream_id LIMIT ?"
)
SESSIONS_AFTER = (
    "SELECT stream_id, session_id, head_seq FROM stream WHERE stream_id > ? AND stream_id >= 's:' AND stream_id < 's;'"
    " ORDER BY stream_id LIMIT ?"
)
RUNS_OF_SESSION = (
    "SELECT min(created_us), max(max(created_us, coalesce(ended_us, created_us))), count(answer_digest)"
    " FROM diagnosis_run WHERE session_id = ?"
)


def _rows_of_run(table: str, columns: tuple[str, ...], key: str, order: str) -> tuple[str, str]:
    read = f"SELECT {', '.join(columns)} FROM {table} WHERE {key} = ? ORDER BY {order}"  # noqa: S608 - names of ours
    return read, f"DELETE FROM {table} WHERE {key} = ?"  # noqa: S608 - names of ours


RUN_TABLES = (
    _rows_of_run("diagnosis_run", RunRow._fields, "run_id", "run_id"),
    _rows_of_run("agent_step", StepRow._fields, "run_id", "step_no"),
    _rows_of_run("tool_invocation", ToolRow._fields, "run_id", "invocation_no"),
    _rows_of_run("case_library", CaseRow._fields, "diagnosis_id", "case_id"),
)
"""How to read and how to delete the rows of one run, in each table that has some."""
SESSION_COLUMNS = (*SessionShare._fields, "expires_us")
SESSION_TABLE = _rows_of_run("chat_session", SESSION_COLUMNS, "session_id", "session_id")


def _rows_between(table: str, columns: tuple[str, ...], key: str, order: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {key} BETWEEN ? AND ? ORDER BY {key}, {order}"  # noqa: S608


ROWS_OF_RUNS = (
    _rows_between("diagnosis_run", RunRow._fields, "run_id", "run_id"),
    _rows_between("agent_step", StepRow._fields, "run_id", "step_no"),
    _rows_between("tool_invocation", ToolRow._fields, "run_id", "invocation_no"),
    _rows_between("case_library", CaseRow._fields, "diagnosis_id", "case_id"),
)
"""How to read the rows of all runs from one to another, in each table that has some,"""
RUN_ID_AT = (0, 0, 0, CaseRow._fields.index("diagnosis_id"))
"""and where in them the run's id is."""
ROWS_OF_SESSIONS = (
    _rows_between("chat_session", SESSION_COLUMNS, "session_id", "session_id"),
    RUNS_OF_SESSION.replace("SELECT ", "SELECT session_id, ").replace("= ?", "BETWEEN ? AND ? GROUP BY session_id"),
)
"""The same of sessions, and what the runs of each add up to."""
BODIES_OF_STREAMS = "SELECT stream_id, body FROM event WHERE stream_id BETWEEN ? AND ? ORDER BY stream_id, seq"


def _strays(table: str, key: str, prefix: str) -> tuple[str, str]:
    unknown = f"NOT EXISTS (SELECT 1 FROM stream WHERE stream_id = '{prefix}' || {table}.{key})"  # noqa: S608 - names of ours
    return (
        f"SELECT DISTINCT {key} FROM {table} WHERE {key} > ? AND {unknown} ORDER BY {key} LIMIT ?",  # noqa: S608
        f"DELETE FROM {table} WHERE {key} = ? AND {unknown}",  # noqa: S608
    )


STRAYS = (
    _strays("diagnosis_run", "run_id", run_stream("")),
    _strays("agent_step", "run_id", run_stream("")),
    _strays("tool_invocation", "run_id", run_stream("")),
    _strays("case_library", "diagnosis_id", run_stream("")),
    _strays("chat_session", "session_id", session_stream("")),
)
"""How to find and how to delete rows that the log does not know; only a connection without triggers can make some."""
