"""One stream, event by event: contiguous, each linked to the one before, each column as the body says (SPEC E5, E9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, cast

import orjson

from harness.ids import SYSTEM_STREAM, run_stream, session_stream
from ledger.bytes import body_hash, genesis_link, next_link
from ledger.deciding import StreamRow
from ledger.verifying.findings import Finding, Problem, Tail

REPEATED = ("stream_id", "event_id", "type", "version", "session_id", "run_id", "occurred_us")
"""Columns that repeat what the body says."""
COLUMNS = ("seq", "recorded_us", "body", "body_hash", "link", *REPEATED)
"""What is read of each event, in this order."""
_REPEATED_FROM = COLUMNS.index(REPEATED[0])
_SESSION_AND_RUN = slice(COLUMNS.index("session_id"), COLUMNS.index("run_id") + 1)
_SAID_BY_RUNS = itemgetter(*REPEATED)

Fields = Mapping[str, Any]


class Chain:
    """What has been seen of a stream. After its first wrong event nothing more is said of it."""

    def __init__(self, ledger_id: str, stream: StreamRow) -> None:
        self.stream = stream
        self.event_count = 0
        self.finding = _identity_of(stream)
        self._link = genesis_link(ledger_id, stream.stream_id)
        self._owner = (stream.session_id, stream.run_id)
        self._first_us: int | None = None
        self._last_us: int | None = None

    @property
    def tail(self) -> Tail:
        """The stream's events, as far as they were seen."""
        return Tail(self.event_count, self._first_us, self._last_us)

    def add_page(self, page: Sequence[Sequence[Any]]) -> list[Fields]:
        """The next events, each with the `COLUMNS`; what their bodies say is returned, up to the first wrong one."""
        bodies: list[Fields] = []
        for row in page:
            self.event_count += 1
            if self.finding is None:
                try:
                    fields = self._check(row)
                except (TypeError, ValueError, OverflowError) as error:
                    self._found("event_unreadable", str(error).partition("\n")[0])
                else:
                    if fields is not None:
                        bodies.append(fields)
        return bodies

    def end(self) -> None:
        """No event follows: the head that the stream claims to have must be this one."""
        head = (self.stream.head_seq, self.stream.head_link)
        if self.finding is None and head != (self.event_count, self._link):
            self._found("head_differs", f"the stream claims to have {head[0]} events, or another link")

    def _check(self, row: Sequence[Any]) -> Fields | None:
        seq, recorded_us, body, hash_of_body, link = row[:_REPEATED_FROM]
        if seq != self.event_count:
            self._found("sequence_gap", f"is followed by {seq}", self.event_count - 1)
            return None
        if hash_of_body != body_hash(body):
            self._found("body_changed", "the body is not the one that was hashed")
            return None
        self._link = next_link(self._link, seq, recorded_us, hash_of_body)
        if link != self._link:
            self._found("link_broken", "the link does not follow from what is before it")
            return None
        fields: dict[str, Any] = orjson.loads(body)
        said = _said(fields)
        if said != row[_REPEATED_FROM:]:
            pairs = zip(REPEATED, said, row[_REPEATED_FROM:], strict=True)
            column = next(name for name, one, other in pairs if one != other)
            self._found("column_differs", f"column {column} is not what the body says")
            return None
        if row[_SESSION_AND_RUN] != self._owner:
            self._found("stream_identity", "session and run are not those of the stream")
            return None
        if self._first_us is None or recorded_us < self._first_us:
            self._first_us = recorded_us
        if self._last_us is None or recorded_us > self._last_us:
            self._last_us = recorded_us
        return fields

    def _found(self, problem: Problem, detail: str, seq: int | None = None) -> None:
        self.finding = Finding(problem, detail, self.stream.stream_id, self.event_count if seq is None else seq)


def _said(fields: Fields) -> tuple[Any, ...]:
    """What the body says of the repeated columns; events that belong to no run leave some of it out."""
    try:
        return cast("tuple[Any, ...]", _SAID_BY_RUNS(fields))
    except KeyError:
        return tuple(map(fields.get, REPEATED))


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
