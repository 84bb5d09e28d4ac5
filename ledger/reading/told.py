"""What the ledger's own stream tells of some matter: its events of a few types, in order, and none of the others.

What was decided is little, and accesses on record may be many. No index is of types, so these are passed over one by
one, but nothing of them is read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

import sqlalchemy as sa

from harness.ids import SYSTEM_STREAM
from ledger.reading.query import EVENT_COLUMNS
from ledger.reading.reader import LedgerReader
from ledger.reading.views import event_of
from ledger.records import RecordedEvent
from ledger.schema import event

PAGE_EVENTS = 500
_TOLD = (
    sa.select(*EVENT_COLUMNS)
    .where(event.c.stream_id == SYSTEM_STREAM, event.c.seq > sa.bindparam("after_seq"))
    .where(event.c.type.in_(sa.bindparam("types", expanding=True)))
    .order_by(event.c.seq)
)
_PAGE = _TOLD.limit(PAGE_EVENTS)


async def told(reader: LedgerReader, types: Collection[str]) -> AsyncIterator[RecordedEvent]:
    """All events of these types, a page at a time."""
    after_seq = 0

    def read(connection: sa.Connection, _: object) -> list[RecordedEvent]:
        return _read(connection, _PAGE, types, after_seq)

    while page := await reader.in_one_moment(read):
        for one in page:
            yield one
        after_seq = page[-1].seq


def told_since(connection: sa.Connection, types: Collection[str], after_seq: int) -> list[RecordedEvent]:
    """Those after a position of the stream, as of one moment."""
    return _read(connection, _TOLD, types, after_seq)


def _read(
    connection: sa.Connection, statement: sa.Select[tuple[object, ...]], types: Collection[str], after_seq: int
) -> list[RecordedEvent]:
    rows = connection.execute(statement, {"types": list(types), "after_seq": after_seq})
    return [event_of(row) for row in rows.mappings()]
