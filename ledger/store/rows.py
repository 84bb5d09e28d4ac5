"""Writes the rows that folding has changed, each once and in its last state."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from ledger.projections.changes import Changes
from ledger.store import statements

Values = Sequence[object] | Mapping[str, object]


def write_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[Values]) -> None:
    """Run the statement for each row."""
    if len(rows) == 1:
        connection.execute(statement, rows[0])
    elif rows:
        connection.executemany(statement, rows)


def write_changes(connection: sqlite3.Connection, changes: Changes) -> None:
    """Bring the projections up to date."""
    new = [run.row for run_id, run in changes.runs.items() if run_id in changes.begun]
    write_rows(connection, statements.UPSERT_RUN, new)
    moved = [run.moving | {"run_id": run_id} for run_id, run in changes.runs.items() if run_id not in changes.begun]
    write_rows(connection, statements.UPDATE_RUN, moved)
    write_rows(connection, statements.UPSERT_STEP, list(changes.step_rows))
    write_rows(connection, statements.UPSERT_TOOL, list(changes.tool_rows))
    write_rows(connection, statements.UPSERT_CASE, list(changes.cases.values()))
    write_rows(connection, statements.ADD_TO_SESSION, list(changes.sessions.values()))
