"""The search index: the words of each run's question, answer and error message, filled from what is there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ledger.store.texts import INDEX_ALL, PAGE_RUNS, texts_of, words_of

revision = "0011"
down_revision = "0010"

# Rows that are counted by themselves might be numbered anew by a VACUUM. Words are split before they come here.
SQLITE = """
CREATE TABLE run_text (doc INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, words TEXT NOT NULL)

CREATE VIRTUAL TABLE run_text_index USING fts5(words, content='run_text', content_rowid='doc', tokenize='ascii')
"""

POSTGRESQL = """
CREATE TABLE run_text (run_id text COLLATE "C" PRIMARY KEY, words text NOT NULL)

CREATE INDEX run_text_index ON run_text USING gin (to_tsvector('simple', words))
"""
PAGE = sa.text(texts_of("run.run_id > :after ORDER BY run.run_id LIMIT :limit"))
INSERT = sa.text("INSERT INTO run_text (run_id, words) VALUES (:run_id, :words)")


def upgrade() -> None:
    is_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in (SQLITE if is_sqlite else POSTGRESQL).split("\n\n"):
        op.execute(statement)
    if not op.get_context().as_sql:
        _fill(op.get_bind())
    if is_sqlite:
        op.execute(INDEX_ALL)


def _fill(connection: sa.Connection) -> None:
    last = ""
    while rows := connection.execute(PAGE, {"after": last, "limit": PAGE_RUNS}).all():
        last = rows[-1][0]
        found = [{"run_id": row[0], "words": words} for row in rows if (words := words_of(row))]
        if found:
            connection.execute(INSERT, found)


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
