"""What is changed in a database that a dump was restored into, before and after others may open it."""

from __future__ import annotations

from typing import Any

from ledger.store.postgres.faults import FAULTS, unusable
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.probe import HERE

FORGET_OWNERS = "DELETE FROM owner"
"""Those of the other database: here all of them are dead."""
COUNT_EVENTS = "SELECT count(*) FROM event"
SETTLE = f"UPDATE ledger_meta SET value = ({HERE}) WHERE key = 'home'"  # noqa: S608 - ours


async def prepare(place: PostgresPlace) -> int:
    """Take all owners for dead; how many events there are."""
    await _run(place, FORGET_OWNERS)
    return int(await _run(place, COUNT_EVENTS))


async def settle(place: PostgresPlace) -> None:
    """Let anybody open the ledger from now on."""
    await _run(place, SETTLE)


async def _run(place: PostgresPlace, statement: str) -> Any:
    try:
        connection = await place.connect({"statement_timeout": "0"}, answer_timeout_s=None)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()
    except FAULTS as error:
        raise unusable(place, error) from error
