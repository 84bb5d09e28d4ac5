"""What there is to know about an SQLite ledger, its file, and the machine that it is on."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

from ledger.doctor import FREE_WARN_BYTES, Fact, schema_of, standing_of, unfinished_of
from ledger.errors import LedgerUnreadable
from ledger.migrate import lock_of
from ledger.store import statements
from ledger.store.identity import HEAD_REVISION
from ledger.store.owners import Owners
from ledger.store.place import NETWORK_FILE_SYSTEMS, file_system_of, size_of
from ledger.store.probe import connect_to_read, identify
from ledger.store.sqlite import LOCK_TIMEOUT_S, WAL_TRUNCATE_BYTES, WAL_WARN_BYTES

WAL_RESET_FAULT = ((3, 7, 0), (3, 51, 2))
"""From the first to the last version of SQLite in which a log that begins anew beside a writer may lose something."""
TRIGGERS = frozenset(
    {
        "agent_step_insert",
        "agent_step_update",
        "case_library_insert",
        "case_library_update",
        "checkpoint_delete",
        "checkpoint_insert",
        "checkpoint_update",
        "content_delete",
        "content_insert",
        "content_update",
        "diagnosis_run_insert",
        "diagnosis_run_update",
        "event_delete",
        "event_insert",
        "event_update",
        "ledger_meta_delete",
        "ledger_meta_insert",
        "ledger_meta_update",
        "stream_delete",
        "stream_head",
        "stream_insert",
        "stream_owner",
        "stream_update",
        "tile_delete",
        "tile_insert",
        "tile_update",
        "tool_invocation_insert",
        "tool_invocation_update",
    }
)
"""That hold the rules of a ledger."""
COUNTS = {
    "streams": "SELECT count(*) FROM stream",
    "contents": "SELECT count(*) FROM content",
    "content_bytes": "SELECT coalesce(sum(size_bytes), 0) FROM content WHERE salt IS NOT NULL",
}
OPEN_RUNS = "SELECT owner_id, count(*) FROM stream WHERE owner_id IS NOT NULL GROUP BY owner_id"


def examine_sqlite(path: Path) -> list[Fact]:
    """All about the ledger in that file; a `LedgerFileError` if there is none."""
    identity = identify(path)
    facts = [
        Fact("ledger_id", identity.ledger_id),
        standing_of(identity.standing),
        schema_of(identity.revision, HEAD_REVISION),
        _engine(sqlite3.sqlite_version_info),
        *_files(path),
    ]
    if identity.revision != HEAD_REVISION:
        return facts
    try:
        with contextlib.closing(connect_to_read(path)) as ledger:
            return facts + _contents(ledger, path)
    except sqlite3.Error as error:
        raise LedgerUnreadable(path, f"cannot be read ({error})") from error


def _engine(found: tuple[int, ...]) -> Fact:
    first, last = WAL_RESET_FAULT
    fault = " (has the WAL-reset fault, which the lock around every write and checkpoint keeps clear of)"
    return Fact("sqlite", ".".join(map(str, found)) + (fault if first <= found <= last else ""))


def _files(path: Path) -> list[Fact]:
    file_system = file_system_of(path)
    wal_bytes = size_of(Path(f"{path}-wal"))
    free_bytes = shutil.disk_usage(path.parent).free
    is_remote = file_system in NETWORK_FILE_SYSTEMS
    return [
        Fact("file_system", file_system or "unknown", "move it to a disk of this machine" if is_remote else None),
        Fact("file_bytes", size_of(path)),
        Fact(
            "wal_bytes",
            wal_bytes,
            "find the reader that does not end (lsof): it keeps the log" if wal_bytes > WAL_WARN_BYTES else None,
        ),
        Fact("wal_truncate_bytes", WAL_TRUNCATE_BYTES, origin="default"),
        Fact("free_bytes", free_bytes, "make room on the disk" if free_bytes < FREE_WARN_BYTES else None),
    ]


def _contents(ledger: sqlite3.Connection, path: Path) -> list[Fact]:
    found = {name for (name,) in ledger.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    missing = ", ".join(sorted(TRIGGERS - found))
    (unfinished,) = ledger.execute("SELECT count(*) FROM erasure").fetchone()
    (event_count,) = ledger.execute(statements.LAST_POS).fetchone()
    return [
        Fact("triggers", len(found), f"somebody took {missing} away: run `tachograph verify`" if missing else None),
        *_open_runs(dict(ledger.execute(OPEN_RUNS)), path),
        unfinished_of(unfinished),
        Fact("events", event_count),
        *(Fact(name, ledger.execute(count).fetchone()[0]) for name, count in COUNTS.items()),
    ]


def _open_runs(runs: dict[str, int], path: Path) -> list[Fact]:
    living = _living(path)
    dead = sum(count for owner_id, count in runs.items() if owner_id not in living)
    return [
        *(Fact(f"runs_open_of {owner_id}", runs.get(owner_id, 0)) for owner_id in living),
        Fact("runs_open_of_dead", dead, "they are ended as soon as a process opens the ledger" if dead else None),
    ]


def _living(path: Path) -> list[str]:
    """Who has the ledger open; asked under the lock, or one that just comes would be in the way."""
    if not Path(f"{path}.owners").is_dir():
        return []
    lock = lock_of(path)
    try:
        with lock.held(LOCK_TIMEOUT_S):
            return Owners(Path(f"{path}.owners")).living()
    finally:
        lock.close()
