"""The log against what was signed of it: its tree is made anew of the events, and nothing stored of it is believed.

Checkpoints that were kept outside the database vouch for the events under them: whoever changed, removed or inserted
one, cut the log, or wrote all of it anew under another key, cannot have made the same root (SPEC E9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledger.audit.errors import InvalidCheckpoint, InvalidNote
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
    wanted: dict[int, dict[str, bytes]] = {}
    for checkpoint in trusted:
        wanted.setdefault(checkpoint.size, {})[checkpoint.origin] = checkpoint.root
    stored, findings = await _stored(reader)
    size = await reader.on_tree(lambda tree: tree.size())
    tree, anchored_count = GrowingTree(), 0
    differing: set[str] = set()
    for end in sorted({*(one for one in {*wanted, *stored} if one <= size), size} if wanted or stored else ()):
        while tree.size < end:
            first, count = tree.size, min(PAGE_LEAVES, end - tree.size)
            links = await reader.on_tree(lambda of, first=first, count=count: of.links(first, count))  # type: ignore[misc]
            if not links:
                return Anchored((*findings, Finding("position_gap", f"place {first} is empty")), anchored_count, None)
            findings += await _compare(reader, tree.extend([leaf_hash(link) for link in links]))
        root = tree.root()
        for origin, signed_root in sorted(wanted.get(end, {}).items()):
            if signed_root == root:
                anchored_count = end
            elif origin not in differing:
                differing.add(origin)
                findings.append(Finding("checkpoint_differs", _told_apart(origin, end, anchored_count)))
        if stored.get(end, {root}) != {root}:
            findings.append(Finding("checkpoint_differs", f"a stored checkpoint of {end:,} events is of others"))
    for one in sorted({*wanted, *stored}):
        if one > size:
            origins = f" as {', '.join(sorted(wanted[one]))}" if one in wanted else ""
            detail = f"{one:,} events were signed{origins}, and there are {size:,}"
            findings.append(Finding("checkpoint_differs", detail))
    return Anchored(tuple(findings), anchored_count, await _since_us(reader, anchored_count))


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
    try:
        claim, (_, signatures) = row.signed.claim, split_note(row.note)
    except (InvalidNote, InvalidCheckpoint):
        return False
    signed_by = {data[:ID_BYTES].hex() for _, data in signatures}
    return (claim.origin, claim.size, claim.root) == (row.origin, row.size, bytes(row.root)) and row.key_id in signed_by


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
