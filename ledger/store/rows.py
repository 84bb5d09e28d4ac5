"""Writes the rows that folding has changed, each once and in its last state."""

from __future__ import annotations

import functools
import itertools
import re
import sqlite3
from collections.abc import Sequence

from ledger.projections.changes import Changes
from ledger.store import statements

FEW_ROWS = 8
"""Fewer rows have a statement made for just so many; others, for the sake of few statements, for a power of two,"""
MANY_ROWS = 256
"""and for so many at most."""


def insert_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Insert the rows, many with each statement.

    Between two statements this thread waits for whichever other one runs Python then; within one they run side by side.
    """
    start = 0
    while start < len(rows):
        left = len(rows) - start
        size = left if left < FEW_ROWS else min(MANY_ROWS, 1 << (left.bit_length() - 1))
        values = list(itertools.chain.from_iterable(rows[start : start + size]))
        connection.execute(_of_rows(statement, size), values)
        start += size


_VALUES = re.compile(r"\(\?(, \?)*\)")


@functools.cache
def _of_rows(statement: str, size: int) -> str:
    """The statement for so many rows at once."""
    return _VALUES.sub(lambda found: ", ".join([found[0]] * size), statement, count=1)


def write_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Run the statement for each row."""
    if len(rows) == 1:
        connection.execute(statement, rows[0])
    elif rows:
        connection.executemany(statement, rows)


def write_changes(connection: sqlite3.Connection, changes: Changes) -> None:
    """Bring the projections up to date."""
    new = [run.row for run_id, run in changes.runs.items() if run_id in changes.begun]
    insert_rows(connection, statements.UPSERT_RUN, new)
    moved = [(*run.moving, run_id) for run_id, run in changes.runs.items() if run_id not in changes.begun]
    write_rows(connection, statements.UPDATE_RUN, moved)
    insert_rows(connection, statements.UPSERT_STEP, list(changes.step_rows))
    insert_rows(connection, statements.UPSERT_TOOL, list(changes.tool_rows))
    write_rows(connection, statements.UPSERT_CASE, list(changes.cases.values()))
    write_rows(connection, statements.ADD_TO_SESSION, list(changes.sessions.values()))
