"""What there is to know about a ledger in a database, and about its server."""

from __future__ import annotations

from typing import Any

import asyncpg

from ledger.doctor import Fact, schema_of, standing_of, unfinished_of
from ledger.errors import LedgerMissing
from ledger.store.identity import HEAD_REVISION
from ledger.store.postgres.connected import connected
from ledger.store.postgres.place import place_at
from ledger.store.postgres.probe import identify_on
from ledger.store.postgres.reads import READ_ONLY

SETTINGS = {
    "fsync": "what is acknowledged can be lost when the server crashes: set fsync = on",
    "full_page_writes": "a page half-written in a crash cannot be mended: set full_page_writes = on",
}
"""What must be on, or else."""
TRIGGERS_OFF = (
    "SELECT relname || '.' || tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
    " WHERE NOT tgisinternal AND tgenabled <> 'A' AND relnamespace = to_regnamespace(quote_ident(current_schema()))"
    " AND relname IN ('event', 'stream', 'content', 'ledger_meta') ORDER BY 1"
)
OPEN_RUNS = (
    "SELECT stream.owner_id, count(*), bool_and(owner.owner_id IS NOT NULL) FROM stream"
    " LEFT JOIN owner USING (owner_id) WHERE stream.owner_id IS NOT NULL GROUP BY stream.owner_id ORDER BY 1"
)
OLDEST = (
    "SELECT coalesce(max(extract(epoch FROM now() - xact_start))::bigint, 0) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
OLDEST_WARN_S = 600
COUNTS = {
    "database_bytes": "SELECT pg_database_size(current_database())",
    "events": "SELECT count(*) FROM event",
    "streams": "SELECT count(*) FROM stream",
    "contents": "SELECT count(*) FROM content",
    "content_bytes": "SELECT coalesce(sum(size_bytes), 0)::bigint FROM content WHERE salt IS NOT NULL",
}


async def examine_postgres(url: str) -> list[Fact]:
    """All about the ledger in that database; a `LedgerFileError` if there is none."""
    place = place_at(url)
    async with connected(place, READ_ONLY | {"statement_timeout": "0"}) as connection:
        identity = await identify_on(connection, place)
        if identity is None:
            raise LedgerMissing(place)
        facts = [
            Fact("ledger_id", identity.ledger_id),
            standing_of(identity.standing),
            schema_of(identity.revision, HEAD_REVISION),
            *await _server(connection),
        ]
        return facts if identity.revision != HEAD_REVISION else facts + await _contents(connection)


async def _server(connection: asyncpg.Connection[Any]) -> list[Fact]:
    facts = [Fact("postgresql", await connection.fetchval("SELECT current_setting('server_version')"))]
    for name, advice in SETTINGS.items():
        value = await connection.fetchval("SELECT current_setting($1)", name)
        facts.append(Fact(name, value, None if value == "on" else advice, origin="server"))
    oldest_s = await connection.fetchval(OLDEST)
    advice = "a transaction that stays open keeps what was erased: see pg_stat_activity"
    return [*facts, Fact("oldest_transaction_s", oldest_s, advice if oldest_s > OLDEST_WARN_S else None)]


async def _contents(connection: asyncpg.Connection[Any]) -> list[Fact]:
    off = ", ".join(row[0] for row in await connection.fetch(TRIGGERS_OFF))
    runs = await connection.fetch(OPEN_RUNS)
    dead = sum(count for _, count, is_there in runs if not is_there)
    unfinished = await connection.fetchval("SELECT count(*) FROM erasure")
    return [
        Fact("triggers_off", off or "none", "somebody turned them off: run `tachograph verify`" if off else None),
        *(Fact(f"runs_open_of {owner_id}", count) for owner_id, count, is_there in runs if is_there),
        Fact("runs_open_of_dead", dead, "they are ended as soon as a process opens the ledger" if dead else None),
        unfinished_of(unfinished),
        *[Fact(name, await connection.fetchval(count)) for name, count in COUNTS.items()],
    ]
