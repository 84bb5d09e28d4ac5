"""The sequencer: gives each event its number in the public order, after it was committed (SPEC E8).

One transaction takes the head; then, as a statement of its own and so on a later snapshot, every committed event that
may have no number yet gets the next one. An event may be missed only if its transaction was still under way, and then
its number is at or above the snapshot's `xmin`, which becomes the watermark from which the next pass looks. So a late
commit gets a later number, and nothing that has been numbered is ever passed over.

While somebody's transaction stays open for long, the watermark stands still. So a sequencer remembers its last snapshot
too, and looks only at what that did not see: what has begun since, and what was under way then.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import asyncpg

from ledger.following.bell import Bell
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

IS_BEHIND = """
SELECT EXISTS (
    SELECT FROM event WHERE xid >= greatest($1::text::xid8, (SELECT watermark FROM tree_head))
    AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)
) OR EXISTS (
    SELECT FROM unnest($2::text[]) AS late (xid) JOIN event ON event.xid = late.xid::xid8
    WHERE NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)
) OR (SELECT system_identifier FROM tree_head) <> $3 AS is_behind, pg_current_snapshot()::text AS snapshot
"""
UNSEQUENCED = (
    "SELECT count(*), min(recorded_us) FROM event"
    " WHERE xid >= (SELECT CASE WHEN tree_head.system_identifier = here.system_identifier THEN watermark ELSE '0' END"
    " FROM tree_head, pg_control_system() AS here)"
    " AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)"
)
"""How many committed events have no number, and when the first of them was recorded."""
TAKE_HEAD = "SELECT watermark::text, system_identifier FROM tree_head FOR UPDATE SKIP LOCKED"
SEQUENCE = """
WITH late AS (
    SELECT event.stream_id, event.seq, event.pos FROM unnest($5::text[]) AS late (xid)
    JOIN event ON event.xid = late.xid::xid8
    WHERE NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)
), bound AS (
    SELECT xid FROM event WHERE xid >= $1::text::xid8
    AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)
    ORDER BY xid OFFSET $2 LIMIT 1
), fresh AS (
    SELECT stream_id, seq, pos FROM event
    WHERE xid >= $1::text::xid8 AND xid <= coalesce((SELECT xid FROM bound), '18446744073709551615')
    AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq)
    UNION ALL SELECT stream_id, seq, pos FROM late
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
RETURNING (SELECT count(*) FROM added) AS added, (SELECT xid::text FROM bound) AS bound,
    pg_current_snapshot()::text AS snapshot,
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


@dataclass(slots=True)
class Progress:
    """What is known to be numbered, by who looks at it over one connection: all below a transaction, but for a few."""

    below: int = 0
    late: tuple[int, ...] = ()
    """Transactions below it that were under way, and whose events may have come since."""

    def from_watermark(self, watermark: int) -> tuple[str, list[str]]:
        """Where to look from, and where besides; everything below the watermark has its number."""
        if watermark >= self.below:
            return str(watermark), []
        return str(self.below), [str(xid) for xid in self.late if xid >= watermark]

    def saw(self, snapshot: str, bound: str | None = None) -> None:
        """All that the snapshot sees has its number, up to and with the transaction `bound` where one is given."""
        _, end, under_way = snapshot.split(":")
        self.below = int(end) if bound is None else int(bound) + 1
        self.late = tuple(xid for xid in map(int, filter(None, under_way.split(","))) if xid < self.below)


async def sequence(
    connection: asyncpg.Connection[Any], here: Here, limit: int = EVENTS_AT_ONCE, progress: Progress | None = None
) -> tuple[int, bool]:
    """How many events were numbered, and whether there are more; none while another sequencer is at work.

    What the `progress` of this connection has seen is not looked at again; it is brought up to date.
    """
    known = progress or Progress()
    async with connection.transaction():
        head = await connection.fetchrow(TAKE_HEAD)
        if head is None:
            return 0, False
        watermark, cluster = head
        # Transaction numbers are of one cluster; in another one every event may be without its number.
        start, late = known.from_watermark(int(watermark)) if cluster == here.cluster else ("0", [])
        done = await connection.fetchrow(SEQUENCE, start, limit, here.cluster, here.channel, late)
        assert done is not None, "the head is there"
    known.saw(done["snapshot"], done["bound"])
    return done["added"], done["bound"] is not None


class Sequencer:
    """Numbers events for as long as the ledger is open. Any number of ledgers may do so at once."""

    def __init__(self, place: PostgresPlace, bell: Bell) -> None:
        self._link = Link(place, BY_INDEX)
        self._bell = bell
        self._task: asyncio.Task[None] | None = None
        self._connection: asyncpg.Connection[Any] | None = None
        self._here: Here | None = None
        self._progress = Progress()
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
            # What was appended during the last rest.
            await self._pass(has_written=True)
        finally:
            self._bell.leave(rung)

    async def _pass(self, has_written: bool) -> None:
        """Number what is there; where this process has not written, it is looked first whether there is anything."""
        try:
            connection = await self._link.connection()
            if self._here is None or connection is not self._connection:
                # What another server knows may be less than what this one's predecessor knew.
                self._progress, self._here = Progress(), await here_of(connection)
                self._connection = connection
            has_more = has_written or await self._is_behind(connection, self._here)
            while has_more:
                _, has_more = await sequence(connection, self._here, progress=self._progress)
            self._is_warned = False
        except FAULTS as error:
            self._link.drop()
            self._here = None
            # It is tried several times a second: once is enough, until it goes again.
            if not self._is_warned:
                log.warning("events could not be given their public order: %s", error)
            self._is_warned = True

    async def _is_behind(self, connection: asyncpg.Connection[Any], here: Here) -> bool:
        start, late = self._progress.from_watermark(0)
        found = await connection.fetchrow(IS_BEHIND, start, late, here.cluster)
        if found is not None and not found["is_behind"]:
            self._progress.saw(found["snapshot"])
            return False
        return True
