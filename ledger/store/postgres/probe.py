"""What a schema of a database is, found out without changing anything."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import asyncpg

from ledger.errors import LedgerMissing, LedgerNotMigrated, LedgerUnreadable, NotALedger
from ledger.store.identity import HEAD_REVISION, LIVE, READ_META, READ_REVISION, RESTORED, Identity, checked
from ledger.store.postgres.connected import connected
from ledger.store.postgres.place import PostgresPlace

log = logging.getLogger(__name__)

VERSION_MIN = 150_000
"""Of the server."""

HERE = (
    "SELECT system_identifier || '/' || pg_database.oid FROM pg_control_system(), pg_database"
    " WHERE datname = current_database()"
)
"""The database; one that a dump was restored into is another."""
COUNT_TABLES = (
    "SELECT count(*) FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = to_regnamespace(quote_ident(current_schema()))"
)


async def identify(place: PostgresPlace) -> Identity | None:
    """The ledger's identity, whatever known revision it is at; None for a schema without any table."""
    async with connected(place) as connection:
        return await identify_on(connection, place)


async def require_current(place: PostgresPlace) -> Identity:
    """As `identify`; `LedgerMissing` and `LedgerNotMigrated` unless there is one that is this program's."""
    identity = await identify(place)
    if identity is None:
        raise LedgerMissing(place)
    if identity.revision != HEAD_REVISION:
        raise LedgerNotMigrated(place, identity.revision, HEAD_REVISION)
    return identity


async def identify_on(connection: asyncpg.Connection[Any], place: PostgresPlace) -> Identity | None:
    """The same over a connection that is there."""
    found = int(await connection.fetchval("SELECT current_setting('server_version_num')"))
    if found < VERSION_MIN:
        raise LedgerUnreadable(place, f"is on PostgreSQL {found // 10_000}, and 15 is needed")
    if await connection.fetchval("SELECT current_setting('fsync')") == "off":
        log.warning("%s runs with fsync off: what it acknowledges can be lost when it crashes", place)
    if await connection.fetchval(COUNT_TABLES) == 0:
        return None
    try:
        meta = dict(await connection.fetch(READ_META))
        revisions = [row[0] for row in await connection.fetch(READ_REVISION)]
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError) as error:
        raise NotALedger(place, "holds tables, but no ledger") from error
    identity = checked(place, meta, revisions)
    home = meta.get("home")
    if home and identity.standing == LIVE and home != await connection.fetchval(HERE):
        return replace(identity, standing=RESTORED)
    return identity
