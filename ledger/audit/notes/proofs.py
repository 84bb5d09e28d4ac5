"""A proof that a log holds an event, in one text that can be checked anywhere, with a public key (C2SP tlog-proof)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.audit.errors import InvalidProof
from ledger.audit.notes.checkpoint import Checkpoint, SignedCheckpoint
from ledger.audit.notes.lines import MAX_NUMBER, decoded, encoded, number
from ledger.audit.notes.notes import MAX_NOTE_BYTES, VerifierKey
from ledger.audit.tree.merkle import HASH_BYTES, MAX_PATH_HASHES, leaf_hash, verify_inclusion

FIRST_LINE = "c2sp.org/tlog-proof@v1"
EXTRA = "extra "
INDEX = "index "
MAX_EXTRA_BYTES = 16_384
MAX_PROOF_CHARS = 2 * MAX_NOTE_BYTES
"""More than checkpoint, path and extra data can have."""


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """That an event is in the log of which there is this checkpoint."""

    index: int
    """The event's place in the public order, from 0."""
    path: tuple[bytes, ...]
    checkpoint: SignedCheckpoint
    extra: bytes | None = None
    """What the proof is about; it is not proven."""

    def __post_init__(self) -> None:
        if not 0 <= self.index <= MAX_NUMBER:
            raise InvalidProof("has no possible index")
        if len(self.path) > MAX_PATH_HASHES or any(len(one) != HASH_BYTES for one in self.path):
            raise InvalidProof("has a path that is none")
        if self.extra is not None and len(self.extra) > MAX_EXTRA_BYTES:
            raise InvalidProof(f"has more than {MAX_EXTRA_BYTES} bytes of extra data")

    @classmethod
    def parse(cls, text: str) -> InclusionProof:
        """The proof that `text` made the text of; `InvalidProof` for anything else. The checkpoint is not looked at."""
        if len(text) > MAX_PROOF_CHARS:
            raise InvalidProof(f"is longer than {MAX_PROOF_CHARS} characters")
        head, divider, note = text.partition("\n\n")
        first, *lines = head.split("\n")
        if first != FIRST_LINE or not divider:
            raise InvalidProof(f"is not one: {FIRST_LINE} and a checkpoint below an empty line are missing")
        extra = decoded(lines.pop(0).removeprefix(EXTRA)) if lines and lines[0].startswith(EXTRA) else b""
        index = number(lines.pop(0).removeprefix(INDEX)) if lines and lines[0].startswith(INDEX) else None
        if extra is None or index is None:
            raise InvalidProof("has no index, or extra data that is not base64")
        if len(lines) > MAX_PATH_HASHES:
            raise InvalidProof(f"has a path of more than {MAX_PATH_HASHES} hashes")
        path = tuple(decoded(line) or b"" for line in lines)
        return cls(index, path, SignedCheckpoint(note), extra if f"\n{EXTRA}" in head else None)

    def text(self) -> str:
        """One text, which ends with the checkpoint as it was signed."""
        extra = () if self.extra is None else (EXTRA + encoded(self.extra),)
        lines = (FIRST_LINE, *extra, f"{INDEX}{self.index}", *map(encoded, self.path), "")
        return "".join(f"{line}\n" for line in lines) + self.checkpoint.note

    def verify(self, link: bytes, keys: Iterable[VerifierKey], *, origin: str | None = None) -> Checkpoint:
        """The checkpoint, if a key signed it and the event with this link is in its tree, at this place.

        Raises `InvalidProof`, or as `SignedCheckpoint.open`.
        """
        checkpoint = self.checkpoint.open(keys, origin=origin)
        if not verify_inclusion(leaf_hash(link), self.index, checkpoint.size, self.path, checkpoint.root):
            raise InvalidProof(f"does not show this event at place {self.index} of {checkpoint.size}")
        return checkpoint
