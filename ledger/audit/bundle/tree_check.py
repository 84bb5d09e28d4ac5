"""Whether the events of a bundle are in the log that its checkpoint is of, and whether that was signed (SPEC E9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ledger.audit.bundle import limits
from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.cover import CoveredTree, NotCovered, ProvingTree
from ledger.audit.bundle.errors import BundleWrong
from ledger.audit.bundle.manifest import Manifest, TreeClaim
from ledger.audit.bundle.reading import Archive
from ledger.audit.errors import InvalidCheckpoint, InvalidKey, InvalidNote, InvalidProof
from ledger.audit.notes.checkpoint import Checkpoint, SignedCheckpoint
from ledger.audit.notes.lines import decoded
from ledger.audit.notes.notes import VerifierKey
from ledger.audit.notes.proofs import InclusionProof
from ledger.audit.tree.merkle import HASH_BYTES, inclusion_path, verify_consistency

KEYS_MAX = 64


class Vouching(NamedTuple):
    """What vouches for a bundle's events."""

    note: str
    checkpoint: Checkpoint
    earlier: Checkpoint | None
    signed_by: tuple[VerifierKey, ...]


def open_vouching(archive: Archive, manifest: Manifest, claim: TreeClaim, trusted: Sequence[VerifierKey]) -> Vouching:
    """The checkpoints, if a key that is trusted signed them; where none is, a key that the bundle brings along."""
    brought = parse_keys(_text(archive, manifest, names.KEYS))
    keys = tuple(trusted) or brought
    note = _text(archive, manifest, names.CHECKPOINT)
    checkpoint = _opened(names.CHECKPOINT, note, keys, claim.origin, claim.size)
    earlier = None
    if claim.earlier_size:
        earlier_note = _text(archive, manifest, names.EARLIER)
        earlier = _opened(names.EARLIER, earlier_note, keys, claim.origin, claim.earlier_size)
        _check_consistency(_text(archive, manifest, names.CONSISTENCY), note, earlier, checkpoint)
    signed_by = tuple(key for key in keys if _is_signed_by(note, key))
    return Vouching(note, checkpoint, earlier, signed_by)


def parse_keys(text: str) -> tuple[VerifierKey, ...]:
    """Public keys, one on each line."""
    lines = text.splitlines()
    if not 1 <= len(lines) <= KEYS_MAX:
        raise BundleWrong("not_signed", names.KEYS, f"there must be 1 to {KEYS_MAX} keys")
    try:
        return tuple(map(VerifierKey.parse, lines))
    except InvalidKey as error:
        raise BundleWrong("not_signed", names.KEYS, str(error)) from None


class TreeCheck:
    """Finds the roots that the events lead to, one event after the other, and compares them with the checkpoints'."""

    def __init__(
        self, archive: Archive, manifest: Manifest, claim: TreeClaim, vouching: Vouching, prove: int | None = None
    ) -> None:
        """`prove` is the event, counted from 1, of which a proof of its own is wanted."""
        self._hashes = _hashes_in(archive.chunks(names.SUBTREES, manifest.digest_of(names.SUBTREES)))
        self._tree = CoveredTree(self._hashes) if prove is None else ProvingTree(self._hashes)
        self._prove = prove
        self._proven_index: int | None = None
        self._vouching = vouching
        self._claim = claim
        self._earlier = vouching.earlier
        self._proof = None if not claim.covered_count else _text(archive, manifest, names.PROOF)
        self._added_count = 0

    def add(self, index: int | None, link: bytes) -> None:
        """The next event, with its place in the log; later ones than the claim covers must come after its end."""
        self._added_count += 1
        if self._added_count > self._claim.covered_count:
            if index is not None and index < self._claim.size:
                raise BundleWrong("tree_differs", self._place, "it is before the checkpoint, and said not to be")
            return
        if index is None or index >= self._claim.size:
            detail = "it is said to be before the checkpoint, and has no such place"
            raise BundleWrong("tree_differs", self._place, detail)
        try:
            if self._earlier is not None:
                self._stop_before(index)
            self._tree.add(index, link)
        except NotCovered as error:
            raise BundleWrong("tree_differs", self._place, str(error)) from None
        if self._added_count == self._prove:
            self._proven_index = index
        if self._added_count == self._claim.covered_count:
            self._check_proof(self._place, index, link)

    def end(self) -> None:
        """No event follows: the root must be the checkpoint's."""
        if self._added_count < self._claim.covered_count:
            raise BundleWrong("count_differs", names.EVENTS, "there are fewer events than are said to be in the log")
        try:
            self._stop_before(self._claim.size)
            self._tree.cover_to(self._claim.size)
        except NotCovered as error:
            raise BundleWrong("tree_differs", names.SUBTREES, str(error)) from None
        if next(self._hashes, None) is not None:
            raise BundleWrong("tree_differs", names.SUBTREES, "there are more hashes than places between the events")
        if self._tree.root() != self._vouching.checkpoint.root:
            raise BundleWrong("root_differs", names.CHECKPOINT, "its root is not that of the events")

    def proof(self) -> InclusionProof | None:
        """What proves the one event, once all were found right; None if it is not below the checkpoint."""
        if self._proven_index is None or not isinstance(self._tree, ProvingTree):
            return None
        path = inclusion_path(self._proven_index, self._claim.size, self._tree.read)
        return InclusionProof(self._proven_index, tuple(path), SignedCheckpoint(self._vouching.note))

    @property
    def _place(self) -> str:
        return f"event {self._added_count}"

    def _stop_before(self, index: int) -> None:
        earlier = self._earlier
        if earlier is None or earlier.size > index:
            return
        self._tree.cover_to(earlier.size)
        self._earlier = None
        if self._tree.root() != earlier.root:
            raise BundleWrong("root_differs", names.EARLIER, "its root is not that of the log as it was then")

    def _check_proof(self, place: str, index: int, link: bytes) -> None:
        assert self._proof is not None
        try:
            proof = InclusionProof.parse(self._proof)
            if (proof.index, proof.checkpoint.note) != (index, self._vouching.note):
                raise BundleWrong("proof_differs", names.PROOF, f"it is not about {place} and the checkpoint")
            proof.verify(link, self._vouching.signed_by)
        except (InvalidProof, InvalidNote, InvalidCheckpoint) as error:
            raise BundleWrong("proof_differs", names.PROOF, str(error)) from None


def _text(archive: Archive, manifest: Manifest, name: str) -> str:
    data = archive.read(name, limits.MAX_TEXT_BYTES, manifest.digest_of(name))
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BundleWrong("member_differs", name, "it is not UTF-8") from None


def _opened(name: str, note: str, keys: Iterable[VerifierKey], origin: str, size: int) -> Checkpoint:
    try:
        checkpoint = SignedCheckpoint(note).open(keys)
    except (InvalidNote, InvalidCheckpoint) as error:
        raise BundleWrong("not_signed", name, str(error)) from None
    if (checkpoint.origin, checkpoint.size) != (origin, size):
        raise BundleWrong(
            "checkpoint_differs", name, "it is not of the log, or not of the size, that the manifest says"
        )
    return checkpoint


def _is_signed_by(note: str, key: VerifierKey) -> bool:
    try:
        SignedCheckpoint(note).open((key,))
    except (InvalidNote, InvalidCheckpoint):
        return False
    return True


def _check_consistency(text: str, note: str, earlier: Checkpoint, checkpoint: Checkpoint) -> None:
    head, _, below = text.partition("\n\n")
    first, *lines = head.split("\n")
    path = [decoded(line) or b"" for line in lines]
    if first != f"old {earlier.size}" or below != note:
        raise BundleWrong("proof_differs", names.CONSISTENCY, "it is not about the two checkpoints")
    if not verify_consistency(earlier.size, earlier.root, checkpoint.size, checkpoint.root, path):
        raise BundleWrong("proof_differs", names.CONSISTENCY, "it does not show that the log only grew")


def _hashes_in(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        whole = len(data) // HASH_BYTES * HASH_BYTES
        yield from (data[at : at + HASH_BYTES] for at in range(0, whole, HASH_BYTES))
        rest = data[whole:]
    if rest:
        yield rest
