"""What is on record about who asked to see or to do something, the newest first."""

from __future__ import annotations

import sqlalchemy as sa

from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import SYSTEM_STREAM
from ledger.reading.query import EVENT_COLUMNS
from ledger.reading.reader import LedgerReader
from ledger.reading.views import event_of
from ledger.records import RecordedEvent
from ledger.schema import event

PAGE_ACCESSES_MAX = 500
ACCESSES = (
    sa.select(*EVENT_COLUMNS)
    .where(event.c.stream_id == SYSTEM_STREAM, event.c.type == "access.recorded")
    .where(event.c.seq < sa.bindparam("before_seq"))
    .order_by(event.c.seq.desc())
    .limit(sa.bindparam("limit"))
)


async def accesses(reader: LedgerReader, limit: int = 50, before_seq: int | None = None) -> list[RecordedEvent]:
    """The newest `access.recorded`, or those before a position of the ledger's own stream."""
    if not 1 <= limit <= PAGE_ACCESSES_MAX:
        raise InvalidInput("limit", f"must be a whole number from 1 to {PAGE_ACCESSES_MAX}, not {limit!r}")
    values = {"limit": limit, "before_seq": MAX_SAFE_INTEGER if before_seq is None else before_seq}
    return await reader.in_one_moment(
        lambda connection, _: [event_of(row) for row in connection.execute(ACCESSES, values).mappings()]
    )
