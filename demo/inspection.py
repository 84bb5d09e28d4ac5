"""Looking into the ledger's file itself, read-only and past all of our own code: whose rows are whose (SPEC R10)."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

# Rows of one run, and how many of them name another session or run than the stream they are in.
COUNTS = {
    "event": """
        SELECT count(*), count(CASE WHEN session_id <> :session_id OR run_id <> :run_id THEN 1 END)
        FROM event WHERE stream_id = 'r:' || :run_id
    """,
    "agent_step": """
        SELECT count(*), count(CASE WHEN session_id <> :session_id THEN 1 END) FROM agent_step WHERE run_id = :run_id
    """,
    "tool_invocation": """
        SELECT count(*), count(CASE WHEN session_id <> :session_id THEN 1 END)
        FROM tool_invocation WHERE run_id = :run_id
    """,
}
RUNS_OF_SESSION = "SELECT run_id FROM diagnosis_run WHERE session_id = :session_id ORDER BY created_us, run_id"
TABLES = tuple(COUNTS)


@dataclass(frozen=True, slots=True)
class RowsOfRun:
    """Rows of one run in one table."""

    table: str
    run_id: str
    row_count: int
    foreign_count: int
    """Those among them that belong to another session or run: there must be none."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the file says of one session."""

    session_id: str
    run_ids: tuple[str, ...]
    """Every run of the session, oldest first."""
    rows: tuple[RowsOfRun, ...]

    def of(self, table: str, run_id: str) -> RowsOfRun:
        """The rows of one run in one table."""
        return next(row for row in self.rows if (row.table, row.run_id) == (table, run_id))


def inspect_session(ledger_file: Path, session_id: str) -> Inspection:
    """Count the rows of every run of a session."""
    with closing(sqlite3.connect(f"file:{quote(str(ledger_file))}?mode=ro", uri=True)) as db:
        run_ids = tuple(row[0] for row in db.execute(RUNS_OF_SESSION, {"session_id": session_id}))
        rows = tuple(
            RowsOfRun(table, run_id, *db.execute(count, {"session_id": session_id, "run_id": run_id}).fetchone())
            for table, count in COUNTS.items()
            for run_id in run_ids
        )
    return Inspection(session_id, run_ids, rows)
