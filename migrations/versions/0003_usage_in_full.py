"""Columns for cost, reservations, streams and incidents, all nullable: rows from before are right as they are."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text()
Json = sa.JSON()

COLUMNS: dict[str, dict[str, sa.types.TypeEngine[Any]]] = {
    "diagnosis_run": {
        "currency": Text,
        "price_table": Text,
        "cost_unknown_count": Int,
        "reserved": Json,
        "incidents": Json,
    },
    "agent_step": {
        "timeout_us": Int,
        "cost_micros": Int,
        "first_output_us": Int,
        "output_chunks": Int,
        "hidden_retry_count": Int,
    },
    "tool_invocation": {"timeout_us": Int, "hidden_retry_count": Int},
}


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        for name, kind in columns.items():
            op.add_column(table, sa.Column(name, kind, nullable=True))


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
