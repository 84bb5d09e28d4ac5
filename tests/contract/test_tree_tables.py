"""Tiles and checkpoints never change, for every connection that leaves the triggers on (SPEC E2, E9)."""

import pytest

from tests.contract.databases import Refused, refused

TABLES = ("tile", "checkpoint")
RULES = r"immutable|duplicate key"
PUT_TILE = "INSERT INTO tile (level, tile_index, root, hashes) VALUES (?, ?, ?, ?)"
PUT_CHECKPOINT = "INSERT INTO checkpoint (origin, size, key_id, root, note, created_us) VALUES (?, ?, ?, ?, ?, ?)"
ROOT = b"\x01" * 32
TILE = b"\x02" * 8192
CHECKPOINT = ("log.example", 256, "c74f20a3", ROOT, "a note", 1)


@pytest.fixture
def outsider(ledger, plain):
    outsider = plain()
    for index in range(2):
        outsider.execute(PUT_TILE, (0, index, ROOT, TILE))
    outsider.execute(PUT_CHECKPOINT, CHECKPOINT)
    return outsider


ATTACKS = {
    "another root": "UPDATE tile SET root = hashes",
    "another place": "UPDATE tile SET tile_index = tile_index + 7",
    "update of nothing that matters": "UPDATE tile SET level = level",
    "a tile less": "DELETE FROM tile WHERE tile_index = 1",
    "no tile": "DELETE FROM tile",
    "the same tile": "INSERT INTO tile SELECT * FROM tile",
    "an upsert of a tile": "INSERT INTO tile SELECT * FROM tile WHERE true"
    " ON CONFLICT (level, tile_index) DO UPDATE SET hashes = excluded.hashes",
    "another size": "UPDATE checkpoint SET size = 1",
    "another note": "UPDATE checkpoint SET note = 'x'",
    "another time": "UPDATE checkpoint SET created_us = 2",
    "no checkpoint": "DELETE FROM checkpoint",
    "the same checkpoint": "INSERT INTO checkpoint SELECT * FROM checkpoint",
    "an upsert of a checkpoint": "INSERT INTO checkpoint SELECT * FROM checkpoint WHERE true"
    " ON CONFLICT (origin, size, key_id) DO UPDATE SET note = 'x'",
}
SQLITE_ATTACKS = {
    "replace of a tile": "REPLACE INTO tile SELECT * FROM tile",
    "insert or ignore of a tile": "INSERT OR IGNORE INTO tile SELECT * FROM tile",
    "update or replace of a tile": "UPDATE OR REPLACE tile SET tile_index = 0 WHERE tile_index = 1",
    "replace of a checkpoint": "REPLACE INTO checkpoint SELECT origin, size, key_id, root, 'x', 2 FROM checkpoint",
    "update or ignore of a checkpoint": "UPDATE OR IGNORE checkpoint SET note = 'x'",
}
POSTGRES_ATTACKS = {
    "no tile at all": "TRUNCATE tile",
    "no checkpoint at all": "TRUNCATE checkpoint",
    "a replica's session that updates": "SET session_replication_role = replica; UPDATE tile SET root = root",
    "a replica's session that deletes": "SET session_replication_role = replica; DELETE FROM checkpoint",
    "merge that deletes": "MERGE INTO checkpoint USING tile ON true WHEN MATCHED THEN DELETE",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_plain_connection_cannot_change_the_tree_or_what_was_signed(outsider, attack):
    with refused(outsider, TABLES, RULES):
        outsider.execute(attack)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("attack", SQLITE_ATTACKS.values(), ids=SQLITE_ATTACKS)
def test_nor_can_it_in_the_words_of_sqlite(outsider, attack):
    with refused(outsider, TABLES, RULES):
        outsider.execute(attack)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize("attack", POSTGRES_ATTACKS.values(), ids=POSTGRES_ATTACKS)
def test_nor_can_it_in_the_words_of_postgresql(outsider, plain, attack):
    with refused(outsider, TABLES, RULES):
        plain().script(attack)


def test_several_keys_may_sign_the_same_tree_and_one_key_signs_it_once(outsider):
    origin, size, key_id, *rest = CHECKPOINT
    outsider.execute(PUT_CHECKPOINT, (origin, size, "0badc0de", *rest))
    outsider.execute(PUT_CHECKPOINT, ("another.example", size, key_id, *rest))
    with pytest.raises(Refused, match=RULES):
        outsider.execute(PUT_CHECKPOINT, (origin, size, key_id, b"\x07" * 32, "another note", 2))


@pytest.mark.parametrize(
    ("put", "row"),
    [
        (PUT_TILE, (0, 9, ROOT[1:], TILE)),
        (PUT_TILE, (0, 9, ROOT, TILE[32:])),
        (PUT_TILE, (-1, 9, ROOT, TILE)),
        (PUT_TILE, (0, -9, ROOT, TILE)),
        (PUT_CHECKPOINT, ("log.example", -1, "c74f20a3", ROOT, "a note", 1)),
        (PUT_CHECKPOINT, ("log.example", 1, "c74f20a3", ROOT[1:], "a note", 1)),
    ],
)
def test_what_is_no_tile_and_no_checkpoint_is_refused(outsider, put, row):
    with pytest.raises(Refused, match=r"tile_place|tile_hashes|checkpoint_tree"):
        outsider.execute(put, row)
