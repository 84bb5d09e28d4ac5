"""One stream, event by event: contiguous, each linked to the one before, each column as the body says (SPEC E5, E9)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import SYSTEM_STREAM, run_stream, session_stream
from ledger.append.deciding import StreamRow
from ledger.bytes import body_hash, genesis_link, next_link
from ledger.verifying.findings import Finding, Problem, Tail
from ledger.verifying.saying import Said, read_events

REPEATED = ("stream_id", "event_id", "type", "version", "session_id", "run_id", "occurred_us")
"""Columns that repeat what the body says."""
COLUMNS = ("seq", "recorded_us", "body", "body_hash", "link", *REPEATED)
"""What is read of each event, in this order."""
BODY, RECORDED_US = COLUMNS.index("body"), COLUMNS.index("recorded_us")
_REPEATED_FROM = COLUMNS.index(REPEATED[0])
_SESSION_AND_RUN = slice(COLUMNS.index("session_id"), COLUMNS.index("run_id") + 1)
_SAID_BY_RUNS = attrgetter(*REPEATED)
_NEVER_US = 2**63


class Chain:
    """What has been seen of a stream. After its first wrong event nothing more is said of it."""

    def __init__(self, ledger_id: str, stream: StreamRow) -> None:
        self.stream = stream
        self.event_count = 0
        self.finding = _identity_of(stream)
        self._link = genesis_link(ledger_id, stream.stream_id)
        self._owner = (stream.session_id, stream.run_id)
        self._first_us = _NEVER_US
        self._last_us = -_NEVER_US

    @property
    def tail(self) -> Tail:
        """The stream's events, as far as they were seen."""
        if self._first_us > self._last_us:
            return Tail(self.event_count)
        return Tail(self.event_count, self._first_us, self._last_us)

    def add_page(self, page: Sequence[Sequence[Any]]) -> Sequence[Said]:
        """The next events, each with the `COLUMNS`; what they say is returned, up to the first wrong one."""
        first_seq = self.event_count + 1
        self.event_count += len(page)
        if self.finding is not None:
            return ()
        linked = page[: self._count_linked(first_seq, page)]
        events = read_events([row[BODY] for row in linked], self._found, first_seq)
        said_by = _SAID_BY_RUNS if self.stream.run_id is not None else _said_by_others
        for seq, (event, row) in enumerate(zip(events, linked, strict=False), first_seq):
            said = said_by(event)
            if said != row[_REPEATED_FROM:]:
                pairs = zip(REPEATED, said, row[_REPEATED_FROM:], strict=True)
                column = next(name for name, one, other in pairs if one != other)
                self._found("column_differs", f"column {column} is not what the body says", seq)
                return events[: seq - first_seq]
            if row[_SESSION_AND_RUN] != self._owner:
                self._found("stream_identity", "session and run are not those of the stream", seq)
                return events[: seq - first_seq]
        return events

    def end(self) -> None:
        """No event follows: the head that the stream claims to have must be this one."""
        head = (self.stream.head_seq, self.stream.head_link)
        if self.finding is None and head != (self.event_count, self._link):
            detail = f"the stream claims to have {head[0]} events, or another link"
            self._found("head_differs", detail, self.event_count)

    def _count_linked(self, first_seq: int, page: Sequence[Sequence[Any]]) -> int:
        """How many events, from the first on, are those that were hashed, each linked to the one before."""
        link_before = self._link
        for seq, row in enumerate(page, first_seq):
            found_seq, recorded_us, body, hash_of_body, link = row[:_REPEATED_FROM]
            try:
                if found_seq != seq:
                    self._found("sequence_gap", f"is followed by {found_seq}", seq - 1)
                    return seq - first_seq
                if hash_of_body != body_hash(body):
                    self._found("body_changed", "the body is not the one that was hashed", seq)
                    return seq - first_seq
                link_before = next_link(link_before, seq, recorded_us, hash_of_body)
            except (TypeError, struct.error):
                self._found("event_unreadable", "its body, hash or time is of no kind that one can be", seq)
                return seq - first_seq
            if link != link_before:
                self._found("link_broken", "the link does not follow from what is before it", seq)
                return seq - first_seq
        times_us = [row[RECORDED_US] for row in page]
        if max(times_us) > MAX_SAFE_INTEGER:
            at = next(at for at, time_us in enumerate(times_us) if time_us > MAX_SAFE_INTEGER)
            self._found("event_unreadable", "it is said to be recorded at a time that no clock shows", first_seq + at)
            return at
        self._link = link_before
        self._first_us, self._last_us = min(self._first_us, *times_us), max(self._last_us, *times_us)
        return len(page)

    def _found(self, problem: Problem, detail: str, seq: int) -> None:
        if self.finding is None or self.finding.seq is None or seq < self.finding.seq:
            self.finding = Finding(problem, detail, self.stream.stream_id, seq)


def _said_by_others(event: Said) -> tuple[Any, ...]:
    """What an event that belongs to no run says of the repeated columns."""
    return tuple(getattr(event, name, None) for name in REPEATED)


def _identity_of(stream: StreamRow) -> Finding | None:
    """Nothing if the stream's id is that of its run, of its session, or the ledger's own."""
    kind, wanted = "sys", SYSTEM_STREAM
    if stream.run_id is not None:
        kind, wanted = "run", run_stream(stream.run_id)
    elif stream.session_id is not None:
        kind, wanted = "session", session_stream(stream.session_id)
    if (stream.kind, stream.stream_id) == (kind, wanted):
        return None
    detail = f"the stream is said to be that of {wanted}, of kind {stream.kind}"
    return Finding("stream_identity", detail, stream.stream_id)
