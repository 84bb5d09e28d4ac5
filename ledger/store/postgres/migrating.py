"""Brings a ledger's schema in a database up to date, one process at a time, all of it or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from harness.ids import IdSource, RandomIds
from ledger.errors import LedgerUnreadable
from ledger.migrate import OPEN_TIMEOUT_S, upgrade
from ledger.store.identity import HEAD_REVISION, RESTORED, Identity, require_live
from ledger.store.postgres.faults import FAULTS, unusable
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.probe import identify, identify_on

LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('tachograph migrates ' || :schema, 0))")
PATIENT = {"statement_timeout": "0", "lock_timeout": f"{OPEN_TIMEOUT_S:.0f}s"}
CURRENT_SCHEMA = sa.text("SELECT quote_ident(current_schema())")


async def ensure_current(
    place: PostgresPlace, *, revision: str = HEAD_REVISION, ids: IdSource | None = None, adopts: bool = False
) -> tuple[str | None, Identity]:
    """Make or upgrade the ledger where needed: the revision it was at (None for a new one), and what it is now.

    A new ledger's permanent id is drawn from `ids`. With `adopts` it may be one that was restored from a dump. Raises a
    `LedgerFileError`, and then nothing was changed.
    """
    before = await identify(place)
    if before is not None and not (adopts and before.standing == RESTORED):
        require_live(place, before)
    if before is not None and before.revision >= revision:
        return before.revision, before
    async with _in_transaction(place) as connection:
        before = await _upgrade(connection, place, revision, ids or RandomIds())
    now = await identify(place)
    assert now is not None, "it was made just now"
    return (before.revision if before else None), now


@contextlib.asynccontextmanager
async def making(place: PostgresPlace, ledger_id: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    """Make a ledger of that id where there is nothing yet, to be filled in the same transaction."""
    async with _in_transaction(place) as connection:
        before = await _upgrade(connection, place, HEAD_REVISION, RandomIds(), ledger_id=ledger_id)
        if before is not None:
            raise LedgerUnreadable(place, "holds a ledger already, and nothing is overwritten")
        yield await _driver_of(connection)


@contextlib.asynccontextmanager
async def _in_transaction(place: PostgresPlace) -> AsyncIterator[AsyncConnection]:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        poolclass=sa.NullPool,
        async_creator=lambda: place.connect(PATIENT, answer_timeout_s=None),
    )
    try:
        async with engine.begin() as connection:
            yield connection
    except FAULTS as error:
        raise unusable(place, error) from error
    except sa.exc.DBAPIError as error:
        raise LedgerUnreadable(place, f"cannot be migrated ({error.orig})") from error
    finally:
        await engine.dispose()


async def _upgrade(
    connection: AsyncConnection, place: PostgresPlace, revision: str, ids: IdSource, **facts: str
) -> Identity | None:
    """What was there, seen by the one process that migrates now."""
    if place.schema is not None:
        await connection.execute(sa.schema.CreateSchema(place.schema, if_not_exists=True))
    schema = (await connection.execute(CURRENT_SCHEMA)).scalar_one()
    if schema is None:
        raise LedgerUnreadable(place, "has no schema that the user's search path names")
    await connection.execute(LOCK, {"schema": schema})
    before = await identify_on(await _driver_of(connection), place)
    if before is None or before.revision < revision:
        await connection.run_sync(lambda sync: upgrade(sync, revision, ids, schema=schema, **facts))
    return before


async def _driver_of(connection: AsyncConnection) -> asyncpg.Connection[Any]:
    driver = (await connection.get_raw_connection()).driver_connection
    assert driver is not None, "it has just been used"
    return cast("asyncpg.Connection[Any]", driver)
