"""Runs the migrations on the connection that the ledger gives (`ledger.migrate`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from ledger.failpoints import reached
from ledger.schema import metadata


def migrate(connection: sa.Connection) -> None:
    """Everything in one transaction, so that upgrades take turns; on PostgreSQL the caller has begun it."""
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=is_sqlite,
        transactional_ddl=True,
        on_version_apply=lambda **_: reached("migration step"),
    )
    with context.begin_transaction():
        context.run_migrations()
    reached("before migration commit")


migrate(context.config.attributes["connection"])
