"""Contents: the bytes are those that the digest is of, or they are gone for good, and an event says so (SPEC E10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from harness.content import Content, content_digest
from harness.events import ContentErased
from ledger.append.deciding import ContentRow
from ledger.compression import DamagedContent, unpack
from ledger.verifying.findings import FINDINGS_MAX, Finding, Problem
from ledger.verifying.names import Names
from ledger.verifying.saying import Said, Unknown
from ledger.verifying.taken import Taken, Word
from ledger.words.text import first_line

ERASED = "content.erased"


class Kept(NamedTuple):
    """A row of `content`, with what says nothing of the content itself."""

    row: ContentRow
    erased_seq: int | None
    """The number of the event that says that it was erased."""
    key_id: str | None


class Contents:
    """The contents of a stream, against all of its events."""

    def __init__(self, stream_id: str, names: Names) -> None:
        self._stream_id = stream_id
        self._names = names
        self._are_right = self._are_known = False
        self._said: dict[int, int] = {}
        """How many contents were erased, by the number of the event that says so,"""
        self._erased: dict[int | None, int] = {}
        """and how many there are."""
        self.taken: dict[Word, Taken] = {}
        """The same, by the word on which they were."""
        self.count = 0
        self.findings: list[Finding] = []

    def add_page(self, first_seq: int, events: Sequence[Said]) -> None:
        """What these events say of contents, the first of which has that number in its stream."""
        self._names.add_page(first_seq, events)
        if not any(event.type == ERASED for event in events):
            return
        for seq, event in enumerate(events, first_seq):
            if event.type == ERASED and not isinstance(event, Unknown):
                erased = cast(ContentErased, event)
                if erased.stage == "ROWS":
                    self._said[seq] = erased.content_count
                    self._add_taken(erased, seq)

    def end_events(self, *, are_right: bool, are_known: bool) -> None:
        """No event follows; whether they are right, so that contents can be held against them, and all known here."""
        self._are_right = are_right
        self._are_known = are_known

    def add(self, kept: Kept) -> None:
        """The next content."""
        self.count += 1
        row = kept.row
        problem = _problem_of(row) or _problem_beside(kept)
        if row.state == "erased" and problem is None:
            self._erased[kept.erased_seq] = self._erased.get(kept.erased_seq, 0) + 1
            if self._are_right and kept.erased_seq not in self._said:
                problem = "is said to be erased, and no event says so"
        if problem is not None:
            self._found("content_damaged", f"content {row.digest} {problem}")
        if not self._are_right:
            return
        named = self._names.take(row.digest)
        if named is None and self._are_known:
            self._found("content_unnamed", f"no event names content {row.digest}")
        elif named is not None and named.is_stored and row.state == "digest_only":
            self._found("content_missing", f"content {row.digest} is said to be stored, and is not", named.seq)
        if named is not None and named.size_bytes not in (None, row.size_bytes):
            self._found("content_damaged", f"content {row.digest} has another size than is said", named.seq)

    def end(self) -> None:
        """No content follows: all that were named are there, and as many are erased as the events say."""
        if not self._are_right:
            return
        left = self._names.first_left()
        if left is not None:
            self._found("content_missing", f"there is no content {left[0]}", left[1].seq)
        for seq, said in self._said.items():
            found = self._erased.get(seq, 0)
            if found != said:
                detail = f"{found} contents are said to have been erased by it, and it says {said}"
                self._found("content_damaged", detail, seq)

    def _add_taken(self, erased: ContentErased, seq: int) -> None:
        taken, word = Taken(self._stream_id, seq, 1, erased.content_count, erased.size_bytes), Word.of(erased)
        if word in self.taken:
            taken = self.taken[word].plus(taken)._replace(run_count=1)
        self.taken[word] = taken

    def _found(self, problem: Problem, detail: str, seq: int | None = None) -> None:
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(problem, detail, self._stream_id, seq))


def _problem_beside(kept: Kept) -> str | None:
    if kept.key_id is not None:
        return "names a key, and none is used"
    if kept.erased_seq is not None and kept.row.state != "erased":
        return "names an erasure, and is not erased"
    if kept.row.encoding is not None and kept.row.data is None:
        return "is said to be encoded, and is not there"
    return None


def _problem_of(row: ContentRow) -> str | None:
    if row.state == "erased":
        return None if row.data is None and row.salt is None else "is said to be erased, and is not"
    if row.salt is None:
        return "has lost its salt"
    if row.state == "digest_only":
        return None if row.data is None else "is said to be a digest only, and is not"
    if row.state != "stored":
        return f"is said to be {row.state}, which no content is"
    try:
        data = unpack(row.data or b"", row.encoding, row.size_bytes)
        if len(data) != row.size_bytes:
            return "has another size than is on record"
        if content_digest(row.salt, Content(data, row.media_type)) != row.digest:
            return "is not what its digest is of"
    except (DamagedContent, TypeError, ValueError) as error:
        return f"cannot be read ({first_line(error)})"
    return None
