"""How far named followers have come, and on PostgreSQL the public order that they follow (SPEC E8)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

# An event's number is given after it was committed, in an order that never changes. Events that can still have none
# bear a transaction number of the watermark or above, in the cluster that the head names.
PUBLIC_ORDER = """
CREATE INDEX event_xid ON event (xid)

CREATE TABLE leaf (
    leaf_index bigint PRIMARY KEY,
    stream_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT leaf_event UNIQUE (stream_id, seq)
)

CREATE TABLE tree_head (
    the_only boolean PRIMARY KEY CHECK (the_only),
    size bigint NOT NULL,
    watermark xid8 NOT NULL,
    system_identifier bigint NOT NULL
)

INSERT INTO tree_head (the_only, size, watermark, system_identifier) VALUES (true, 0, '0', 0)

CREATE TRIGGER leaf_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON leaf FOR EACH STATEMENT
EXECUTE FUNCTION refuse('leaf_immutable: the place of an event never changes')

CREATE TRIGGER tree_head_permanent BEFORE DELETE OR TRUNCATE ON tree_head FOR EACH STATEMENT
EXECUTE FUNCTION refuse('tree_head_permanent: the head of the public order is never deleted')

CREATE TRIGGER tree_head_grows BEFORE UPDATE ON tree_head FOR EACH ROW WHEN (NEW.size < OLD.size)
EXECUTE FUNCTION refuse('tree_head_permanent: the public order never shrinks')

ALTER TABLE leaf ENABLE ALWAYS TRIGGER leaf_immutable

ALTER TABLE tree_head ENABLE ALWAYS TRIGGER tree_head_permanent

ALTER TABLE tree_head ENABLE ALWAYS TRIGGER tree_head_grows
"""


def upgrade() -> None:
    op.create_table(
        "follower",
        sa.Column("name", Id, primary_key=True),
        sa.Column("leaf_index", Int, nullable=False),
        sqlite_with_rowid=False,
    )
    if op.get_context().dialect.name == "postgresql":
        for statement in PUBLIC_ORDER.split("\n\n"):
            op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
