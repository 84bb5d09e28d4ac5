"""The rows of a run or session are those that its events add up to, field by field (SPEC E1).

Rows that an earlier version of the program folded may lack what is folded since, and differ in nothing else: so nobody
can hide a change behind an old version, but that something is not there yet.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple

from ledger.projections.changes import Changes
from ledger.projections.rows import FOLD_VERSION, CaseRow, RunRow, SessionShare, StepRow, ToolRow
from ledger.rebuild import table_of
from ledger.store import statements
from ledger.store.rows import write_changes

IN_MEMORY_MAX = 1_000
"""Rows; those of a longer run are kept on disk."""
FOLDED_OTHERWISE: dict[int, frozenset[str]] = {
    1: frozenset(
        {
            "diagnosis_run.fold_version",
            "diagnosis_run.orchestration_trace",
            "diagnosis_run.currency",
            "diagnosis_run.price_table",
            "diagnosis_run.cost_unknown_count",
            "diagnosis_run.reserved",
            "diagnosis_run.incidents",
            "agent_step.timeout_us",
            "agent_step.cost_micros",
            "agent_step.first_output_us",
            "agent_step.output_chunks",
            "agent_step.hidden_retry_count",
            "tool_invocation.timeout_us",
            "tool_invocation.hidden_retry_count",
        }
    ),
}
"""By fold version: the columns that its rows may be without, which those of the next one have."""
FOLD_VERSION_AT, FOLD_VERSION_COLUMN = RunRow._fields.index("fold_version"), "diagnosis_run.fold_version"
RUN_COLUMNS = (RunRow._fields, StepRow._fields, ToolRow._fields, CaseRow._fields)


class Table(NamedTuple):
    """Rows to compare: how to read those that are there, by the id of the run or session, and those that should be."""

    read: str
    columns: Sequence[str]
    wanted: Iterator[Sequence[Any]]

    @property
    def name(self) -> str:
        return table_of(self.read)


class RunRows:
    """The rows that the events of a run add up to; `beside` holds them if they are many, and takes them back."""

    def __init__(self, beside: sqlite3.Connection) -> None:
        self._beside = beside
        self._few = Changes()
        self._has_many = False

    def add(self, changes: Changes) -> None:
        """What a page of events changed."""
        changes.sessions.clear()
        self._few.merge(changes)
        if len(self._few.steps) + len(self._few.tools) > IN_MEMORY_MAX:
            use(self._beside)
            write_changes(self._beside, self._few)
            self._has_many = True
            self._few = Changes()

    def tables(self, run_id: str) -> list[Table]:
        """All of them, that of the run first."""
        if self._has_many:
            write_changes(self._beside, self._few)
            return [_beside(self._beside, read, run_id) for read, _ in statements.RUN_TABLES]
        few = self._few
        rows: tuple[list[Any], ...] = (
            [run.row for run in few.runs.values()],
            sorted(few.step_rows, key=lambda row: row.step_no),
            sorted(few.tool_rows, key=lambda row: row.invocation_no),
            list(few.cases.values()),
        )
        reads = (read for read, _ in statements.RUN_TABLES)
        return [Table(read, columns, iter(of)) for read, columns, of in zip(reads, RUN_COLUMNS, rows, strict=True)]


def session_table(shares: Sequence[SessionShare]) -> Table:
    """The row that these shares add up to."""
    rows = [reduce(SessionShare.plus, shares).row] if shares else []
    return Table(statements.SESSION_TABLE[0], statements.SESSION_COLUMNS, iter(rows))


def use(beside: sqlite3.Connection) -> None:
    """What is written there from now on is taken back when the stream was looked at."""
    if not beside.in_transaction:
        beside.execute("BEGIN")


def _beside(beside: sqlite3.Connection, read: str, key: str) -> Table:
    rows = beside.execute(read, (key,))
    return Table(read, [column[0] for column in rows.description], rows)


class RowCheck:
    """The rows of one run or session, table by table. After the first wrong one nothing more is said of them."""

    def __init__(self) -> None:
        self.row_count = 0
        self.difference: str | None = None
        """The first field that is not what it should be."""
        self.is_outdated = False
        """Whether some differ as those of an earlier version may."""
        self._excused: frozenset[str] = frozenset()
        self._number = 0

    def add_page(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        """The next rows of the table."""
        first_number = self._number + 1
        self._number += len(rows)
        all_wanted = list(islice(table.wanted, len(rows)))
        if all_wanted == rows:
            return
        for number, (found, wanted) in enumerate(zip(rows, all_wanted, strict=False), first_number):
            if self.difference is None and tuple(found) != tuple(wanted):
                self._compare(table, found, wanted, number)
        if self.difference is None and len(all_wanted) < len(rows):
            self.difference = f"the number of rows in {table.name}"

    def end(self, table: Table) -> None:
        """The table has no more rows."""
        self.row_count += self._number
        self._number = 0
        if self.difference is None and next(table.wanted, None) is not None:
            self.difference = f"the number of rows in {table.name}"

    def _compare(self, table: Table, found: Sequence[Any], wanted: Sequence[Any], number: int) -> None:
        if table.name == "diagnosis_run":
            self._excused = _excused_of(found[FOLD_VERSION_AT])
        unexcused = [
            name
            for name, one, other in zip(_names_of(table), found, wanted, strict=True)
            if one != other and not (name in self._excused and (one is None or name == FOLD_VERSION_COLUMN))
        ]
        if unexcused:
            self.difference = f"{unexcused[0]} (row {number})"
        else:
            self.is_outdated = True


def _names_of(table: Table) -> list[str]:
    return [f"{table.name}.{column}" for column in table.columns]


def _excused_of(fold_version: object) -> frozenset[str]:
    """What rows of that version may be without."""
    if not isinstance(fold_version, int) or fold_version not in FOLDED_OTHERWISE:
        return frozenset()
    return frozenset().union(*(FOLDED_OTHERWISE[version] for version in range(fold_version, FOLD_VERSION)))
