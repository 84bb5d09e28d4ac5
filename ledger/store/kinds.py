"""SQLite keeps any kind of value in any column: what is of another kind than its column was put there by somebody."""

from __future__ import annotations

import sqlite3
from functools import cache

import sqlalchemy as sa

from ledger.schema import metadata

KIND = {"INTEGER": "integer", "BIGINT": "integer", "TEXT": "text", "JSON": "text", "BLOB": "blob", "REAL": "real"}
"""What `typeof` says of a value, by the type of its column."""


def strange_value(ledger: sqlite3.Connection, stream_id: str | None = None) -> str | None:
    """A value that its column cannot hold, as `table.column holds a KIND`; None where there is none such.

    Of one stream where it is named: of its row, its events and its contents, and of nothing else.
    """
    for table in metadata.tables.values():
        if stream_id is not None and "stream_id" not in table.c:
            continue
        where, values = ("TRUE", ()) if stream_id is None else ("stream_id = ?", (stream_id,))
        strange = f"SELECT {_strange(table)} AS strange FROM {table}"  # noqa: S608 - names of ours
        if row := ledger.execute(f"{strange} WHERE {where} AND strange IS NOT NULL LIMIT 1", values).fetchone():
            return str(row[0])
    return None


@cache
def _strange(table: sa.Table) -> str:
    """An expression that says what is wrong with a row, and NULL where nothing is."""
    cases = []
    for column in table.c:
        kind = KIND[column.type.compile(dialect=sa.dialects.sqlite.dialect())]
        kinds = f"'{kind}', 'null'" if column.nullable else f"'{kind}'"
        said = f"'{table.name}.{column.name} holds a value of kind ' || typeof({column.name})"
        cases.append(f"WHEN typeof({column.name}) NOT IN ({kinds}) THEN {said}")
    return f"CASE {' '.join(cases)} END"
