"""The log against what was signed of it: its tree is made anew of the events, and nothing stored of it is believed.

Checkpoints that were kept outside the database vouch for the events under them: whoever changed, removed or inserted
one, cut the log, or wrote all of it anew under another key, cannot have made the same root (SPEC E9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.notes.notes import ID_BYTES, split_note
from ledger.audit.signing.stored import CHECKPOINTS, StoredCheckpoint
from ledger.audit.tree.growing import GrowingTree
from ledger.audit.tree.merkle import leaf_hash
from ledger.audit.tree.tiles import Place, Tile
from ledger.following.leaves import Wanted
from ledger.reading.reader import LedgerReader
from ledger.reading.views import EventUnreadable
from ledger.verifying.findings import Finding

PAGE_LEAVES = 4_096
"""Read and hashed at a time."""


class Anchored(NamedTuple):
    """What came of it."""

    findings: tuple[Finding, ...] = ()
    anchored_count: int = 0
    """How many events, from the first of the public order on, are those that a trusted checkpoint is of."""
    since_us: int | None = None
    """When the first of the others was recorded, as far as they have a place in the public order."""


async def check_tree(reader: LedgerReader, trusted: Iterable[Checkpoint]) -> Anchored:
    """Make the tree anew; compare with it the trusted checkpoints, and what of tree and checkpoints is stored."""
    roots = _Roots(trusted, *await _stored(reader))
    size = await reader.on_tree(lambda tree: tree.size())
    tree = GrowingTree()
    for end in roots.ends(size):
        roots.findings += await _grow(reader, tree, end)
        if tree.size < end:
            return Anchored(tuple(roots.findings), roots.anchored_count, None)
        roots.compare(end, tree.root())
    roots.refuse_beyond(size)
    return Anchored(tuple(roots.findings), roots.anchored_count, await _since_us(reader, roots.anchored_count))


class _Roots:
    """The roots that were signed, by how many events they are of, and what came of comparing them."""

    def __init__(
        self, trusted: Iterable[Checkpoint], stored: Mapping[int, set[bytes]], found: Iterable[Finding]
    ) -> None:
        self._trusted: dict[int, dict[str, bytes]] = {}
        """By size and origin."""
        for checkpoint in trusted:
            self._trusted.setdefault(checkpoint.size, {})[checkpoint.origin] = checkpoint.root
        self._stored = stored
        self._differing: set[str] = set()
        self.findings = [*found]
        self.anchored_count = 0

    def ends(self, size: int) -> Sequence[int]:
        """Where to stop and compare in a log of that size; nowhere if nothing was ever signed."""
        signed = {*self._trusted, *self._stored}
        return sorted({*(one for one in signed if one <= size), size}) if signed else ()

    def compare(self, size: int, root: bytes) -> None:
        """The root that so many events have."""
        for origin, signed_root in sorted(self._trusted.get(size, {}).items()):
            if signed_root == root:
                self.anchored_count = size
            elif origin not in self._differing:
                # Of a log that differs once every larger checkpoint does.
                self._differing.add(origin)
                self._found(_told_apart(origin, size, self.anchored_count))
        if self._stored.get(size, {root}) != {root}:
            self._found(f"a stored checkpoint of {size:,} events is of others")

    def refuse_beyond(self, size: int) -> None:
        """No event follows: what was signed of more is of a log that was cut."""
        for one in sorted({*self._trusted, *self._stored}):
            if one > size:
                origins = f" as {', '.join(sorted(self._trusted[one]))}" if one in self._trusted else ""
                self._found(f"{one:,} events were signed{origins}, and there are {size:,}")

    def _found(self, detail: str) -> None:
        self.findings.append(Finding("checkpoint_differs", detail))


async def _grow(reader: LedgerReader, tree: GrowingTree, end: int) -> list[Finding]:
    """Add the events up to that place, or to one that is empty; what of the stored tree is of others."""
    findings: list[Finding] = []
    while (first := tree.size) < end:
        count = min(PAGE_LEAVES, end - first)
        links = await reader.on_tree(lambda of, first=first, count=count: of.links(first, count))  # type: ignore[misc]
        if not links:
            return [*findings, Finding("position_gap", f"place {first} is empty")]
        findings += await _compare(reader, tree.extend([leaf_hash(link) for link in links]))
    return findings


def _told_apart(origin: str, size: int, right: int) -> str:
    """Where the events are that differ, as closely as checkpoints tell."""
    those = f"events at places {right:,} to {size - 1:,}" if right else f"first {size:,} events"
    return f"of the {those} not all are those that were signed as {origin}"


async def _since_us(reader: LedgerReader, anchored_count: int) -> int | None:
    """When the first event was recorded that no trusted checkpoint is of; None if that cannot be read."""
    try:
        rest = await reader.leaves(Wanted(), anchored_count - 1, 1)
    except EventUnreadable:
        return None
    return rest.events[0][1].recorded_us if rest.events else None


async def _stored(reader: LedgerReader) -> tuple[dict[int, set[bytes]], list[Finding]]:
    """The roots of stored checkpoints by size; what is wrong with their rows themselves."""
    rows = await reader.in_one_moment(
        lambda connection, _: [StoredCheckpoint(*row) for row in connection.execute(CHECKPOINTS)]
    )
    roots: dict[int, set[bytes]] = {}
    findings: list[Finding] = []
    for row in rows:
        roots.setdefault(row.size, set()).add(bytes(row.root))
        if not _is_as_its_note(row):
            findings.append(
                Finding("checkpoint_differs", f"a stored checkpoint of {row.size:,} events is not what its note says")
            )
    return roots, findings


def _is_as_its_note(row: StoredCheckpoint) -> bool:
    """Whether it is, by the key that it names."""
    return row.is_as_its_note and row.key_id in {data[:ID_BYTES].hex() for _, data in split_note(row.note)[1]}


async def _compare(reader: LedgerReader, tiles: Sequence[Tile]) -> list[Finding]:
    """The tiles that are stored otherwise than events make them."""
    if not tiles:
        return []
    stored = await reader.on_tree(
        lambda tree: [
            (tree.tile(Place(tile.level, tile.tile_index)), tree.roots(tile.level, tile.tile_index, 1))
            for tile in tiles
        ]
    )
    return [
        Finding("tree_differs", f"tile {tile.tile_index} of level {tile.level} is not of the events")
        for tile, (hashes, roots) in zip(tiles, stored, strict=True)
        if hashes is not None and (hashes != tile.hashes or list(roots) != [tile.root])
    ]
