"""What erasing needs: whose event took a content, what is under way, and contents that are never changed otherwise."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text()
Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

# A content that is there already is left as it is, be it stored or erased, whatever the statement says to do then;
# but one of which only the digest was kept may get its data.
SQLITE_TRIGGERS = """
CREATE TRIGGER content_insert BEFORE INSERT ON content
WHEN EXISTS (
    SELECT 1 FROM content
    WHERE stream_id = NEW.stream_id AND digest = NEW.digest AND NOT (state = 'digest_only' AND NEW.state = 'stored')
)
BEGIN SELECT RAISE(IGNORE); END;

CREATE TRIGGER content_update BEFORE UPDATE ON content
WHEN (NEW.stream_id, NEW.digest, NEW.size_bytes, NEW.media_type)
        IS NOT (OLD.stream_id, OLD.digest, OLD.size_bytes, OLD.media_type)
    OR OLD.state = 'erased'
    OR NOT (
        (NEW.state = 'erased' AND NEW.salt IS NULL)
        OR (NEW.state = 'stored' AND OLD.state = 'digest_only' AND NEW.salt IS OLD.salt)
    )
BEGIN SELECT RAISE(ABORT, 'content_immutable: a content is erased or left as it is'); END;

CREATE TRIGGER content_delete BEFORE DELETE ON content
BEGIN SELECT RAISE(ABORT, 'content_permanent: that there was a content is never deleted'); END;
"""

# PostgreSQL has no REPLACE, and its one INSERT changes nothing but a content of which only the digest was kept.
POSTGRESQL_TRIGGERS = """
CREATE TRIGGER content_update BEFORE UPDATE ON content FOR EACH ROW
WHEN ((NEW.stream_id, NEW.digest, NEW.size_bytes, NEW.media_type)
        IS DISTINCT FROM (OLD.stream_id, OLD.digest, OLD.size_bytes, OLD.media_type)
    OR OLD.state = 'erased'
    OR NOT (
        (NEW.state = 'erased' AND NEW.salt IS NULL)
        OR (NEW.state = 'stored' AND OLD.state = 'digest_only' AND NEW.salt IS NOT DISTINCT FROM OLD.salt)
    ))
EXECUTE FUNCTION refuse('content_immutable: a content is erased or left as it is')

CREATE TRIGGER content_permanent BEFORE DELETE OR TRUNCATE ON content FOR EACH STATEMENT
EXECUTE FUNCTION refuse('content_permanent: that there was a content is never deleted')

ALTER TABLE content ENABLE ALWAYS TRIGGER content_update

ALTER TABLE content ENABLE ALWAYS TRIGGER content_permanent
"""


def upgrade() -> None:
    op.add_column("content", sa.Column("erased_seq", Int, nullable=True))
    op.create_table(
        "erasure",
        sa.Column("erasure_id", Id, primary_key=True),
        sa.Column("scope", Text, nullable=False),
        sa.Column("of_session_id", Id),
        sa.Column("of_run_id", Id),
        sa.Column("digest", Id),
        sa.Column("before_us", Int),
        sa.Column("reason", Text, nullable=False),
        sa.Column("actor", Text),
        sa.Column("is_marked", Int, nullable=False),
        sa.Column("run_count", Int, nullable=False),
        sa.Column("content_count", Int, nullable=False),
        sa.Column("size_bytes", Int, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "erased_run",
        sa.Column("erasure_id", Id, sa.ForeignKey("erasure.erasure_id"), primary_key=True),
        sa.Column("stream_id", Id, sa.ForeignKey("stream.stream_id"), primary_key=True),
        sa.Column("content_count", Int, nullable=False),
        sa.Column("size_bytes", Int, nullable=False),
        sqlite_with_rowid=False,
    )
    is_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in (SQLITE_TRIGGERS if is_sqlite else POSTGRESQL_TRIGGERS).split("\n\n"):
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
