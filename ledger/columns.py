"""What the tables of a ledger are made of: kinds of columns that mean the same on both engines."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""64 bits everywhere; on SQLite the name `INTEGER` makes `pos` the row id."""
Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Compared byte by byte, as SQLite does by itself."""
Json = sa.JSON(none_as_null=True)


def only_where(condition: str) -> dict[str, Any]:
    """What makes an index partial."""
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}


def required(name: str, kind: Any) -> sa.Column[Any]:
    """A column that always has a value."""
    return sa.Column(name, kind, nullable=False)
