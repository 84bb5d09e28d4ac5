"""Brings a ledger's schema in a database up to date, one process at a time, all of it or nothing."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from harness.ids import IdSource, RandomIds
from ledger.errors import LedgerUnreadable
from ledger.migrate import OPEN_TIMEOUT_S, upgrade
from ledger.store.identity import HEAD_REVISION, Identity, require_live
from ledger.store.postgres.faults import FAULTS, unusable
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.probe import identify, identify_on

LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('tachograph migrates ' || :schema, 0))")
PATIENT = {"statement_timeout": "0", "lock_timeout": f"{OPEN_TIMEOUT_S:.0f}s"}
CURRENT_SCHEMA = sa.text("SELECT quote_ident(current_schema())")


async def ensure_current(
    place: PostgresPlace, *, revision: str = HEAD_REVISION, ids: IdSource | None = None
) -> tuple[str | None, Identity]:
    """Make or upgrade the ledger where needed: the revision it was at (None for a new one), and what it is now.

    A new ledger's permanent id is drawn from `ids`. Raises a `LedgerFileError`, and then nothing was changed.
    """
    before = await identify(place)
    if before is not None:
        require_live(place, before)
    if before is not None and before.revision >= revision:
        return before.revision, before
    engine = create_async_engine(
        "postgresql+asyncpg://",
        poolclass=sa.NullPool,
        async_creator=lambda: place.connect(PATIENT, answer_timeout_s=None),
    )
    try:
        async with engine.begin() as connection:
            before = await _upgrade(connection, place, revision, ids or RandomIds())
    except FAULTS as error:
        raise unusable(place, error) from error
    except sa.exc.DBAPIError as error:
        raise LedgerUnreadable(place, f"cannot be migrated ({error.orig})") from error
    finally:
        await engine.dispose()
    now = await identify(place)
    assert now is not None, "it was made just now"
    return (before.revision if before else None), now


async def _upgrade(connection: AsyncConnection, place: PostgresPlace, revision: str, ids: IdSource) -> Identity | None:
    """What was there, seen by the one process that migrates now."""
    if place.schema is not None:
        await connection.execute(sa.schema.CreateSchema(place.schema, if_not_exists=True))
    schema = (await connection.execute(CURRENT_SCHEMA)).scalar_one()
    if schema is None:
        raise LedgerUnreadable(place, "has no schema that the user's search path names")
    await connection.execute(LOCK, {"schema": schema})
    driver = (await connection.get_raw_connection()).driver_connection
    assert driver is not None, "it has just been used"
    before = await identify_on(driver, place)
    if before is None or before.revision < revision:
        await connection.run_sync(lambda sync: upgrade(sync, revision, ids, schema=schema))
    return before
