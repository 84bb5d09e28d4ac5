"""Tiles hold what RFC 6962 says a subtree's root is, and few reads of them bring any proof (C2SP tlog-tiles)."""

from collections.abc import Sequence

import pytest

from ledger.audit.tree.merkle import (
    consistency_path,
    inclusion_path,
    leaf_hash,
    root_at,
    verify_consistency,
    verify_inclusion,
)
from ledger.audit.tree.tiles import TILE_HASHES, MissingLeaves, Place, Tile, TileReader, full_count, tile_of
from tests.audit.trees import leaves_of, root_of

SIZE = 70_000
LINKS = leaves_of(SIZE)
HASHES = [leaf_hash(link) for link in LINKS]


class MemoryTiles:
    """Full tiles of a log, and how often it was asked."""

    def __init__(self, links: Sequence[bytes], *, levels: int = 8) -> None:
        self.links_held = links
        self.tiles: dict[Place, Tile] = {}
        self.reads = 0
        hashes = [leaf_hash(link) for link in links]
        for level in range(levels):
            count = full_count(level, len(links))
            for index in range(count):
                tile = tile_of(level, index, hashes[index * TILE_HASHES : (index + 1) * TILE_HASHES])
                self.tiles[Place(level, index)] = tile
            hashes = [self.tiles[Place(level, index)].root for index in range(count)]

    def tile(self, place: Place) -> bytes | None:
        self.reads += 1
        found = self.tiles.get(place)
        return None if found is None else found.hashes

    def roots(self, level: int, first: int, count: int) -> list[bytes]:
        self.reads += 1
        places = (Place(level, index) for index in range(first, first + count))
        return [self.tiles[place].root for place in places if place in self.tiles]

    def links(self, first: int, count: int) -> Sequence[bytes]:
        self.reads += 1
        return self.links_held[first : first + count]


@pytest.fixture(scope="module")
def tiles() -> MemoryTiles:
    return MemoryTiles(LINKS)


def test_a_tree_of_70_000_has_the_full_tiles_that_the_document_counts(tiles):
    assert [full_count(level, SIZE) for level in range(3)] == [273, 1, 0]
    assert len(tiles.tiles) == 274
    assert tiles.tiles[Place(1, 0)].root == root_of(HASHES[:65_536])


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 65_792, 69_999, SIZE])
def test_the_root_at_any_size_comes_of_a_few_reads(tiles, size):
    tiles.reads = 0
    assert root_at(size, TileReader(tiles, size)) == root_of(HASHES[:size])
    assert tiles.reads <= 4


@pytest.mark.parametrize("size", [1, 256, 300, 65_536, 66_000, SIZE])
def test_proofs_come_of_a_few_reads_and_hold(tiles, size):
    root = root_of(HASHES[:size])
    for index in {0, size // 3, size // 2, size - 1}:
        tiles.reads = 0
        path = inclusion_path(index, size, TileReader(tiles, size))
        assert tiles.reads <= 6
        assert verify_inclusion(HASHES[index], index, size, path, root)
        tiles.reads = 0
        old = index + 1
        path = consistency_path(old, size, TileReader(tiles, size))
        assert tiles.reads <= 8
        assert verify_consistency(old, root_of(HASHES[:old]), size, root, path)


@pytest.mark.parametrize("levels", [0, 1])
def test_tiles_that_were_never_stored_are_made_of_the_events(levels):
    few = MemoryTiles(LINKS, levels=levels)
    assert root_at(SIZE, TileReader(few, SIZE)) == root_of(HASHES)


def test_a_log_that_is_shorter_than_the_tree_has_no_root_there():
    few = MemoryTiles(LINKS[:300])
    with pytest.raises(MissingLeaves):
        root_at(301, TileReader(few, 301))
    with pytest.raises(ValueError, match="a tile has 256 hashes, not 3"):
        tile_of(0, 0, HASHES[:3])
