"""A tree that grows at its end: leaves go in, full tiles come out, and its root can be had at any moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ledger.audit.tree.merkle import nodes_of, root_above, root_of_complete
from ledger.audit.tree.tiles import TILE_HASHES, Tile, tile_of


class GrowingTree:
    """What the last tile of each level has so far, and so a few kilobytes whatever its size."""

    def __init__(self) -> None:
        self.size = 0
        self._levels: list[list[bytes]] = [[]]
        self._tile_counts = [0]

    def extend(self, leaves: Sequence[bytes]) -> list[Tile]:
        """Add the hashes of the next leaves; the tiles that became full, each after those below it."""
        tiles: list[Tile] = []
        last, begin = self._levels[0], 0
        while begin < len(leaves):
            end = begin + TILE_HASHES - len(last)
            last += leaves[begin:end]
            begin = end
            if len(last) == TILE_HASHES:
                self._fill(0, tiles)
        self.size += len(leaves)
        return tiles

    def root(self) -> bytes:
        """The root of the leaves so far."""
        return root_above([root for hashes in reversed(self._levels) for root in _roots_of(hashes)])

    def _fill(self, level: int, tiles: list[Tile]) -> None:
        tile = tile_of(level, self._tile_counts[level], self._levels[level])
        tiles.append(tile)
        self._levels[level].clear()
        self._tile_counts[level] += 1
        if level + 1 == len(self._levels):
            self._levels.append([])
            self._tile_counts.append(0)
        self._levels[level + 1].append(tile.root)
        if len(self._levels[level + 1]) == TILE_HASHES:
            self._fill(level + 1, tiles)


def _roots_of(hashes: list[bytes]) -> Iterable[bytes]:
    """The roots of the complete subtrees that the hashes are, the largest first."""
    for level, index in nodes_of(0, len(hashes)):
        yield root_of_complete(hashes[index << level : (index + 1) << level])
