"""What is changed in a database that a dump was restored into, before and after others may open it."""

from __future__ import annotations

from typing import Any

from ledger.store.postgres.connected import connected
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.probe import HERE

FORGET_OWNERS = "DELETE FROM owner"
"""Those of the other database: here all of them are dead."""
BEGIN = (
    f"INSERT INTO ledger_meta AS here (key, value) SELECT 'adoption', concat_ws(' ', ({HERE}), $1::text)"
    " ON CONFLICT (key) DO UPDATE SET value = CASE split_part(here.value, ' ', 1)"
    " WHEN split_part(excluded.value, ' ', 1) THEN here.value ELSE excluded.value END"
    " RETURNING split_part(value, ' ', 2)"
)
"""One adoption in each database, however often it is begun."""
COUNT_EVENTS = "SELECT count(*) FROM event"
SETTLE = f"UPDATE ledger_meta SET value = ({HERE}) WHERE key = 'home'"  # noqa: S608 - ours


async def prepare(place: PostgresPlace, restore_id: str) -> tuple[str, int]:
    """Take all owners for dead; the id of this adoption, which is that of one that was cut short, and how many events
    there are.
    """
    await _run(place, FORGET_OWNERS)
    return str(await _run(place, BEGIN, restore_id)), int(await _run(place, COUNT_EVENTS))


async def settle(place: PostgresPlace) -> None:
    """Let anybody open the ledger from now on."""
    await _run(place, SETTLE)


async def _run(place: PostgresPlace, statement: str, *values: str) -> Any:
    async with connected(place, {"statement_timeout": "0"}, answer_timeout_s=None) as connection:
        return await connection.fetchval(statement, *values)
