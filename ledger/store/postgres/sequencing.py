"""The sequencer: gives each event its number in the public order, after it was committed (SPEC E8).

One transaction takes the head; then, as a statement of its own and so on a later snapshot, every committed event that
may have no number yet gets the next one. An event may be missed only if its transaction was still under way, and then
its number is at or above the snapshot's `xmin`, which becomes the watermark from which the next pass looks. So a late
commit gets a later number, and nothing that has been numbered is ever passed over.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import Any, NamedTuple

import asyncpg

from ledger.bell import Bell
from ledger.store.postgres.faults import FAULTS
from ledger.store.postgres.link import Link
from ledger.store.postgres.place import PostgresPlace

log = logging.getLogger(__name__)

POLL_S = 0.1
"""How often it is looked for what other processes have appended; this one's own appends are numbered at once."""
REST_S = 0.05
"""Between two passes, which take their share of the server while others append."""
EVENTS_AT_ONCE = 5_000
"""Numbered in one pass, and the rest of the last transaction among them."""

BY_INDEX = {
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""The few events at the end are always found by their index, whatever the planner has heard of the table."""
SET_BY_INDEX = "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in BY_INDEX.items())
"""The same for what is left of a transaction."""

IS_BEHIND = (
    "SELECT EXISTS (SELECT FROM event, tree_head WHERE event.xid >= watermark"
    " AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq))"
    " OR (SELECT system_identifier FROM tree_head) <> (SELECT system_identifier FROM pg_control_system())"
)
UNSEQUENCED = (
    "SELECT count(*), min(recorded_us) FROM event"
    " WHERE xid >= (SELECT CASE WHEN tree_head.system_identifier = here.system_identifier THEN watermark ELSE '0' END"
    " FROM tree_head, pg_control_system() AS here)"
    " AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)"
)
"""How many committed events have no number, and when the first of them was recorded."""
TAKE_HEAD = "SELECT watermark::text, system_identifier FROM tree_head FOR UPDATE SKIP LOCKED"
SEQUENCE = """
WITH bound AS (
    SELECT xid FROM event WHERE xid >= $1::text::xid8
    AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)
    ORDER BY xid OFFSET $2 LIMIT 1
), fresh AS (
    SELECT stream_id, seq, pos FROM event
    WHERE xid >= $1::text::xid8 AND xid <= coalesce((SELECT xid FROM bound), '18446744073709551615')
    AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)
), added AS (
    INSERT INTO leaf (leaf_index, stream_id, seq)
    SELECT tree_head.size + row_number() OVER (ORDER BY pos) - 1, stream_id, seq FROM fresh, tree_head
    RETURNING leaf_index
)
UPDATE tree_head SET size = size + (SELECT count(*) FROM added), system_identifier = $3,
    watermark = least(
        pg_snapshot_xmin(pg_current_snapshot()),
        (SELECT (xid::text::numeric + 1)::text::xid8 FROM bound)
    )
RETURNING (SELECT count(*) FROM added) AS added, EXISTS (SELECT FROM bound) AS is_full,
    CASE WHEN EXISTS (SELECT FROM added) THEN pg_notify($4, size::text) END
"""
HERE = "SELECT current_schema()::text, system_identifier FROM pg_control_system()"


class Here(NamedTuple):
    """Facts of a connection."""

    channel: str
    """Where the sequencers of this schema tell how far they have come."""
    cluster: int


async def here_of(connection: asyncpg.Connection[Any]) -> Here:
    """They stay for as long as the connection does."""
    ((schema, cluster),) = await connection.fetch(HERE)
    return Here(f"tachograph_{hashlib.sha256(schema.encode()).hexdigest()[:16]}", cluster)


async def sequence(connection: asyncpg.Connection[Any], here: Here, limit: int = EVENTS_AT_ONCE) -> tuple[int, bool]:
    """How many events were numbered, and whether there are more; none while another sequencer is at work."""
    async with connection.transaction():
        head = await connection.fetchrow(TAKE_HEAD)
        if head is None:
            return 0, False
        watermark, cluster = head
        if cluster != here.cluster:
            # Transaction numbers are of one cluster; in another one every event may be without its number.
            watermark = "0"
        done = await connection.fetchrow(SEQUENCE, watermark, limit, here.cluster, here.channel)
        assert done is not None, "the head is there"
        return done["added"], done["is_full"]


class Sequencer:
    """Numbers events for as long as the ledger is open. Any number of ledgers may do so at once."""

    def __init__(self, place: PostgresPlace, bell: Bell) -> None:
        self._link = Link(place, BY_INDEX)
        self._bell = bell
        self._task: asyncio.Task[None] | None = None
        self._here: Here | None = None
        self._is_stopping = False
        self._is_warned = False

    def start(self) -> None:
        """Begin, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Number what is there, and end."""
        self._is_stopping = True
        if self._task is not None:
            self._bell.ring()
            await self._task
        await self._link.close()

    async def _work(self) -> None:
        loop, rung = asyncio.get_running_loop(), self._bell.listen()
        try:
            while not self._is_stopping:
                timer = loop.call_later(POLL_S, rung.set)
                await rung.wait()
                has_written = timer.when() > loop.time()
                timer.cancel()
                rung.clear()
                await self._pass(has_written)
                await asyncio.sleep(REST_S)
        finally:
            self._bell.leave(rung)

    async def _pass(self, has_written: bool) -> None:
        """Number what is there; where this process has not written, it is looked first whether there is anything."""
        try:
            connection = await self._link.connection()
            self._here = self._here or await here_of(connection)
            has_more = has_written or bool(await connection.fetchval(IS_BEHIND))
            while has_more:
                _, has_more = await sequence(connection, self._here)
            self._is_warned = False
        except FAULTS as error:
            self._link.drop()
            self._here = None
            # It is tried several times a second: once is enough, until it goes again.
            if not self._is_warned:
                log.warning("events could not be given their public order: %s", error)
            self._is_warned = True
