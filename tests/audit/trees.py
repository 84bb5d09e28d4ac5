"""RFC 6962, section 2.1, word for word, and trees in memory, for tests to compare with."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from ledger.audit.tree.merkle import HashReader, Node, leaf_hash


def mth(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    k = largest_power_below(len(leaves))
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def root_of(hashes: Iterable[bytes]) -> bytes:
    """The same, of leaves whose hashes are at hand."""
    known = list(hashes)
    if not known:
        return sha256(b"").digest()
    if len(known) == 1:
        return known[0]
    k = largest_power_below(len(known))
    return sha256(b"\x01" + root_of(known[:k]) + root_of(known[k:])).digest()


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = largest_power_below(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: Sequence[bytes], whole: bool) -> list[bytes]:
    if m == len(leaves):
        return [] if whole else [mth(leaves)]
    k = largest_power_below(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], whole), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def largest_power_below(count: int) -> int:
    k = 1
    while k * 2 < count:
        k *= 2
    return k


def leaves_of(size: int) -> list[bytes]:
    return [sha256(str(index).encode()).digest() for index in range(size)]


def in_memory(leaves: Sequence[bytes]) -> HashReader:
    """A reader that makes each hash anew."""

    def read(nodes: Sequence[Node]) -> list[bytes]:
        for level, index in nodes:
            assert (index + 1) << level <= len(leaves), "only complete subtrees may be asked for"
        return [
            root_of(leaf_hash(leaf) for leaf in leaves[index << level : (index + 1) << level]) for level, index in nodes
        ]

    return read
