"""One stream, event by event: contiguous, each linked to the one before, each column as the body says (SPEC E5, E9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from harness.ids import SYSTEM_STREAM, run_stream, session_stream
from ledger.bytes import body_hash, genesis_link, next_link
from ledger.deciding import EventRow, StreamRow
from ledger.verifying.findings import Finding, Problem

REPEATED = ("stream_id", "event_id", "type", "version", "session_id", "run_id", "occurred_us")
"""Columns that repeat what the body says."""
CONTENT_FIELDS = (
    "input_digest",
    "output_digest",
    "error_digest",
    "query_digest",
    "answer_digest",
    "comment_digest",
    "rationale_digest",
)
"""Fields of bodies that name a content of the same stream."""


class Chain:
    """What has been seen of a stream. After its first wrong event nothing more is said of it."""

    def __init__(self, ledger_id: str, stream: StreamRow) -> None:
        self._stream = stream
        self._link = genesis_link(ledger_id, stream.stream_id)
        self.event_count = 0
        self.finding = _identity_of(stream)

    def add(self, event: EventRow) -> list[str]:
        """The next event; the digests that it names are returned."""
        self.event_count += 1
        if self.finding is not None:
            return []
        try:
            return self._check(event)
        except (TypeError, ValueError, OverflowError) as error:
            self._found("event_unreadable", str(error).partition("\n")[0])
            return []

    def end(self) -> None:
        """No event follows: the head that the stream claims to have must be this one."""
        if self.finding is None and (self._stream.head_seq, self._stream.head_link) != (self.event_count, self._link):
            self._found("head_differs", f"the stream claims to have {self._stream.head_seq} events, or another link")

    def add_page(self, page: Iterable[Sequence[Any]]) -> dict[str, int]:
        """The next events; the digests that they name, each with the first event that does."""
        named: dict[str, int] = {}
        for row in page:
            for digest in self.add(EventRow(*row)):
                named.setdefault(digest, self.event_count)
        return named

    def missing(self, named: Mapping[str, int], digests: Iterable[str]) -> None:
        """Of the contents that events named, these are not there."""
        missing = min(((named[digest], digest) for digest in digests), default=None)
        if self.finding is None and missing is not None:
            self._found("content_missing", f"there is no content {missing[1]}", missing[0])

    def _check(self, event: EventRow) -> list[str]:
        if event.seq != self.event_count:
            self._found("sequence_gap", f"is followed by {event.seq}", self.event_count - 1)
            return []
        if event.body_hash != body_hash(event.body):
            self._found("body_changed", "the body is not the one that was hashed")
            return []
        self._link = next_link(self._link, event.seq, event.recorded_us, event.body_hash)
        if event.link != self._link:
            self._found("link_broken", "the link does not follow from what is before it")
            return []
        fields: dict[str, Any] = orjson.loads(event.body)
        said = fields.get
        for column in REPEATED:
            if said(column) != getattr(event, column):
                self._found("column_differs", f"column {column} is not what the body says")
                return []
        return [fields[name] for name in CONTENT_FIELDS if name in fields]

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
