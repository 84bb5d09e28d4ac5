"""Tiles and checkpoints of a ledger in a database, over a connection of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.audit.tree.tiles import Tile
from ledger.loop_thread import LoopThread
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.turns import Turns

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
        self._turns = Turns(place, thread)

    async def add(self, tiles: Sequence[Tile], checkpoint: StoredCheckpoint | None = None) -> None:
        await self._turns.do(partial(self._add, tiles, checkpoint))

    async def stop(self) -> None:
        """Let go of the connection."""
        await self._turns.stop()

    async def _add(self, tiles: Sequence[Tile], checkpoint: StoredCheckpoint | None) -> None:
        connection = await self._turns.connection()
        async with connection.transaction():
            if tiles:
                await connection.execute(PUT_TILES, *map(list, zip(*tiles, strict=True)))
            if checkpoint is not None:
                await connection.execute(PUT_CHECKPOINT, *checkpoint)
