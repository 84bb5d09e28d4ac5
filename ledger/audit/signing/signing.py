"""Whoever signs makes sure first that the log still begins with all that was signed of it before (SPEC E9).

The tree is made anew of the stored events when a ledger is opened, and grows with them from then on, so that a
checkpoint never rests on what was stored of the tree. Nothing is given out before it is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.clock import WallClock
from harness.errors import InvalidInput
from ledger.audit.errors import DamagedTree, InvalidCheckpoint, InvalidNote, LogChanged, LogShortened
from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.notes.notes import SigningKey
from ledger.audit.signing.anchor import Anchor
from ledger.audit.signing.keys import read_key_file
from ledger.audit.signing.store import TreeStore
from ledger.audit.signing.stored import StoredCheckpoint
from ledger.audit.tree.growing import GrowingTree
from ledger.audit.tree.merkle import leaf_hash
from ledger.audit.tree.tiles import Tile
from ledger.failpoints import reached
from ledger.reading.reader import LedgerReader

PAGE_LEAVES = 4_096
"""Read and hashed at a time."""
TILES_AT_ONCE = 64
"""In one transaction: half a megabyte."""
EVERY_MIN_S, EVERY_MAX_S = 1.0, 86_400.0

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """How the checkpoints of a ledger are signed."""

    key: SigningKey | Path | str
    """The key, or the file in which it is, outside the database."""
    origin: str | None = None
    """Which log it is; the key's name where nobody says otherwise. A restored log has a name of its own below it."""
    anchor: Path | str | None = None
    """The file to which each checkpoint is appended."""
    every_s: float = 60.0
    """How often one is signed while no run ends; none where nothing has come."""

    def __post_init__(self) -> None:
        if isinstance(self.every_s, bool) or not EVERY_MIN_S <= self.every_s <= EVERY_MAX_S:
            raise InvalidInput("every_s", f"must be from {EVERY_MIN_S:g} to {EVERY_MAX_S:g} seconds")

    def load_key(self) -> SigningKey:
        """The key; `KeyFileError` if the file is none, or may be read by others."""
        return self.key if isinstance(self.key, SigningKey) else read_key_file(Path(self.key))


Allowance = Callable[[], Awaitable[None]]
"""Raises where the key may sign nothing any more."""


class Signer:
    """Signs checkpoints of one ledger, one at a time."""

    def __init__(
        self,
        reader: LedgerReader,
        store: TreeStore,
        key: SigningKey,
        origins: Sequence[str],
        anchor: Anchor | None,
        clock: WallClock,
    ) -> None:
        """`origins` is what the log has been called, and last what it is called now."""
        *self._former, self.origin = origins
        self.key = key
        self._reader = reader
        self._store = store
        self._anchor = anchor
        self._clock = clock
        self._tree = GrowingTree()
        self._tiles: list[Tile] = []
        self._confirmed: set[tuple[int, bytes]] = set()
        self._is_first = True
        self._turn = asyncio.Lock()

    async def sign(self, may_sign: Allowance, on_progress: Progress = lambda _done, _of: None) -> StoredCheckpoint:
        """A checkpoint of all events that have their place; the one there is where nothing has come since.

        `may_sign` is asked once it is known of which events: none is signed that takes the key away.

        Raises `InconsistentLog` or `DamagedTree`, and then nothing was signed; `LedgerUnavailable` or `AnchorError`
        if it could not be stored.
        """
        async with self._turn:
            latest = await self._confirm_known(on_progress)
            await self._extend(await self._reader.on_tree(lambda tree: tree.size()), on_progress)
            await may_sign()
            if self._anchor is None:
                return await self._sign_now(latest, None)
            # Of two copies of the log, the second to come sees what the first has anchored.
            async with self._anchor.held():
                anchored = await asyncio.to_thread(self._anchor.latest, self.origin)
                if anchored is not None and (anchored.size, anchored.root) not in self._confirmed:
                    await self._confirm(anchored.size, anchored.root, on_progress)
                return await self._sign_now(latest, anchored)

    async def _sign_now(self, latest: StoredCheckpoint | None, anchored: Checkpoint | None) -> StoredCheckpoint:
        checkpoint = latest if latest is not None and self._is_current(latest) else self._signed()
        reached("checkpoint signed")
        await self._store_tiles(None if checkpoint is latest else checkpoint)
        reached("checkpoint stored")
        if self._anchor is not None and (anchored is None or anchored.size < checkpoint.size):
            await asyncio.to_thread(self._anchor.append, checkpoint.signed)
        return checkpoint

    async def _confirm_known(self, on_progress: Progress) -> StoredCheckpoint | None:
        """Make sure of what was signed before: what is latest in the anchor, and in the table, which is returned."""
        latest = await self._reader.on_tree(lambda tree: tree.latest(self.origin))
        anchored = None
        if self._anchor is not None:
            anchored = await asyncio.to_thread(self._anchor.latest, self.origin, of_all=self._is_first)
        known = {(one.size, one.root) for one in (latest, anchored) if one is not None}
        former: list[StoredCheckpoint | None] = []
        if self._is_first:
            # What was restored has nothing in its table that is not of its own events.
            former = await self._reader.on_tree(lambda tree: [tree.latest(origin) for origin in self._former])
        to_confirm = known | {(one.size, one.root) for one in former if one is not None}
        for size, root in sorted(to_confirm - self._confirmed):
            await self._confirm(size, root, on_progress)
        self._confirmed, self._is_first = known, False
        return latest

    def _is_current(self, latest: StoredCheckpoint) -> bool:
        if (latest.size, latest.key_id) != (self._tree.size, self.key.verifier.key_id):
            return False
        try:
            said = latest.signed.open((self.key.verifier,), origin=self.origin)
        except (InvalidNote, InvalidCheckpoint) as error:
            raise DamagedTree(f"the stored checkpoint of {latest.size:,} events is none ({error})") from error
        if (said.size, said.root) != (latest.size, latest.root):
            raise DamagedTree(f"the stored checkpoint of {latest.size:,} events is not what its note says")
        return True

    def _signed(self) -> StoredCheckpoint:
        checkpoint = Checkpoint(self.origin, self._tree.size, self._tree.root())
        note = checkpoint.sign(self.key).note
        key_id, now_us = self.key.verifier.key_id, max(0, self._clock.now_us())
        return StoredCheckpoint(self.origin, checkpoint.size, key_id, checkpoint.root, note, now_us)

    async def _confirm(self, size: int, root: bytes, on_progress: Progress) -> None:
        """Make sure that the log begins with what was signed."""
        if size < self._tree.size:
            # Others have signed it while this tree was made of the same events.
            found = await self._reader.on_tree(lambda tree: tree.root_at(size))
        else:
            await self._extend(size, on_progress)
            found = self._tree.root()
        if found != root:
            raise LogChanged(self.origin, size)

    async def _extend(self, size: int, on_progress: Progress) -> None:
        """Let the tree grow to that size, of stored events."""
        if size < self._tree.size:
            raise LogShortened(self.origin, self._tree.size, size)
        while self._tree.size < size:
            first, count = self._tree.size, min(PAGE_LEAVES, size - self._tree.size)
            links = await self._reader.on_tree(lambda tree, first=first, count=count: tree.links(first, count))  # type: ignore[misc]
            self._tiles += self._tree.extend([leaf_hash(link) for link in links])
            if len(links) < count:
                raise LogShortened(self.origin, size, self._tree.size)
            if len(self._tiles) >= TILES_AT_ONCE:
                await self._store_tiles()
            on_progress(self._tree.size, size)

    async def _store_tiles(self, checkpoint: StoredCheckpoint | None = None) -> None:
        """Store what is not there yet, of which what is there must be a part."""
        fresh = await self._fresh_tiles() if self._tiles else []
        if fresh or checkpoint is not None:
            await self._store.add(fresh, checkpoint)
        self._tiles.clear()

    async def _fresh_tiles(self) -> list[Tile]:
        fresh: list[Tile] = []
        for level in sorted({tile.level for tile in self._tiles}):
            made = [tile for tile in self._tiles if tile.level == level]
            first, count = made[0].tile_index, len(made)
            stored = await self._reader.on_tree(
                lambda tree, level=level, first=first, count=count: tree.roots(level, first, count)  # type: ignore[misc]
            )
            if list(stored) != [tile.root for tile in made[: len(stored)]]:
                raise DamagedTree("the tiles of the tree are not those of the events")
            fresh += made[len(stored) :]
        return fresh
