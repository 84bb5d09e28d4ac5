"""The tree over some of a log's events, and over what lies between them, of which only hashes are known.

What lies between is covered by the largest complete subtrees that fit, from left to right. Whoever has the events and
those hashes finds the root: they are as many proofs of inclusion as there are events, with nothing in them twice.
Where the cover stops, the root of the log as it was then is found, too, so that they prove consistency as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from ledger.audit.tree.merkle import HASH_BYTES, Node, leaf_hash, node_hash, nodes_of, root_above


def cover(indexes: Iterable[int], size: int, stop: int = 0) -> Iterator[Node]:
    """What a tree of `size` has beside the leaves of these ascending indexes, with a stop at the size `stop`."""
    at = 0
    for index in itertools.chain(indexes, (size,)):
        if at <= stop <= index:
            yield from nodes_of(at, stop)
            at = stop
        yield from nodes_of(at, index)
        at = index + 1


class NotCovered(Exception):
    """Leaves that do not ascend, or too few hashes of what lies between them."""


class CoveredTree:
    """Finds roots from leaves in ascending order, and the hashes of what `cover` says is between them."""

    def __init__(self, hashes: Iterator[bytes]) -> None:
        """`hashes` is what is brought for `cover`, in its order."""
        self.size = 0
        """Leaves so far, seen or covered."""
        self._hashes = hashes
        self._subtrees: list[tuple[int, bytes]] = []

    def add(self, index: int, link: bytes) -> None:
        """The leaf there holds that link. `NotCovered` where the hashes before it run out, or it was passed."""
        if index != self.size:
            self.cover_to(index)
        self._push(0, leaf_hash(link))

    def cover_to(self, size: int) -> None:
        """Come to that size by what is between. `NotCovered` where the hashes run out, or it was passed."""
        if size < self.size:
            raise NotCovered(f"{size} is before {self.size}, which was reached already")
        for level, _ in nodes_of(self.size, size):
            subtree = next(self._hashes, b"")
            if len(subtree) != HASH_BYTES:
                raise NotCovered(f"the hashes of what lies between end before {size}")
            self._push(level, subtree)

    def root(self) -> bytes:
        """The root of the first `size` leaves."""
        return root_above([subtree for _, subtree in self._subtrees])

    def _push(self, level: int, subtree: bytes) -> None:
        self.size += 1 << level
        while self._subtrees and self._subtrees[-1][0] == level:
            subtree = node_hash(self._subtrees.pop()[1], subtree)
            level += 1
        self._subtrees.append((level, subtree))


class ProvingTree(CoveredTree):
    """Remembers every subtree that it comes by, of which the proof of any one leaf can be made."""

    def __init__(self, hashes: Iterator[bytes]) -> None:
        super().__init__(hashes)
        self._known: dict[Node, bytes] = {}

    def read(self, nodes: Sequence[Node]) -> list[bytes]:
        """As a `HashReader`, of what is beside the leaves that were added."""
        return [self._known[node] for node in nodes]

    def _push(self, level: int, subtree: bytes) -> None:
        node, found = Node(level, self.size >> level), subtree
        self._known[node] = found
        # Each subtree of which this is the right half is complete now.
        while node.node_index & 1:
            found = node_hash(self._known[Node(node.level, node.node_index - 1)], found)
            node = Node(node.level + 1, node.node_index >> 1)
            self._known[node] = found
        super()._push(level, subtree)
