"""What a bundle has of a period, read from the ledger page by page, over one connection that sees one moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import orjson
import sqlalchemy as sa

from ledger.audit.bundle.event_lines import EventLine, head_line
from ledger.following.leaves import LeafQueries
from ledger.schema import Int, event

PAGE_EVENTS = 1_000
LINK = sa.select(event.c.link).where(
    event.c.stream_id == sa.bindparam("stream_id", type_=sa.Text), event.c.seq == sa.bindparam("seq", type_=Int)
)


class Bounds(NamedTuple):
    """Sizes of the log: every event of a period is after the first and before the second, of which at least one is."""

    begin: int
    end: int


class PeriodRecord:
    """The events between two sizes of the log."""

    def __init__(self, connection: sa.Connection, queries: LeafQueries) -> None:
        self._connection = connection
        self._queries = queries
        self._first_seqs: dict[str, int] = {}
        """By stream, the number of the first event that was read."""

    def bounds(self, from_us: int, to_us: int) -> Bounds:
        """Where the events are that were recorded from the one to before the other. It reads the whole log."""
        values = {"from_us": from_us, "to_us": to_us}
        first, last, log_last = self._connection.execute(self._queries.period, values).one()
        size = 0 if log_last is None else log_last + 1
        begin, end = size if first is None else first, 0 if last is None else last + 1
        # Where nothing was recorded in the period, the sizes before and after it are the same.
        return Bounds(min(begin, end), max(begin, end))

    def events(self, begin: int, end: int) -> Iterator[EventLine]:
        """The events at these places, `end` excluded."""
        at = begin
        while at < end:
            values = {"after": at - 1, "until": end - 1, "limit": PAGE_EVENTS}
            page = self._connection.execute(self._queries.log, values).all()
            if not page:
                return
            for row in page:
                at = row.leaf_index + 1
                body = bytes(row.body)
                self._first_seqs.setdefault(orjson.loads(body)["stream_id"], row.seq)
                yield EventLine(row.leaf_index, row.seq, row.recorded_us, bytes(row.link), body)

    def heads(self) -> Iterator[bytes]:
        """The lines for streams that began before the events that were read, in the order of their ids."""
        for stream_id, first_seq in sorted(self._first_seqs.items()):
            if first_seq > 1:
                values = {"stream_id": stream_id, "seq": first_seq - 1}
                link = self._connection.execute(LINK, values).scalar_one()
                yield head_line(stream_id, first_seq - 1, bytes(link))
