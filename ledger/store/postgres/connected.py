"""A connection for one piece of work; what goes wrong with it is said of the ledger, as of one that cannot be used."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any

import asyncpg

from ledger.store.postgres.faults import FAULTS, unusable
from ledger.store.postgres.place import ANSWER_TIMEOUT_S, PostgresPlace


@contextlib.asynccontextmanager
async def connected(
    place: PostgresPlace,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    answer_timeout_s: float | None = ANSWER_TIMEOUT_S,
) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection to the database, until the block ends; a `LedgerFileError` for whatever the driver raises."""
    try:
        connection = await place.connect(settings, answer_timeout_s=answer_timeout_s)
        try:
            yield connection
        finally:
            await connection.close()
    except FAULTS as error:
        raise unusable(place, error) from error
