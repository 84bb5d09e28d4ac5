"""Which rights a program needs: a role that owns nothing, and so cannot take away what guards the log (SPEC E2)."""

from __future__ import annotations

from typing import Any

import asyncpg

from ledger.store.postgres.connected import connected
from ledger.store.postgres.place import PostgresPlace

READ = ("ledger_meta", "alembic_version")
ADD_ONLY = ("event", "leaf", "tile", "checkpoint")
MOVE = {
    "stream": ("head_seq", "head_link", "owner_id", "owner_epoch"),
    "content": ("salt", "encoding", "data", "state", "erased_seq"),
    "tree_head": ("size", "watermark", "system_identifier"),
}
"""Tables that are added to, and the columns that may change in them."""
REPLACE = (
    "chat_session",
    "diagnosis_run",
    "agent_step",
    "tool_invocation",
    "case_library",
    "owner",
    "erasure",
    "erased_run",
    "follower",
    "run_text",
    "token",
    "sign_in",
)

QUOTE = "SELECT quote_ident($1), quote_ident(current_schema())"


async def grant_writer(place: PostgresPlace, role: str) -> None:
    """Give an existing role what opening, appending, erasing and rebuilding need, and nothing else."""
    async with connected(place) as connection, connection.transaction():
        await _grant(connection, role)


async def _grant(connection: asyncpg.Connection[Any], role: str) -> None:
    ((grantee, schema),) = await connection.fetch(QUOTE, role)
    await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {grantee}")
    rights = {
        "SELECT": (*READ, *ADD_ONLY, *MOVE, *REPLACE),
        "INSERT": (*ADD_ONLY, *MOVE, *REPLACE),
        "UPDATE, DELETE": REPLACE,
    }
    for right, tables in rights.items():
        await connection.execute(f"GRANT {right} ON {', '.join(tables)} TO {grantee}")
    for table, columns in MOVE.items():
        await connection.execute(f"GRANT UPDATE ({', '.join(columns)}) ON {table} TO {grantee}")
