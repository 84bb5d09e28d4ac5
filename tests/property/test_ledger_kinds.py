"""SQLite keeps any kind of value in any column: a strange one is found, or shown to nobody (SPEC E9)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.contract.databases import Refused
from tests.property.test_ledger_flips import looked_at, whole
from tests.property.test_ledger_forging import forging

__all__ = ["whole"]

COLUMNS = {
    "stream": "stream_id kind session_id run_id head_seq head_link owner_id owner_epoch",
    "event": "stream_id seq event_id type version session_id run_id occurred_us recorded_us body body_hash link",
    "content": "stream_id digest salt size_bytes media_type encoding data state erased_seq key_id",
    "diagnosis_run": "run_id session_id",
    "agent_step": "run_id",
    "chat_session": "session_id",
}
VALUES = {"none": None, "an integer": 7, "a float": 0.5, "text": "?", "bytes": b"\xff", "much": 2**62}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("column", [f"{table}.{each}" for table, names in COLUMNS.items() for each in names.split()])
def test_a_value_that_changed_is_found_or_nobody_is_shown_it(whole, tmp_path, column, value):
    path: Path = tmp_path / "runs.db"
    for which in ("min", "max"):
        path.write_bytes(whole.data)
        if is_changed(path, *column.split("."), value, which):
            is_right, is_read = asyncio.run(looked_at(path))
            assert not is_right or is_read == whole.was_read


def is_changed(path: Path, table: str, column: str, value: object, which: str) -> bool:
    """Whether the value could be put into the first or last row."""
    key = {"stream": "stream_id", "agent_step": "run_id"}.get(table, "rowid")
    one = f"{key} = (SELECT {which}({key}) FROM {table})"
    with forging(path) as forger:
        before = forger.execute(f"SELECT {column}, typeof({column}) FROM {table} WHERE {one}")
        try:
            forger.execute(f"UPDATE {table} SET {column} = ? WHERE {one}", value)
        except Refused:
            return False
        return forger.execute(f"SELECT {column}, typeof({column}) FROM {table} WHERE {one}") != before
