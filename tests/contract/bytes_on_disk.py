"""The bytes of a ledger as anybody finds them who opens its files without asking the database."""

from __future__ import annotations

from pathlib import Path

from tests.contract.databases import Database, PostgresOutsider


def found_in(database: Database, *needles: bytes) -> set[bytes]:
    """Which of the needles are in the files that hold the ledger's tables, and in SQLite's log."""
    stored = [file.read_bytes() for file in _files(database) if file.exists()]
    return {needle for needle in needles if any(needle in data for data in stored)}


def _files(database: Database) -> list[Path]:
    if not database.is_postgres:
        path = database.url.removeprefix("sqlite:///")
        return [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
    outsider = database.outsider()
    assert isinstance(outsider, PostgresOutsider)
    outsider.script("CHECKPOINT")
    folder, number = outsider.execute(
        "SELECT current_setting('data_directory'), oid::text FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    return [file for file in (Path(folder) / "base" / number).iterdir() if file.is_file()]
