"""What somebody has kept outside a ledger, in files: public keys, checkpoints, and anchors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ledger.audit.errors import InvalidCheckpoint, InvalidNote
from ledger.audit.notes.checkpoint import Checkpoint, SignedCheckpoint
from ledger.audit.notes.notes import MAX_NOTE_BYTES, VerifierKey
from ledger.audit.signing.anchor import Anchor
from ledger.errors import LedgerUnreadable


def read_keys(path: Path) -> list[VerifierKey]:
    """The public keys in a file, one a line; `LedgerUnreadable` or `InvalidKey` where there are none."""
    keys = [VerifierKey.parse(line) for line in _text_of(path).splitlines() if line.strip()]
    if not keys:
        raise LedgerUnreadable(path, "holds no public key")
    return keys


def read_note(path: Path) -> SignedCheckpoint:
    """The checkpoint in a file, whoever signed it; nothing of it is looked at."""
    return SignedCheckpoint(_text_of(path))


def read_anchor(path: Path, keys: Sequence[VerifierKey], origin: str | None = None) -> list[Checkpoint]:
    """The checkpoints of an anchor file, of one log or all, that one of the keys signed.

    `LedgerUnreadable` if there is none, or two of one log contradict each other.
    """
    found: dict[tuple[str, int], Checkpoint] = {}
    for note in Anchor(path).notes():
        try:
            checkpoint = note.open(keys, origin=origin)
        except (InvalidNote, InvalidCheckpoint):
            continue
        known = found.setdefault((checkpoint.origin, checkpoint.size), checkpoint)
        if known.root != checkpoint.root:
            raise LedgerUnreadable(path, f"holds two checkpoints of {known.size} events that contradict each other")
    if not found:
        raise LedgerUnreadable(path, "holds no checkpoint that one of the given keys signed")
    return list(found.values())


def _text_of(path: Path) -> str:
    """What is in the file; no more of it is read than shows that it is larger than a note may be."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_NOTE_BYTES + 1).decode("utf-8", "replace")
    except OSError as error:
        raise LedgerUnreadable(path, f"cannot be read ({error.strerror})") from error
