"""The way from an event's leaf to the root of the tree, step by step: what an inclusion proof proves, made visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ledger.audit.notes.proofs import InclusionProof
from ledger.audit.tree.merkle import leaf_hash, node_hash
from ledger.words.format import count
from viewer.words import gettext as _

STEP_HEIGHT = 58
NODE_HEIGHT = 30
EDGE = 2


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the way, and what it was made of."""

    height: int
    """0 for the leaf."""
    hash: str
    events: str
    """Which events are below it, counted from 1."""
    side: Literal["left", "right"] | None = None
    """Where the sibling stands that it is joined with to make the next one; None for the root."""
    sibling: str = ""
    sibling_events: str = ""
    y: int = 0


@dataclass(frozen=True, slots=True)
class ProofPath:
    """The whole way, the leaf first, with where each step is drawn."""

    steps: Sequence[Step]
    height: int
    """Of the drawing."""


def proof_path(link: bytes, proof: InclusionProof, size: int) -> ProofPath:
    """The way; what it leads to is for `InclusionProof.verify` to judge."""
    ranges = _ranges(proof.index, size)
    drawing_height = STEP_HEIGHT * (len(ranges) - 1) + NODE_HEIGHT + 2 * EDGE
    found = leaf_hash(link)
    steps: list[Step] = []
    for height, ((begin, end), sibling) in enumerate(zip(ranges, [*proof.path, None], strict=False)):
        y = drawing_height - NODE_HEIGHT - EDGE - STEP_HEIGHT * height
        if sibling is None:
            steps.append(Step(height, found.hex(), _events(begin, end), y=y))
            break
        outer_begin, outer_end = ranges[height + 1]
        is_left = outer_begin < begin
        beside = (outer_begin, begin) if is_left else (end, outer_end)
        side: Literal["left", "right"] = "left" if is_left else "right"
        steps.append(Step(height, found.hex(), _events(begin, end), side, sibling.hex(), _events(*beside), y))
        found = node_hash(sibling, found) if is_left else node_hash(found, sibling)
    return ProofPath(steps, drawing_height)


def _ranges(index: int, size: int) -> list[tuple[int, int]]:
    """The leaves below each node of the way, from the leaf to the root (RFC 6962, section 2.1)."""
    begin, end = 0, size
    found = [(begin, end)]
    while end - begin > 1:
        middle = begin + (1 << (end - begin - 1).bit_length() - 1)
        begin, end = (begin, middle) if index < middle else (middle, end)
        found.append((begin, end))
    return found[::-1]


def _events(begin: int, end: int) -> str:
    if end - begin == 1:
        return _("event %(seq)s", seq=count(begin + 1))
    return _("events %(first)s–%(last)s", first=count(begin + 1), last=count(end))
