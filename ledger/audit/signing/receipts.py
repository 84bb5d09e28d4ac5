"""A receipt proves to whoever keeps it that a run is in the log as it was then: a checkpoint and an inclusion proof."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import orjson

from harness.ids import run_stream
from ledger.audit.errors import DamagedTree, InvalidProof, NoCheckpoint
from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.notes.notes import VerifierKey
from ledger.audit.notes.proofs import InclusionProof
from ledger.audit.signing.checkpoints import Checkpoints
from ledger.audit.signing.stored import StoredTree
from ledger.audit.tree.merkle import HASH_BYTES, leaf_hash, verify_inclusion
from ledger.reading.reader import LedgerReader

T = TypeVar("T")

POLL_S = 0.05


class TreeReader(Protocol):
    """The part of `ledger.LedgerReader` that a receipt of now needs."""

    async def status(self, session_id: str, run_id: str) -> str:
        """How the run stands; `RunNotFound`."""

    async def on_tree(self, look: Callable[[StoredTree], T]) -> T:
        """Do it with the tree and the checkpoints of one moment."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The run's last event of the moment, and the proof that it is in the log; each event before it is in its link."""

    session_id: str
    run_id: str
    seq: int
    link: bytes
    proof: InclusionProof

    def text(self) -> str:
        """One text in the form of `c2sp.org/tlog-proof`; what it is about is in its extra data."""
        return self.proof.text()

    @classmethod
    def parse(cls, text: str) -> Receipt:
        """The receipt that `text` made the text of; `InvalidProof` for anything else."""
        proof = InclusionProof.parse(text)
        try:
            about = orjson.loads(proof.extra or b"")
            said = cls(about["session_id"], about["run_id"], about["seq"], bytes.fromhex(about["link"]), proof)
        except (ValueError, KeyError, TypeError):
            raise InvalidProof("does not say which run it is of") from None
        if len(said.link) != HASH_BYTES or proof.extra != said._about():
            raise InvalidProof("does not say which run it is of")
        return said

    def verify(self, keys: Iterable[VerifierKey], *, origin: str | None = None) -> Checkpoint:
        """The checkpoint that covers the event; raises as `InclusionProof.verify`.

        That the link is that of this run is shown by the run's events, from which it follows.
        """
        return self.proof.verify(self.link, keys, origin=origin)

    def _about(self) -> bytes:
        about = {"link": self.link.hex(), "run_id": self.run_id, "seq": self.seq, "session_id": self.session_id}
        return orjson.dumps(about, option=orjson.OPT_SORT_KEYS)


async def receipt_of(
    reader: LedgerReader, checkpoints: Checkpoints | None, session_id: str, run_id: str, timeout_s: float
) -> Receipt:
    """The receipt of the run as it is, once a checkpoint covers it: asked for here, or signed by others.

    `RunNotFound`; `NoCheckpoint` if there is none in time; what signing raises.
    """
    await reader.status(session_id, run_id)
    stream_id = run_stream(run_id)
    seq = await reader.on_tree(lambda tree: tree.head_of(stream_id))
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                proven = await reader.on_tree(lambda tree: _prove(tree, checkpoints, stream_id, seq))
                if proven is not None:
                    break
                if checkpoints is not None:
                    await checkpoints.sign()
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise NoCheckpoint(run_id) from None
    link, proof = proven
    about = Receipt(session_id, run_id, seq, link, proof)
    return Receipt(
        session_id, run_id, seq, link, InclusionProof(proof.index, proof.path, proof.checkpoint, about._about())
    )


async def receipt_now(reader: TreeReader, session_id: str, run_id: str) -> Receipt | None:
    """The receipt of the run's last event that the newest checkpoint covers; None where it covers none of them.

    `RunNotFound` as ever; `DamagedTree` where the log is not the one that was signed.
    """
    await reader.status(session_id, run_id)
    stream_id = run_stream(run_id)
    found = await reader.on_tree(lambda tree: _prove_newest(tree, stream_id))
    if found is None:
        return None
    seq, link, proof = found
    about = Receipt(session_id, run_id, seq, link, proof)._about()
    return Receipt(session_id, run_id, seq, link, InclusionProof(proof.index, proof.path, proof.checkpoint, about))


def _prove_newest(tree: StoredTree, stream_id: str) -> tuple[int, bytes, InclusionProof] | None:
    newest = tree.newest()
    if newest is None:
        return None
    seq = count_under(tree, stream_id, tree.head_of(stream_id), newest.size)
    proven = _prove(tree, None, stream_id, seq) if seq else None
    return None if proven is None else (seq, *proven)


def count_under(tree: StoredTree, stream_id: str, event_count: int, size: int) -> int:
    """How many of the stream's events have a place before `size`; places rise with the events."""
    under, over = 0, event_count + 1
    while over - under > 1:
        middle = (under + over) // 2
        place = tree.place_of(stream_id, middle)
        if place is not None and place[0] < size:
            under = middle
        else:
            over = middle
    return under


def _prove(
    tree: StoredTree, checkpoints: Checkpoints | None, stream_id: str, seq: int
) -> tuple[bytes, InclusionProof] | None:
    place = tree.place_of(stream_id, seq)
    origin = tree.newest_origin() if checkpoints is None else checkpoints.origin
    if place is None or origin is None:
        return None
    index, link = place
    checkpoint = tree.covering(index + 1, origin)
    if checkpoint is None:
        return None
    path = tree.inclusion_path(index, checkpoint.size)
    if not verify_inclusion(leaf_hash(link), index, checkpoint.size, path, checkpoint.root):
        raise DamagedTree("the events are not those of the checkpoint")
    return link, InclusionProof(index, tuple(path), checkpoint.signed)
