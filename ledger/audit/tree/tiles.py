"""A tree is kept as tiles of 256 hashes, of which each is complete and never changes (C2SP tlog-tiles).

Tiles of level 0 hold the hashes of leaves; those above hold the roots of full tiles below. Only full ones are stored:
what the last of a level would hold so far is read from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ledger.audit.tree.merkle import HASH_BYTES, Node, leaf_hash, root_of_complete

TILE_HEIGHT = 8
TILE_HASHES = 1 << TILE_HEIGHT


class Place(NamedTuple):
    """Where a tile is; `tile_index` counts the tiles of its level from 0."""

    level: int
    tile_index: int


class Tile(NamedTuple):
    """A full tile and the root of its hashes."""

    level: int
    tile_index: int
    root: bytes
    hashes: bytes


class Stored(Protocol):
    """What a ledger has; each call is one read of its database."""

    def tile(self, place: Place) -> bytes | None:
        """The hashes of a full tile, one after another; None if it is not stored."""

    def roots(self, level: int, first: int, count: int) -> Sequence[bytes]:
        """The roots of stored tiles of that level, in order; fewer where not all are stored."""

    def links(self, first: int, count: int) -> Sequence[bytes]:
        """The links of events in the public order."""


class MissingLeaves(LookupError):
    """There are fewer events than a tree was said to have."""


def full_count(level: int, size: int) -> int:
    """How many full tiles a level has in a tree of that size."""
    return size >> TILE_HEIGHT * (level + 1)


def tile_of(level: int, index: int, hashes: Sequence[bytes]) -> Tile:
    """A full tile of its 256 hashes."""
    if len(hashes) != TILE_HASHES:
        raise ValueError(f"a tile has {TILE_HASHES} hashes, not {len(hashes)}")
    return Tile(level, index, root_of_complete(hashes), b"".join(hashes))


class TileReader:
    """The hashes of subtrees, each tile read once: a `ledger.audit.tree.merkle.HashReader` for trees of one size."""

    def __init__(self, stored: Stored, size: int) -> None:
        self._stored = stored
        self._size = size
        self._tiles: dict[Place, Sequence[bytes]] = {}

    def __call__(self, nodes: Sequence[Node]) -> list[bytes]:
        """Raises `MissingLeaves` where the log is shorter than the tree."""
        return [self._hash(node) for node in nodes]

    def _hash(self, node: Node) -> bytes:
        level, above = divmod(node.level, TILE_HEIGHT)
        index, begin = divmod(node.node_index << above, TILE_HASHES)
        return root_of_complete(self._hashes(Place(level, index))[begin : begin + (1 << above)])

    def _hashes(self, place: Place) -> Sequence[bytes]:
        """Those of the tile, or those that it has so far."""
        if place not in self._tiles:
            is_full = place.tile_index < full_count(place.level, self._size)
            stored = self._stored.tile(place) if is_full else None
            self._tiles[place] = self._from_below(place) if stored is None else split(stored)
        return self._tiles[place]

    def _from_below(self, place: Place) -> Sequence[bytes]:
        first = place.tile_index * TILE_HASHES
        count = min(TILE_HASHES, (self._size >> TILE_HEIGHT * place.level) - first)
        if place.level == 0:
            links = self._stored.links(first, count)
            if len(links) != count:
                raise MissingLeaves(f"the log ends before {first + count} events")
            return [leaf_hash(link) for link in links]
        below = place.level - 1
        roots = list(self._stored.roots(below, first, count))
        # What was never stored can always be made of the events.
        roots += [
            root_of_complete(self._hashes(Place(below, index))) for index in range(first + len(roots), first + count)
        ]
        return roots


def split(hashes: bytes) -> list[bytes]:
    """Hashes that follow one another, one by one."""
    return [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
