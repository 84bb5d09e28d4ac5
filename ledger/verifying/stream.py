"""One stream looked at from all sides in one go: its chain, what it adds up to, its contents and its rows.

An engine reads, all as of one moment: the stream's row, then its events, its contents, and the rows of its tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from ledger.append.deciding import StreamRow
from ledger.verifying.chain import Chain
from ledger.verifying.contents import Contents, Kept
from ledger.verifying.findings import Checked, Finding
from ledger.verifying.lifecycle import Lifecycle
from ledger.verifying.names import Names
from ledger.verifying.rows import RowCheck, RunRows, Table, session_table


class StreamCheck:
    """A stream under examination; `beside` has the tables of `empty_projections`, and is left as it was."""

    def __init__(self, ledger_id: str, stream: StreamRow, beside: sqlite3.Connection) -> None:
        self._stream = stream
        self._beside = beside
        self._chain = Chain(ledger_id, stream)
        self._lifecycle = Lifecycle(stream)
        self._contents = Contents(stream.stream_id, Names(beside))
        self._run_rows = RunRows(beside)
        self._rows = RowCheck()
        self._owner: Finding | None = None

    def add_events(self, page: Sequence[Sequence[Any]]) -> None:
        """The next events of the stream, each with the `COLUMNS` of a chain."""
        first_seq = self._chain.event_count + 1
        events = self._chain.add_page(page)
        self._contents.add_page(first_seq, events)
        self._run_rows.add(self._lifecycle.add_page(events))

    def end_events(self) -> None:
        """There are no more."""
        self._chain.end()
        is_right = self._finding() is None
        self._owner = self._lifecycle.owner_finding() if is_right else None
        self._contents.end_events(are_right=is_right, are_known=not self._lifecycle.unknown_count)

    def add_content(self, kept: Kept) -> None:
        """The next content of the stream."""
        self._contents.add(kept)

    def tables(self, runs: tuple[int | None, int | None, int] | None) -> Sequence[Table]:
        """The tables whose rows are to be compared, all contents being seen.

        None where the events are wrong: then nobody knows. Of a session `runs` are the beginning of its first run, its
        latest activity, and the answers of all, as the rows of its runs have it.
        """
        self._contents.end()
        if self._finding() is not None:
            return ()
        if self._stream.run_id is not None:
            return self._run_rows.tables(self._stream.run_id)
        if self._stream.session_id is None or runs is None:
            return ()
        return [session_table(self._lifecycle.shares_with(runs))]

    def add_rows(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        """The next rows that are there."""
        self._rows.add_page(table, rows)

    def end_table(self, table: Table) -> None:
        """There are no more."""
        self._rows.end(table)

    def result(self) -> Checked:
        """What it turned out to be, all tables being seen."""
        found = [finding for finding in (self._finding(), self._owner) if finding is not None]
        if self._rows.difference is not None:
            detail = f"not as its events add up to: {self._rows.difference}"
            found.append(Finding("row_differs", detail, self._stream.stream_id))
        return Checked(
            content_count=self._contents.count,
            row_count=self._rows.row_count,
            is_outdated=self._rows.is_outdated and self._rows.difference is None,
            findings=(*found, *self._contents.findings),
            tail=self._chain.tail,
            taken=self._contents.taken,
        )

    def close(self) -> None:
        """Leave nothing beside."""
        if self._beside.in_transaction:
            self._beside.execute("ROLLBACK")

    def _finding(self) -> Finding | None:
        """The first event that is wrong, in itself or where it is."""
        return self._chain.finding or self._lifecycle.finding
