"""The tree of a ledger is that of its events in the public order, kept in tiles and proven by few reads (SPEC E9)."""

import asyncio
import contextlib

import pytest
import sqlalchemy as sa

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.audit.tree.growing import GrowingTree
from ledger.audit.tree.merkle import leaf_hash, verify_inclusion
from ledger.audit.tree.tiles import MissingLeaves, Place
from tests.audit.trees import root_of
from tests.contract.test_checkpoints import lay_open
from tests.contract.test_following import ordered, record_many, take
from tests.ledger.scripted import ScriptedRun

EVENTS = 300
ROOT = b"\x01" * 32
ORIGIN = "log.example"
CHECKPOINT = StoredCheckpoint(ORIGIN, 256, "c74f20a3", ROOT, "a note", 1)


@pytest.fixture
async def grown(ledger):
    """A ledger of so many events, more than a tile has."""
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    await record_many(ledger, run, EVENTS - 2)
    await ordered(ledger, EVENTS)
    return ledger


async def on_tree(ledger, look):
    return await ledger.reader.on_tree(look)


async def links_of(ledger):
    return await on_tree(ledger, lambda tree: tree.links(0, 10_000))


async def add_tiles(ledger):
    """Store the tiles of all events."""
    links = await links_of(ledger)
    tiles = GrowingTree().extend([leaf_hash(link) for link in links])
    await ledger._engine.tree.add(tiles)
    return tiles


async def test_leaves_are_the_links_of_events_in_the_public_order(grown):
    followed = [event.link for _, event in await take(grown.reader.follow(), EVENTS)]
    links = await links_of(grown)
    assert [link.hex() for link in links] == followed
    assert await on_tree(grown, lambda tree: tree.size()) == EVENTS
    assert await on_tree(grown, lambda tree: tree.links(290, 100)) == links[290:]
    place, link = await on_tree(grown, lambda tree: tree.place_of("r:run-1", 200))
    assert links[place] == link
    assert await on_tree(grown, lambda tree: tree.place_of("r:run-1", 2_000)) is None


@pytest.mark.parametrize("is_stored", [False, True], ids=["of events alone", "of tiles"])
async def test_roots_and_proofs_of_any_size_are_those_of_the_events(grown, is_stored):
    links = await links_of(grown)
    if is_stored:
        await add_tiles(grown)
    hashes = [leaf_hash(link) for link in links]
    for size in (0, 1, 255, 256, 257, EVENTS):
        assert await on_tree(grown, lambda tree, size=size: tree.root_at(size)) == root_of(hashes[:size])
    path = await on_tree(grown, lambda tree: tree.inclusion_path(7, EVENTS))
    assert verify_inclusion(hashes[7], 7, EVENTS, path, root_of(hashes))
    with pytest.raises(MissingLeaves):
        await on_tree(grown, lambda tree: tree.root_at(EVENTS + 1))


async def test_a_proof_takes_few_reads(grown):
    await add_tiles(grown)
    with counted() as statements:
        await on_tree(grown, lambda tree: tree.inclusion_path(7, EVENTS))
    assert sum("FROM tile" in statement or "link" in statement for statement in statements) == 2


@contextlib.contextmanager
def counted():
    statements = []

    def note(_connection, _cursor, statement, *_):
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield statements
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


async def test_tiles_and_checkpoints_may_be_added_by_several_at_once(grown, database):
    tiles = GrowingTree().extend([leaf_hash(link) for link in await links_of(grown)])
    async with await database.open() as other:
        trees = [grown._engine.tree, other._engine.tree] * 4
        await asyncio.gather(*(tree.add(tiles, CHECKPOINT) for tree in trees))
        assert await on_tree(other, lambda tree: tree.tile(Place(0, 0))) == tiles[0].hashes
        assert await on_tree(other, lambda tree: tree.roots(0, 0, 5)) == [tiles[0].root]
        assert await on_tree(other, lambda tree: tree.latest("log.example")) == CHECKPOINT
        assert await on_tree(other, lambda tree: tree.latest("other.example")) is None


async def test_what_was_added_stays_whatever_is_added_later(grown):
    store = grown._engine.tree
    (tile,) = await add_tiles(grown)
    await store.add([tile._replace(root=b"\x02" * 32)], CHECKPOINT)
    await store.add([], CHECKPOINT._replace(root=b"\x02" * 32, note="another"))
    await store.add([], CHECKPOINT._replace(size=300))
    await store.add([], CHECKPOINT._replace(size=299, origin="other.example", created_us=2))
    assert await on_tree(grown, lambda tree: tree.roots(0, 0, 1)) == [tile.root]
    assert (await on_tree(grown, lambda tree: tree.latest("log.example"))).size == 300
    found = [await on_tree(grown, lambda tree, size=size: tree.covering(size, ORIGIN)) for size in (1, 256, 257, 301)]
    assert [one and one.size for one in found] == [256, 256, 300, None]
    assert found[0] == CHECKPOINT
    assert (await on_tree(grown, lambda tree: tree.covering(1, "other.example"))).size == 299
    assert await on_tree(grown, lambda tree: tree.newest_origin()) == "other.example"
    assert await on_tree(grown, lambda tree: tree.head_of("r:run-1")) == EVENTS - 1
    assert await on_tree(grown, lambda tree: tree.head_of("r:run-9")) == 0


async def test_links_are_read_as_they_are_stored_whatever_somebody_took_away(ledger, plain):
    for submission in ScriptedRun().whole():
        ledger.journal.submit(submission).result()
    await ordered(ledger, 13)
    before = list(await ledger.reader.on_tree(lambda tree: tree.links(2, 5)))
    outsider = lay_open(plain, "event")
    outsider.execute("DELETE FROM event WHERE stream_id = 'r:run-1' AND seq = 5")
    after = await ledger.reader.on_tree(lambda tree: tree.links(2, 5))
    assert len(set(before) - set(after)) == 1
    assert len(after) == len(set(after)) == 5
