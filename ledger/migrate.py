"""Brings a ledger's schema up to date, under the lock that every writer takes."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import sqlalchemy as sa

from harness.errors import LedgerUnavailable
from harness.ids import IdSource, RandomIds
from ledger.errors import LedgerUnreadable
from ledger.store.identity import HEAD_REVISION, Identity, require_live
from ledger.store.lock import FileLock
from ledger.store.place import check_file_system, check_single_name, prepare_folder
from ledger.store.probe import identify, is_blank
from ledger.store.sqlite import connect

OPEN_TIMEOUT_S = 30.0
"""How long opening and closing wait for other processes, which may be migrating."""


def lock_of(path: Path) -> FileLock:
    """The lock that everything holds that writes the ledger's file. What is no ledger gets none, and is named."""
    lock_path = Path(f"{path}.lock")
    check_file_system(path)
    check_single_name(path)
    # In this order: who makes a ledger makes its lock first.
    if not is_blank(path) and not lock_path.exists():
        identify(path)
    prepare_folder(path)
    try:
        return FileLock(lock_path)
    except OSError as error:
        raise LedgerUnreadable(path, f"cannot be locked ({error.strerror})") from error


def ensure_current(
    path: Path, lock: FileLock, *, revision: str = HEAD_REVISION, ids: IdSource | None = None
) -> tuple[str | None, Identity]:
    """Make or upgrade the ledger where needed: the revision it was at (None for a new one), and what it is now.

    A new ledger's permanent id is drawn from `ids`. Raises a `LedgerFileError`, and then nothing was changed.
    """
    with lock.held(OPEN_TIMEOUT_S):
        before = None if is_blank(path) else identify(path)
        if before is not None:
            require_live(path, before)
            if before.revision >= revision:
                return before.revision, before
        try:
            _upgrade(path, revision, ids or RandomIds())
        except (sa.exc.DBAPIError, LedgerUnavailable) as error:
            raise LedgerUnreadable(path, f"cannot be migrated ({error})") from error
        return (before.revision if before else None), identify(path)


def make(path: Path, ledger_id: str) -> None:
    """Make a ledger of that id in a file that nobody else knows of."""
    _upgrade(path, HEAD_REVISION, RandomIds(), ledger_id=ledger_id)


def migrations_folder() -> Path:
    """Where the migrations are: inside the installed package, or beside it in a checkout."""
    inside = Path(str(files("ledger"))) / "migrations"
    return inside if (inside / "env.py").is_file() else inside.parent.parent / "migrations"


def upgrade(connection: sa.Connection, revision: str, ids: IdSource, **facts: str) -> None:
    """Run what is missing up to `revision`; a new ledger's id is drawn from `ids`, or a fact. The caller commits."""
    # A ledger that is up to date has no need of Alembic, which takes a while to import.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes.update({"ledger_id": ids.salt()[:16].hex(), **facts, "connection": connection})
    command.upgrade(config, revision)


def _upgrade(path: Path, revision: str, ids: IdSource, **facts: str) -> None:
    engine = sa.create_engine("sqlite://", creator=lambda: connect(path), poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            upgrade(connection, revision, ids, **facts)
            connection.commit()
    finally:
        engine.dispose()
