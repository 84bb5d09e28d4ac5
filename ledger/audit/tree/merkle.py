"""One hash stands for a whole log, and a few hashes prove what is in it (RFC 6962, section 2.1).

A tree is never held: whoever proves something says which complete subtrees it takes, and a reader brings their hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

HASH_BYTES = 32
MAX_PATH_HASHES = 64
"""More than any proof has, of a log whose positions are 63 bits."""


class Node(NamedTuple):
    """A complete subtree: that of the `2**level` leaves from `node_index * 2**level` on."""

    level: int
    node_index: int


HashReader = Callable[[Sequence[Node]], Sequence[bytes]]
"""Brings the hashes of subtrees, in the order in which they are asked for."""


def leaf_hash(link: bytes) -> bytes:
    """The hash of a leaf that holds `link`."""
    return sha256(b"\x00" + link).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash above two others."""
    return sha256(b"\x01" + left + right).digest()


def empty_root() -> bytes:
    """The root of a log without leaves."""
    return sha256(b"").digest()


def root_of_complete(hashes: Sequence[bytes]) -> bytes:
    """The root of a complete subtree, of whose leaves, a power of two in number, these are the hashes."""
    while len(hashes) > 1:
        hashes = [
            sha256(b"\x01" + left + right).digest() for left, right in zip(hashes[::2], hashes[1::2], strict=True)
        ]
    return hashes[0]


def root_at(size: int, read: HashReader) -> bytes:
    """The root of the first `size` leaves."""
    return root_above(read(nodes_of(0, size)))


def nodes_of(begin: int, end: int) -> list[Node]:
    """The largest complete subtrees that the leaves from `begin` to before `end` are, from left to right.

    They become smaller to the right where `begin` is 0, or the first leaf of a subtree that has room for all of them.
    """
    nodes = []
    while begin < end:
        level = (end - begin).bit_length() - 1
        if begin:
            level = min(level, (begin & -begin).bit_length() - 1)
        nodes.append(Node(level, begin >> level))
        begin += 1 << level
    return nodes


def inclusion_path(index: int, size: int, read: HashReader) -> list[bytes]:
    """The hashes that prove leaf `index` to be in the tree of `size`, from the leaf's sibling to the root's child."""
    if not 0 <= index < size:
        raise ValueError(f"there is no leaf {index} in a tree of {size}")
    begin, end, beside = 0, size, []
    while end - begin > 1:
        middle = _middle(begin, end)
        if index < middle:
            beside.append((middle, end))
            end = middle
        else:
            beside.append((begin, middle))
            begin = middle
    return _roots(beside[::-1], read)


def consistency_path(old_size: int, new_size: int, read: HashReader) -> list[bytes]:
    """The hashes that prove the tree of `old_size` to be the beginning of that of `new_size`."""
    if not 0 <= old_size <= new_size:
        raise ValueError(f"a tree of {new_size} has not grown out of one of {old_size}")
    if old_size == 0:
        return []
    begin, end, beside = 0, new_size, []
    while end != old_size:
        middle = _middle(begin, end)
        if old_size <= middle:
            beside.append((middle, end))
            end = middle
        else:
            beside.append((begin, middle))
            begin = middle
    # The old root itself is known to whoever verifies; what it ends with, where it is no subtree of the new, is not.
    if begin > 0:
        beside.append((begin, end))
    return _roots(beside[::-1], read)


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether the leaf with the hash `leaf` is at `index` in the tree of `size` that has this root."""
    if not (0 <= index < size and _are_hashes((leaf, root, *path))):
        return False
    inner_count, border_count = _path_counts(index, size)
    if len(path) != inner_count + border_count:
        return False
    found = _climb(leaf, index, path[:inner_count])
    return _climb_border(found, path[inner_count:]) == root


def verify_consistency(old_size: int, old_root: bytes, new_size: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether the tree of `new_size` that has `new_root` begins with that of `old_size` that has `old_root`."""
    if not (0 <= old_size <= new_size and _are_hashes((old_root, new_root, *path))):
        return False
    if old_size == new_size:
        return not path and old_root == new_root
    if old_size == 0:
        return not path and old_root == empty_root()
    # The climb begins at the last subtree that is complete in the old tree.
    skipped = (old_size & -old_size).bit_length() - 1
    inner_count, border_count = _path_counts(old_size - 1, new_size)
    inner_count -= skipped
    is_subtree = old_size == 1 << skipped
    start, hashes = (old_root, path) if is_subtree else (path[0] if path else b"", path[1:])
    if len(hashes) != inner_count + border_count or not start:
        return False
    inner, border = hashes[:inner_count], hashes[inner_count:]
    index = (old_size - 1) >> skipped
    return (
        _climb_border(_climb_left(start, index, inner), border) == old_root
        and _climb_border(_climb(start, index, inner), border) == new_root
    )


def _middle(begin: int, end: int) -> int:
    """Where RFC 6962 divides a range: after the largest power of two that is smaller than its length."""
    return begin + (1 << (end - begin - 1).bit_length() - 1)


def _roots(ranges: Sequence[tuple[int, int]], read: HashReader) -> list[bytes]:
    groups = [nodes_of(begin, end) for begin, end in ranges]
    hashes: Iterator[bytes] = iter(read([node for group in groups for node in group]))
    return [root_above([next(hashes) for _ in group]) for group in groups]


def root_above(hashes: Sequence[bytes]) -> bytes:
    """The root above subtrees that become smaller to the right."""
    if not hashes:
        return empty_root()
    *others, root = hashes
    for left in reversed(others):
        root = node_hash(left, root)
    return root


def _path_counts(index: int, size: int) -> tuple[int, int]:
    """How many hashes of a leaf's path are below where it meets the tree's right border, and how many are on it."""
    inner_count = (index ^ (size - 1)).bit_length()
    return inner_count, (index >> inner_count).bit_count()


def _climb(found: bytes, index: int, path: Sequence[bytes]) -> bytes:
    for level, beside in enumerate(path):
        found = node_hash(beside, found) if index >> level & 1 else node_hash(found, beside)
    return found


def _climb_left(found: bytes, index: int, path: Sequence[bytes]) -> bytes:
    """The same in a tree that has nothing to the right."""
    for level, beside in enumerate(path):
        if index >> level & 1:
            found = node_hash(beside, found)
    return found


def _climb_border(found: bytes, path: Sequence[bytes]) -> bytes:
    for beside in path:
        found = node_hash(beside, found)
    return found


def _are_hashes(values: Iterable[bytes]) -> bool:
    # Of other lengths, two parts could be read as two others with the same hash.
    return all(len(value) == HASH_BYTES for value in values)
