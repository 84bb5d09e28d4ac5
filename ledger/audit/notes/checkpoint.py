"""A checkpoint says how many events a log had and which: its size and its root, signed (C2SP tlog-checkpoint)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.audit.errors import InvalidCheckpoint
from ledger.audit.notes.lines import MAX_NUMBER, decoded, encoded, number
from ledger.audit.notes.notes import SigningKey, VerifierKey, open_note, sign_note, split_note
from ledger.audit.tree.merkle import HASH_BYTES

MAX_ORIGIN_CHARS = 256
MAX_EXTENSIONS = 16


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tree of the first `size` events of a log."""

    origin: str
    """Which log it is, for those who keep checkpoints of several."""
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()
    """Lines that others have added; nothing here reads or makes any."""

    def __post_init__(self) -> None:
        if any(not line or "\n" in line for line in (self.origin, *self.extensions)):
            raise InvalidCheckpoint("has an origin or an extension that is no line")
        if len(self.origin) > MAX_ORIGIN_CHARS or len(self.extensions) > MAX_EXTENSIONS:
            raise InvalidCheckpoint("has too long an origin, or too many extensions")
        if not 0 <= self.size <= MAX_NUMBER:
            raise InvalidCheckpoint("has no possible size")
        if len(self.root) != HASH_BYTES:
            raise InvalidCheckpoint("has a root that is no SHA-256")

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """The checkpoint that `text` made the text of; `InvalidCheckpoint` for anything else."""
        *lines, end = text.split("\n")
        if end or len(lines) < 3:
            raise InvalidCheckpoint("has fewer than three lines")
        origin, size_text, root_text, *extensions = lines
        size, root = number(size_text), decoded(root_text)
        if size is None:
            raise InvalidCheckpoint("has no size on its second line")
        if root is None:
            raise InvalidCheckpoint("has no root on its third line")
        return cls(origin, size, root, tuple(extensions))

    def text(self) -> str:
        """What is signed."""
        return "".join(f"{line}\n" for line in (self.origin, self.size, encoded(self.root), *self.extensions))

    def sign(self, *keys: SigningKey) -> SignedCheckpoint:
        """The same with the signatures of these keys."""
        return SignedCheckpoint(sign_note(self.text(), *keys))


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A note that says it is a checkpoint."""

    note: str

    def open(self, keys: Iterable[VerifierKey], *, origin: str | None = None) -> Checkpoint:
        """The checkpoint, if one of the keys signed it; with `origin`, `InvalidCheckpoint` if it is of another log.

        Raises as `ledger.audit.notes.notes.open_note`.
        """
        checkpoint = Checkpoint.parse(open_note(self.note, keys))
        if origin is not None and checkpoint.origin != origin:
            raise InvalidCheckpoint(f"is of {checkpoint.origin}, not of {origin}")
        return checkpoint

    @property
    def claim(self) -> Checkpoint:
        """What it says, whoever signed it: not to be believed."""
        text, _ = split_note(self.note)
        return Checkpoint.parse(text)
