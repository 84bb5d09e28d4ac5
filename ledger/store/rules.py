"""The rules of an SQLite ledger as its migrations make them: tables, indexes and triggers, word by word."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cache

import sqlalchemy as sa

from harness.ids import RandomIds
from ledger.migrate import upgrade
from ledger.store.identity import HEAD_REVISION

READ_RULES = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL"


def rules_of(ledger: sqlite3.Connection) -> dict[str, str]:
    """By kind and name; of what belongs to tables that migrations did not make, only what would be in the way."""
    made = _tables_made()
    return {
        f"{kind} {name}": " ".join(sql.split())
        for kind, name, table, sql in ledger.execute(READ_RULES)
        if table in made and (kind != "index" or f"index {name}" in rules_made())
    }


@cache
def rules_made() -> Mapping[str, str]:
    """What all migrations make of nothing."""
    engine = sa.create_engine("sqlite://", creator=_nowhere, poolclass=sa.StaticPool)
    try:
        with engine.connect() as connection:
            upgrade(connection, HEAD_REVISION, RandomIds())
            rows = connection.exec_driver_sql(READ_RULES).all()
    finally:
        engine.dispose()
    return {f"{kind} {name}": " ".join(sql.split()) for kind, name, _, sql in rows}


def _tables_made() -> set[str]:
    return {rule.partition(" ")[2] for rule in rules_made() if rule.startswith("table ")}


def _nowhere() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)
