"""What signing needs of an engine: to add tiles and checkpoints, of which each is there once whoever adds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.audit.tree.tiles import Tile


class TreeStore(Protocol):
    """Where tiles and checkpoints are stored. What is there already stays as it is."""

    async def add(self, tiles: Sequence[Tile], checkpoint: StoredCheckpoint | None = None) -> None:
        """Store all of it in one transaction; `LedgerUnavailable` if nothing was stored."""
