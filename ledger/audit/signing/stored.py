"""The tree and the checkpoints as a ledger has them, read over one connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from ledger.audit.errors import InvalidCheckpoint, InvalidNote
from ledger.audit.notes.checkpoint import SignedCheckpoint
from ledger.audit.tree.merkle import HASH_BYTES, inclusion_path, root_at
from ledger.audit.tree.tiles import Place, TileReader
from ledger.following.leaves import LeafQueries, last_leaf
from ledger.schema import Int, checkpoint, stream, tile

_level, _first = sa.bindparam("level", type_=Int), sa.bindparam("first", type_=Int)
TILE = sa.select(tile.c.hashes).where(tile.c.level == _level, tile.c.tile_index == _first)
ROOTS = (
    sa.select(tile.c.tile_index, tile.c.root)
    .where(tile.c.level == _level, tile.c.tile_index >= _first, tile.c.tile_index < sa.bindparam("end", type_=Int))
    .order_by(tile.c.tile_index)
)
CHECKPOINTS = sa.select(
    checkpoint.c.origin,
    checkpoint.c.size,
    checkpoint.c.key_id,
    checkpoint.c.root,
    checkpoint.c.note,
    checkpoint.c.created_us,
)
_origin = sa.bindparam("origin", type_=sa.Text)
OF_ORIGIN = CHECKPOINTS.where(checkpoint.c.origin == _origin).order_by(checkpoint.c.size.desc()).limit(1)
COVERING = (
    CHECKPOINTS.where(checkpoint.c.origin == _origin, checkpoint.c.size >= sa.bindparam("size", type_=Int))
    .order_by(checkpoint.c.size, checkpoint.c.created_us)
    .limit(1)
)
ORIGINS = sa.select(checkpoint.c.origin).group_by(checkpoint.c.origin)
NEWEST_ORIGIN = ORIGINS.order_by(sa.func.max(checkpoint.c.created_us).desc(), checkpoint.c.origin).limit(1)
PLACE_BYTES = 8
PACKED_BYTES = PLACE_BYTES + HASH_BYTES
HEAD = sa.select(stream.c.head_seq).where(stream.c.stream_id == sa.bindparam("stream_id"))


class StoredCheckpoint(NamedTuple):
    """A row of `checkpoint`."""

    origin: str
    size: int
    key_id: str
    root: bytes
    note: str
    created_us: int

    @property
    def signed(self) -> SignedCheckpoint:
        return SignedCheckpoint(self.note)

    @property
    def is_as_its_note(self) -> bool:
        """Whether the row says of log, size and root what the note does; nothing of who signed that."""
        try:
            claim = self.signed.claim
        except (InvalidNote, InvalidCheckpoint):
            return False
        return (claim.origin, claim.size, claim.root) == (self.origin, self.size, bytes(self.root))


class StoredTree:
    """A `ledger.audit.tree.tiles.Stored`, and what is asked of it."""

    def __init__(self, connection: sa.Connection, queries: LeafQueries) -> None:
        self._connection = connection
        self._queries = queries

    def size(self) -> int:
        """How many events have their place in the public order."""
        return last_leaf(self._connection, self._queries) + 1

    def tile(self, place: Place) -> bytes | None:
        values = {"level": place.level, "first": place.tile_index}
        hashes = self._connection.execute(TILE, values).scalar()
        return None if hashes is None else bytes(hashes)

    def roots(self, level: int, first: int, count: int) -> Sequence[bytes]:
        values = {"level": level, "first": first, "end": first + count}
        rows = self._connection.execute(ROOTS, values)
        return [bytes(root) for at, (index, root) in enumerate(rows, first) if index == at]

    def links(self, first: int, count: int) -> Sequence[bytes]:
        values = {"after": first - 1, "limit": count}
        packed = self._queries.packed_links
        if packed is not None:
            links = _unpacked(self._connection.execute(packed, values).scalar() or "", first)
            if links is not None:
                return links
        return self._connection.execute(self._queries.links, values).scalars().all()

    def place_of(self, stream_id: str, seq: int) -> tuple[int, bytes] | None:
        """An event's place in the public order and its link; None while it has none, or if there is no such event."""
        row = self._connection.execute(self._queries.place, {"stream_id": stream_id, "seq": seq}).one_or_none()
        return None if row is None else (int(row.leaf_index), bytes(row.link))

    def root_at(self, size: int) -> bytes:
        """The root of the first events; `MissingLeaves` if there are fewer."""
        return root_at(size, TileReader(self, size))

    def inclusion_path(self, index: int, size: int) -> list[bytes]:
        """What proves the event at that place to be in the tree of that size."""
        return inclusion_path(index, size, TileReader(self, size))

    def latest(self, origin: str) -> StoredCheckpoint | None:
        """The largest checkpoint of that log."""
        return self._checkpoint(OF_ORIGIN, {"origin": origin})

    def covering(self, size: int, origin: str) -> StoredCheckpoint | None:
        """The smallest checkpoint of that log with at least so many events."""
        return self._checkpoint(COVERING, {"size": size, "origin": origin})

    def newest_origin(self) -> str | None:
        """The origin under which something was signed last; None if nothing ever was."""
        return self._connection.execute(NEWEST_ORIGIN).scalar()

    def newest(self) -> StoredCheckpoint | None:
        """The largest checkpoint under that origin."""
        origin = self.newest_origin()
        return None if origin is None else self.latest(origin)

    def head_of(self, stream_id: str) -> int:
        """The number of the stream's last event; 0 if there is no such stream."""
        return self._connection.execute(HEAD, {"stream_id": stream_id}).scalar() or 0

    def _checkpoint(self, statement: sa.Select[Any], values: dict[str, object]) -> StoredCheckpoint | None:
        row = self._connection.execute(statement, values).one_or_none()
        return None if row is None else StoredCheckpoint(*row)._replace(root=bytes(row.root))


def _unpacked(text: str, first: int) -> list[bytes] | None:
    """Links whose places follow one another from `first` on; None where they do not, or one is no hash."""
    data = bytes.fromhex(text)
    starts = range(0, len(data), PACKED_BYTES)
    places = b"".join([data[at : at + PLACE_BYTES] for at in starts])
    wanted = b"".join([place.to_bytes(PLACE_BYTES, "big") for place in range(first, first + len(starts))])
    if len(data) % PACKED_BYTES or places != wanted:
        return None
    return [data[at + PLACE_BYTES : at + PACKED_BYTES] for at in starts]
