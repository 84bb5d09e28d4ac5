"""Indexes for lists of runs and sessions; of runs only by what stays as it was at their start."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

NAMED = ("agent", "actor", "environment")


def upgrade() -> None:
    for column in NAMED:
        given = sa.text(f"{column} IS NOT NULL")
        op.create_index(
            f"diagnosis_run_by_{column}",
            "diagnosis_run",
            [column, "created_us", "run_id"],
            sqlite_where=given,
            postgresql_where=given,
        )
    op.create_index("chat_session_by_activity", "chat_session", ["last_active_us", "session_id"])


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
