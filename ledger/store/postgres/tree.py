"""Tiles and checkpoints of a ledger in a database, over a connection of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.audit.tree.tiles import Tile
from ledger.loop_thread import LoopThread
from ledger.store.postgres.faults import FAULTS, unavailable
from ledger.store.postgres.link import Link
from ledger.store.postgres.place import PostgresPlace

PUT_TILES = (
    "INSERT INTO tile (level, tile_index, root, hashes)"
    " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[]) ON CONFLICT DO NOTHING"
)
PUT_CHECKPOINT = (
    "INSERT INTO checkpoint (origin, size, key_id, root, note, created_us)"
    " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
)


class PostgresTree:
    """A `ledger.audit.signing.store.TreeStore`; its connection is used in the ledger's own loop."""

    def __init__(self, place: PostgresPlace, thread: LoopThread) -> None:
        self._link = Link(place)
        self._thread = thread
        self._turn = asyncio.Lock()

    async def add(self, tiles: Sequence[Tile], checkpoint: StoredCheckpoint | None = None) -> None:
        # Whoever waits may be cancelled; what is under way goes on to its end.
        adding = self._thread.call(self._add(tiles, checkpoint))
        try:
            await asyncio.shield(asyncio.wrap_future(adding))
        except FAULTS as error:
            raise unavailable(error) from error

    async def stop(self) -> None:
        """Let go of the connection."""
        async with self._turn:
            await self._link.close()

    async def _add(self, tiles: Sequence[Tile], checkpoint: StoredCheckpoint | None) -> None:
        async with self._turn:
            try:
                connection = await self._link.connection()
                async with connection.transaction():
                    if tiles:
                        await connection.execute(PUT_TILES, *map(list, zip(*tiles, strict=True)))
                    if checkpoint is not None:
                        await connection.execute(PUT_CHECKPOINT, *checkpoint)
            except FAULTS:
                self._link.drop()
                raise
