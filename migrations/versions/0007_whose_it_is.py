"""What a named follower wants; runs that have one owner until they end; and where a database was made (SPEC E7, E8)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

# Whoever lets go of a run says why in its last event, and so moves the head.
SQLITE = """
CREATE TRIGGER stream_owner BEFORE UPDATE OF owner_id, owner_epoch ON stream
WHEN (NEW.owner_id, NEW.owner_epoch) IS NOT (OLD.owner_id, OLD.owner_epoch)
    AND NOT (
        NEW.owner_id IS NULL AND NEW.owner_epoch IN (OLD.owner_epoch, OLD.owner_epoch + 1)
        AND NEW.head_seq > OLD.head_seq
    )
BEGIN SELECT RAISE(ABORT, 'stream_owner: a run has the owner that began it, until an event ends it'); END;
"""

# A dump brings along where the ledger was made, and so it is noticed where it is restored.
POSTGRESQL = """
DROP TRIGGER stream_epoch ON stream

CREATE TRIGGER stream_owner BEFORE UPDATE OF owner_id, owner_epoch ON stream FOR EACH ROW
WHEN ((NEW.owner_id, NEW.owner_epoch) IS DISTINCT FROM (OLD.owner_id, OLD.owner_epoch)
    AND NOT (
        NEW.owner_id IS NULL AND NEW.owner_epoch IN (OLD.owner_epoch, OLD.owner_epoch + 1)
        AND NEW.head_seq > OLD.head_seq
    ))
EXECUTE FUNCTION refuse('stream_owner: a run has the owner that began it, until an event ends it')

ALTER TABLE stream ENABLE ALWAYS TRIGGER stream_owner

INSERT INTO ledger_meta (key, value)
SELECT 'home', system_identifier || '/' || pg_database.oid FROM pg_control_system(), pg_database
WHERE datname = current_database()
"""


def upgrade() -> None:
    op.add_column("follower", sa.Column("session_id", Id))
    op.add_column("follower", sa.Column("run_id", Id))
    is_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in (SQLITE if is_sqlite else POSTGRESQL).split("\n\n"):
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
