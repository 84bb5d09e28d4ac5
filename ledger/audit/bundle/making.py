"""Puts a bundle together from what a ledger has, piece by piece, in the order in which it is read."""

from __future__ import annotations

import contextlib
import itertools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.contents import ContentEntry
from ledger.audit.bundle.cover import cover
from ledger.audit.bundle.errors import BundleTooLarge
from ledger.audit.bundle.event_lines import EventLine
from ledger.audit.bundle.manifest import Manifest, Member, TreeClaim, manifest_bytes
from ledger.audit.bundle.rows import Row, row_line
from ledger.audit.bundle.writing import ArchiveWriter, MemberWriter
from ledger.audit.notes.checkpoint import SignedCheckpoint
from ledger.audit.notes.lines import encoded
from ledger.audit.notes.notes import VerifierKey
from ledger.audit.notes.proofs import InclusionProof
from ledger.audit.tree.merkle import HashReader, consistency_path, inclusion_path

PAGE_NODES = 1_000
"""Hashes of subtrees that are asked for at once."""


class SignedTree(NamedTuple):
    """Checkpoints of a log, the keys that signed them, and a way to its tree."""

    checkpoint: SignedCheckpoint
    keys: Sequence[VerifierKey]
    read: HashReader
    """Brings hashes of the tree of the checkpoint."""
    earlier: SignedCheckpoint | None = None
    """One of a smaller log, which is not empty."""


class BundleWriter:
    """A bundle in a new file that is open for writing and reading; `end` makes it whole.

    Everything is given once, events first. `BundleTooLarge` as soon as there is more than a bundle may hold.
    """

    def __init__(self, file: BinaryIO, events_max: int) -> None:
        self._archive = ArchiveWriter(file)
        self._members: list[Member] = []
        self._events_max = events_max
        self.indexes = array("q")
        """The places of those events that have one."""
        self.event_count = 0

    def add_events(self, events: Iterable[EventLine]) -> None:
        """All events; those without a place in the public order are the last."""
        with self._member(names.EVENTS) as member:
            for event in events:
                self.event_count += 1
                if self.event_count > self._events_max:
                    raise BundleTooLarge("events", count=self.event_count, limit=self._events_max)
                if event.leaf_index is not None:
                    self.indexes.append(event.leaf_index)
                member.write(event.line())

    def add_lines(self, name: str, lines: Iterable[bytes]) -> None:
        """A member of lines."""
        with self._member(name) as member:
            for line in lines:
                member.write(line)

    def add_rows(self, rows: Iterable[Row]) -> None:
        """The rows of the run, in the order of `ledger.audit.bundle.rows.TABLES` and of their numbers."""
        self.add_lines(names.ROWS, map(row_line, rows))

    def add_contents(self, entries: Iterable[ContentEntry], stored: Iterable[tuple[str, bytes]]) -> None:
        """The index of contents, and the data of those that are stored, by digest."""
        self.add_lines(names.CONTENTS, (entry.line() for entry in entries))
        for digest, data in stored:
            # Unpacking takes ten times what hashing does: whoever carries the bundle may pack all of it instead.
            with self._archive.member(names.CONTENT_FOLDER + digest, is_packed=False) as member:
                member.write(data)

    def add_tree(self, tree: SignedTree) -> TreeClaim:
        """What proves the events to be in the log."""
        checkpoint = tree.checkpoint.claim
        earlier_size = 0 if tree.earlier is None else tree.earlier.claim.size
        covered = array("q", itertools.takewhile(lambda index: index < checkpoint.size, self.indexes))
        with self._member(names.SUBTREES, is_packed=False) as member:
            nodes = cover(covered, checkpoint.size, earlier_size)
            while page := list(itertools.islice(nodes, PAGE_NODES)):
                member.write(b"".join(tree.read(page)))
        if covered:
            path = inclusion_path(covered[-1], checkpoint.size, tree.read)
            self._add_text(names.PROOF, InclusionProof(covered[-1], tuple(path), tree.checkpoint).text())
        if tree.earlier is not None:
            path = consistency_path(earlier_size, checkpoint.size, tree.read)
            lines = (f"old {earlier_size}", *map(encoded, path), "", tree.checkpoint.note)
            self._add_text(names.CONSISTENCY, "\n".join(lines))
            self._add_text(names.EARLIER, tree.earlier.note)
        self._add_text(names.CHECKPOINT, tree.checkpoint.note)
        self._add_text(names.KEYS, "".join(f"{key}\n" for key in tree.keys))
        return TreeClaim(
            origin=checkpoint.origin, size=checkpoint.size, earlier_size=earlier_size, covered_count=len(covered)
        )

    @property
    def members(self) -> tuple[Member, ...]:
        """What the manifest says of the members so far."""
        return tuple(sorted(self._members, key=lambda member: member.name))

    def end(self, manifest: Manifest) -> None:
        """Nothing follows but the manifest."""
        self._archive.add(names.MANIFEST, manifest_bytes(manifest))
        self._archive.end()

    def _add_text(self, name: str, text: str) -> None:
        with self._member(name, is_packed=False) as member:
            member.write(text.encode())

    @contextlib.contextmanager
    def _member(self, name: str, *, is_packed: bool = True) -> Iterator[MemberWriter]:
        with self._archive.member(name, is_packed=is_packed) as writer:
            yield writer
        fields = {"name": name, "sha256": writer.digest, "size_bytes": writer.size_bytes}
        self._members.append(Member.model_validate(fields))
