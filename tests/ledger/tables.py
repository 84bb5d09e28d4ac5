"""Whole tables as text, to compare them byte for byte."""

from __future__ import annotations

from typing import Any

PROJECTIONS = ("chat_session", "diagnosis_run", "agent_step", "tool_invocation", "case_library")


def dump(connection: Any, *tables: str) -> dict[str, list[str]]:
    """Each row of each table, with every value quoted as SQL, so that 1 and '1' and x'31' differ."""
    return {table: _rows(connection, table) for table in tables or PROJECTIONS}


def _rows(connection: Any, table: str) -> list[str]:
    if getattr(connection, "dialect", "sqlite") == "postgresql":
        columns, quote = connection.columns(table), "quote_nullable({}::text)"
    else:
        columns, quote = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")], "quote({})"
    quoted = " || ' ' || ".join(f"'{column}=' || {quote.format(column)}" for column in columns)
    return sorted(row[0] for row in connection.execute(f"SELECT {quoted} FROM {table}"))
