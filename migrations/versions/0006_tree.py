"""The tiles of the Merkle tree over the log, and what was signed of it; both are only added to (SPEC E2, E9)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Bytes = sa.LargeBinary()
Text = sa.Text()
Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

# Nor is one put in the place of another by a REPLACE.
SQLITE_TRIGGERS = """
CREATE TRIGGER tile_insert BEFORE INSERT ON tile
WHEN EXISTS (SELECT 1 FROM tile WHERE level = NEW.level AND tile_index = NEW.tile_index)
BEGIN SELECT RAISE(ABORT, 'tile_immutable: the tile exists'); END;

CREATE TRIGGER tile_update BEFORE UPDATE ON tile
BEGIN SELECT RAISE(ABORT, 'tile_immutable: a tile is never changed'); END;

CREATE TRIGGER tile_delete BEFORE DELETE ON tile
BEGIN SELECT RAISE(ABORT, 'tile_immutable: a tile is never deleted'); END;

CREATE TRIGGER checkpoint_insert BEFORE INSERT ON checkpoint
WHEN EXISTS (SELECT 1 FROM checkpoint WHERE origin = NEW.origin AND size = NEW.size AND key_id = NEW.key_id)
BEGIN SELECT RAISE(ABORT, 'checkpoint_immutable: the checkpoint exists'); END;

CREATE TRIGGER checkpoint_update BEFORE UPDATE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'checkpoint_immutable: a checkpoint is never changed'); END;

CREATE TRIGGER checkpoint_delete BEFORE DELETE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'checkpoint_immutable: a checkpoint is never deleted'); END;
"""

POSTGRESQL_TRIGGERS = """
CREATE TRIGGER tile_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON tile FOR EACH STATEMENT
EXECUTE FUNCTION refuse('tile_immutable: a tile is never changed or deleted')

CREATE TRIGGER checkpoint_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON checkpoint FOR EACH STATEMENT
EXECUTE FUNCTION refuse('checkpoint_immutable: a checkpoint is never changed or deleted')

ALTER TABLE tile ENABLE ALWAYS TRIGGER tile_immutable

ALTER TABLE checkpoint ENABLE ALWAYS TRIGGER checkpoint_immutable
"""


def upgrade() -> None:
    op.create_table(
        "tile",
        sa.Column("level", Int, primary_key=True, autoincrement=False),
        sa.Column("tile_index", Int, primary_key=True, autoincrement=False),
        sa.Column("root", Bytes, nullable=False),
        sa.Column("hashes", Bytes, nullable=False),
        sa.CheckConstraint("level >= 0 AND tile_index >= 0", name="tile_place"),
        sa.CheckConstraint("length(root) = 32 AND length(hashes) = 8192", name="tile_hashes"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("origin", Id, primary_key=True),
        sa.Column("size", Int, primary_key=True, autoincrement=False),
        sa.Column("key_id", Id, primary_key=True),
        sa.Column("root", Bytes, nullable=False),
        sa.Column("note", Text, nullable=False),
        sa.Column("created_us", Int, nullable=False),
        sa.CheckConstraint("size >= 0 AND length(root) = 32", name="checkpoint_tree"),
    )
    triggers = POSTGRESQL_TRIGGERS if op.get_context().dialect.name == "postgresql" else SQLITE_TRIGGERS
    for statement in triggers.split("\n\n"):
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
