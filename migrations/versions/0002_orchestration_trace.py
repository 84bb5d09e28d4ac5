"""One nullable JSON column, and nothing else: rows from before keep no trace until a rebuild is asked for (R14)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("diagnosis_run", sa.Column("orchestration_trace", sa.JSON(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
