"""One stream, event by event: contiguous, each linked to the one before, each column as the body says (SPEC E5, E9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from harness.ids import SYSTEM_STREAM, run_stream, session_stream
from ledger.bytes import body_hash, genesis_link, next_link
from ledger.deciding import EventRow, StreamRow
from ledger.verifying.findings import Finding, Problem

ERASED = "content.erased"
REPEATED = ("stream_id", "event_id", "type", "version", "session_id", "run_id", "occurred_us")
"""Columns that repeat what the body says."""
CONTENTS = ("input", "output", "error", "query", "answer", "comment", "rationale")
"""What bodies name a content of the same stream as, by its digest; some say whether it is stored."""


class Named(NamedTuple):
    """A content that events name."""

    seq: int
    """Of the first event that does."""
    is_stored: bool
    """Whether one of them says that its bytes are stored."""


class Chain:
    """What has been seen of a stream. After its first wrong event nothing more is said of it."""

    def __init__(self, ledger_id: str, stream: StreamRow) -> None:
        self._stream = stream
        self._link = genesis_link(ledger_id, stream.stream_id)
        self.event_count = 0
        self.finding = _identity_of(stream)
        self.erased_counts: dict[int, int] = {}
        """How many contents were erased, by the number of the event that says so."""

    @property
    def stream_id(self) -> str:
        return self._stream.stream_id

    def add(self, event: EventRow) -> Mapping[str, bool]:
        """The next event; the digests that it names are returned, and of which it says that they are stored."""
        self.event_count += 1
        if self.finding is not None:
            return {}
        try:
            return self._check(event)
        except (TypeError, ValueError, OverflowError) as error:
            self._found("event_unreadable", str(error).partition("\n")[0])
            return {}

    def end(self) -> None:
        """No event follows: the head that the stream claims to have must be this one."""
        if self.finding is None and (self._stream.head_seq, self._stream.head_link) != (self.event_count, self._link):
            self._found("head_differs", f"the stream claims to have {self._stream.head_seq} events, or another link")

    def add_page(self, page: Iterable[Sequence[Any]]) -> dict[str, Named]:
        """The next events; the contents that they name."""
        named: dict[str, Named] = {}
        for row in page:
            for digest, is_stored in self.add(EventRow(*row)).items():
                first = named.get(digest, Named(self.event_count, is_stored))
                named[digest] = Named(first.seq, first.is_stored or is_stored)
        return named

    def look(self, named: Mapping[str, Named], not_stored: Iterable[Sequence[Any]]) -> None:
        """Of the contents that events named, these have no bytes, and that state; or none, as they are not there."""
        wrong: list[tuple[int, str]] = []
        for digest, state in not_stored:
            if state is None:
                wrong.append((named[digest].seq, f"there is no content {digest}"))
            elif state == "digest_only" and named[digest].is_stored:
                wrong.append((named[digest].seq, f"content {digest} is said to be stored, and is not"))
        if self.finding is None and wrong:
            seq, detail = min(wrong)
            self._found("content_missing", detail, seq)

    def _check(self, event: EventRow) -> Mapping[str, bool]:
        if event.seq != self.event_count:
            self._found("sequence_gap", f"is followed by {event.seq}", self.event_count - 1)
            return {}
        if event.body_hash != body_hash(event.body):
            self._found("body_changed", "the body is not the one that was hashed")
            return {}
        self._link = next_link(self._link, event.seq, event.recorded_us, event.body_hash)
        if event.link != self._link:
            self._found("link_broken", "the link does not follow from what is before it")
            return {}
        fields: dict[str, Any] = orjson.loads(event.body)
        said = fields.get
        for column in REPEATED:
            if said(column) != getattr(event, column):
                self._found("column_differs", f"column {column} is not what the body says")
                return {}
        if (event.session_id, event.run_id) != (self._stream.session_id, self._stream.run_id):
            self._found("stream_identity", "session and run are not those of the stream")
            return {}
        if event.type == ERASED and said("stage") == "ROWS":
            self.erased_counts[event.seq] = int(said("content_count", 0))
        digests = ((said(f"{name}_digest"), said(f"{name}_stored") is True) for name in CONTENTS)
        return {digest: is_stored for digest, is_stored in digests if digest is not None}

    def _found(self, problem: Problem, detail: str, seq: int | None = None) -> None:
        self.finding = Finding(problem, detail, self._stream.stream_id, self.event_count if seq is None else seq)


def _identity_of(stream: StreamRow) -> Finding | None:
    """Nothing if the stream's id is that of its run, of its session, or the ledger's own."""
    wanted = SYSTEM_STREAM
    if stream.run_id is not None:
        wanted = run_stream(stream.run_id)
    elif stream.session_id is not None:
        wanted = session_stream(stream.session_id)
    if stream.stream_id == wanted:
        return None
    return Finding("stream_identity", f"the stream is said to be that of {wanted}", stream.stream_id)
