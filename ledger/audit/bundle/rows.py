"""The rows that a run's events add up to, compared with those that the ledger had (SPEC E1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import orjson

from ledger.append.folding import fold
from ledger.audit.bundle import limits
from ledger.audit.bundle.errors import BundleWrong
from ledger.audit.bundle.manifest import ROWS, RunManifest
from ledger.audit.bundle.reading import Archive
from ledger.errors import RunUnreadable
from ledger.projections.changes import Changes
from ledger.projections.rows import FOLD_VERSION, CaseRow, RunRow, StepRow, ToolRow
from ledger.projections.run import RunProjection

Row = RunRow | StepRow | ToolRow | CaseRow
TABLES: dict[type[Row], str] = {
    RunRow: "diagnosis_run",
    StepRow: "agent_step",
    ToolRow: "tool_invocation",
    CaseRow: "case_library",
}
"""In the order in which a bundle has their rows."""


def row_line(row: Row) -> bytes:
    """A row as it stands in a bundle, with the line's end; columns without a value are null."""
    fields = {"table": TABLES[type(row)], "row": row._asdict()}
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS) + b"\n"


class FoldedRows:
    """Folds a run's events page by page, and remembers of each row its hash only."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._run: RunProjection | None = None
        self._event_count = 0
        self._hashes: dict[tuple[int, int], bytes] = {}
        """By table and number."""

    def add_page(self, bodies: list[bytes]) -> None:
        """The next events; `BundleWrong` if they make no sense."""
        try:
            self._run, changes = fold(self._run_id, self._run, bodies)
        except RunUnreadable as error:
            place = f"events {self._event_count + 1} to {self._event_count + len(bodies)}"
            raise BundleWrong("event_unreadable", place, error.detail) from None
        self._event_count += len(bodies)
        for key, row in _numbered(changes):
            self._hashes[key] = sha256(row_line(row)).digest()

    def check(self, archive: Archive, manifest: RunManifest) -> int:
        """How many rows there are; `BundleWrong` for the first that is not what the events add up to."""
        wanted = iter(sorted(self._hashes.items()))
        for number, line in enumerate(_lines(archive, manifest), 1):
            (table, row_number), digest = next(wanted, ((0, 0), b""))
            if sha256(line).digest() != digest:
                named = f", {list(TABLES.values())[table]} {row_number}" if digest else ""
                raise BundleWrong("row_differs", f"row {number}{named}", "it is not what the events add up to")
        if next(wanted, None) is not None:
            raise BundleWrong("row_differs", ROWS, "there are fewer rows than the events add up to")
        return len(self._hashes)


def is_of_this_fold(archive: Archive, manifest: RunManifest) -> bool:
    """Whether the rows were made by the fold that this program has; others cannot be compared."""
    first = next(_lines(archive, manifest), b"")
    try:
        fields: Any = orjson.loads(first)
        return bool(fields["row"]["fold_version"] == FOLD_VERSION)
    except (orjson.JSONDecodeError, TypeError, KeyError):
        raise BundleWrong("row_differs", "row 1", "it is not that of a run") from None


def _lines(archive: Archive, manifest: RunManifest) -> Iterator[bytes]:
    return archive.lines(ROWS, limits.MAX_ROW_LINE_BYTES, manifest.digest_of(ROWS))


def _numbered(changes: Changes) -> Iterable[tuple[tuple[int, int], Row]]:
    yield from (((0, 0), run.row) for run in changes.runs.values())
    yield from (((1, row.step_no), row) for row in changes.step_rows)
    yield from (((2, row.invocation_no), row) for row in changes.tool_rows)
    yield from (((3, 0), row) for row in changes.cases.values())
