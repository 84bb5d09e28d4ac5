"""A tree that grows has the root and the tiles of the definition at every size, however the leaves come (SPEC E9)."""

from ledger.audit.tree.growing import GrowingTree
from ledger.audit.tree.merkle import leaf_hash
from ledger.audit.tree.tiles import Place
from tests.audit.test_tiles import LINKS, MemoryTiles
from tests.audit.trees import leaves_of, root_of

HASHES = [leaf_hash(link) for link in leaves_of(1_100)]


def test_its_root_is_that_of_its_leaves_at_every_size():
    tree = GrowingTree()
    for size in range(len(HASHES)):
        if size % 7 == 0 or size % 256 in (0, 1, 255):
            assert tree.root() == root_of(HASHES[:size])
        tree.extend([HASHES[size]])
        assert tree.size == size + 1


def test_the_full_tiles_come_out_once_whatever_the_pieces():
    expected = MemoryTiles(LINKS).tiles
    hashes = [leaf_hash(link) for link in LINKS]
    for piece in (1_000, 65_536, len(hashes)):
        tree = GrowingTree()
        tiles = [tile for at in range(0, len(hashes), piece) for tile in tree.extend(hashes[at : at + piece])]
        assert len(tiles) == len(expected)
        assert {Place(tile.level, tile.tile_index): tile for tile in tiles} == expected
        assert tree.root() == root_of(hashes)
