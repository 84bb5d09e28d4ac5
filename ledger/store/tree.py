"""Tiles and checkpoints of an SQLite ledger, stored by its writer in a transaction of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.audit.tree.tiles import Tile
from ledger.store.batch import Batch
from ledger.store.faults import unavailable

# No other process can come in between: the writer holds the file's lock.
PUT_TILE = (
    "INSERT INTO tile (level, tile_index, root, hashes) SELECT :level, :tile_index, :root, :hashes"
    " WHERE NOT EXISTS (SELECT 1 FROM tile WHERE level = :level AND tile_index = :tile_index)"
)
PUT_CHECKPOINT = (
    "INSERT INTO checkpoint (origin, size, key_id, root, note, created_us)"
    " SELECT :origin, :size, :key_id, :root, :note, :created_us WHERE NOT EXISTS"
    " (SELECT 1 FROM checkpoint WHERE origin = :origin AND size = :size AND key_id = :key_id)"
)

Runner = Callable[[Callable[[Batch], Any]], Awaitable[Any]]


class SqliteTree:
    """A `ledger.audit.signing.store.TreeStore`; it may be used in any loop."""

    def __init__(self, run: Runner) -> None:
        self._run = run

    async def add(self, tiles: Sequence[Tile], checkpoint: StoredCheckpoint | None = None) -> None:
        try:
            await self._run(partial(_add, tiles, checkpoint))
        except sqlite3.Error as error:
            raise unavailable(error) from error


def _add(tiles: Sequence[Tile], checkpoint: StoredCheckpoint | None, batch: Batch) -> None:
    batch.connection.executemany(PUT_TILE, [tile._asdict() for tile in tiles])
    if checkpoint is not None:
        batch.connection.execute(PUT_CHECKPOINT, checkpoint._asdict())
