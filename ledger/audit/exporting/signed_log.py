"""The log as certain keys have signed it: which of their checkpoints vouch for what, and the tree below them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ledger.audit.bundle.making import SignedTree
from ledger.audit.notes.checkpoint import SignedCheckpoint
from ledger.audit.notes.notes import VerifierKey
from ledger.audit.signing.stored import CHECKPOINTS, StoredCheckpoint, StoredTree
from ledger.audit.tree.merkle import Node
from ledger.audit.tree.tiles import TileReader
from ledger.following.leaves import LeafQueries
from ledger.schema import Int, checkpoint

_of_keys = checkpoint.c.key_id.in_(sa.bindparam("key_ids", expanding=True))
_of_log = sa.and_(_of_keys, checkpoint.c.origin == sa.bindparam("origin", type_=sa.Text))
_size = sa.bindparam("size", type_=Int)
NEWEST = CHECKPOINTS.where(_of_keys).order_by(checkpoint.c.created_us.desc(), checkpoint.c.size.desc()).limit(1)
COVERING = CHECKPOINTS.where(_of_log, checkpoint.c.size >= _size).order_by(checkpoint.c.size).limit(1)
AT_MOST = CHECKPOINTS.where(_of_log, checkpoint.c.size <= _size).order_by(checkpoint.c.size.desc()).limit(1)


class SignedLog:
    """What one of the keys has signed, under one origin: the one that is given, or else that of their newest."""

    def __init__(
        self, connection: sa.Connection, queries: LeafQueries, keys: Sequence[VerifierKey], origin: str | None
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._tree = StoredTree(connection, queries)
        self._values: dict[str, Any] = {"key_ids": [key.key_id for key in keys]}
        newest = self._one(NEWEST) if keys and origin is None else None
        self._values["origin"] = origin if newest is None else newest.origin

    def covering(self, size: int) -> StoredCheckpoint | None:
        """The smallest checkpoint with at least so many events; None if there is none."""
        return self._one(COVERING, size=size)

    def at_most(self, size: int) -> StoredCheckpoint | None:
        """The largest checkpoint with at most so many events; None if there is none."""
        return self._one(AT_MOST, size=size)

    def signed_tree(self, of: StoredCheckpoint, earlier: SignedCheckpoint | None) -> SignedTree:
        """What vouches for events, for a bundle."""

        def read(nodes: Sequence[Node]) -> list[bytes]:
            # A reader of its own each time, since one remembers every tile.
            return TileReader(self._tree, of.size)(nodes)

        return SignedTree(of.signed, self._keys, read, earlier)

    def _one(self, statement: sa.Select[Any], **values: int) -> StoredCheckpoint | None:
        if self._values.get("origin", "") is None or not self._keys:
            return None
        row = self._connection.execute(statement, self._values | values).one_or_none()
        return None if row is None else StoredCheckpoint(*row)._replace(root=bytes(row.root))
