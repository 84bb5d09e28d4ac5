"""Who may do what: tokens, and the links and sessions by which people sign in with them; of all secrets only hashes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "token",
        sa.Column("token_id", Id, primary_key=True),
        sa.Column("secret_hash", sa.LargeBinary, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("rights", sa.Text, nullable=False),
        sa.Column("session_prefix", Id),
        sa.Column("created_us", Int, nullable=False),
        sa.Column("expires_us", Int),
        sa.Column("revoked_us", Int),
        sa.CheckConstraint("length(secret_hash) = 32", name="token_secret"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sign_in",
        sa.Column("secret_hash", sa.LargeBinary, primary_key=True),
        sa.Column("token_id", Id, sa.ForeignKey("token.token_id"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("expires_us", Int, nullable=False),
        sa.CheckConstraint("kind IN ('code', 'session') AND length(secret_hash) = 32", name="sign_in_secret"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
