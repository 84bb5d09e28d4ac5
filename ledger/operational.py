"""Tables that are no part of the record: rows come and go, and nothing is rebuilt from events (SPEC E1).

Of a secret only its hash is stored, so that whoever reads the ledger's file can enter nowhere with it.
"""

from __future__ import annotations

import sqlalchemy as sa

from ledger.columns import Id, Int, metadata, required

follower = sa.Table(
    "follower",
    metadata,
    sa.Column("name", Id, primary_key=True),
    required("leaf_index", Int),
    sa.Column("session_id", Id),
    sa.Column("run_id", Id),
    sqlite_with_rowid=False,
)

token = sa.Table(
    "token",
    metadata,
    sa.Column("token_id", Id, primary_key=True),
    required("secret_hash", sa.LargeBinary),
    required("owner", sa.Text),
    required("rights", sa.Text),
    sa.Column("session_prefix", Id),
    required("created_us", Int),
    sa.Column("expires_us", Int),
    sa.Column("revoked_us", Int),
    sa.CheckConstraint("length(secret_hash) = 32", name="token_secret"),
    sqlite_with_rowid=False,
)

sign_in = sa.Table(
    "sign_in",
    metadata,
    sa.Column("secret_hash", sa.LargeBinary, primary_key=True),
    sa.Column("token_id", Id, sa.ForeignKey("token.token_id"), nullable=False),
    required("kind", sa.Text),
    required("expires_us", Int),
    sa.CheckConstraint("kind IN ('code', 'session') AND length(secret_hash) = 32", name="sign_in_secret"),
    sqlite_with_rowid=False,
)
