"""Whether the events of a page follow from one another, reckoned again from their stored bytes (SPEC E9).

It says that each is what was hashed, and is linked to the one before as that is stored; nothing of what lies before
the page, and nothing of checkpoints: that is what verifying does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from ledger.bytes import body_hash, genesis_link, next_link
from ledger.records import RecordedEvent


def links_hold(events: Sequence[RecordedEvent], before: RecordedEvent | None, ledger_id: str) -> Iterator[bool]:
    """For each of a run's events, which follow one another, whether its body and its link are what they should be.

    `before` is the one that precedes them; None where they begin with the run's first.
    """
    for event in events:
        if before is None:
            link = genesis_link(ledger_id, str(event.fields.get("stream_id")))
        else:
            link = bytes.fromhex(before.link)
        try:
            yield event.seq == (1 if before is None else before.seq + 1) and _follows(event, link)
        except (TypeError, struct.error):
            yield False  # what is stored is of no kind that a body or a time can be
        before = event


def _follows(event: RecordedEvent, link_before: bytes) -> bool:
    hashed = body_hash(event.body)
    link = next_link(link_before, event.seq, event.recorded_us, hashed)
    return (hashed.hex(), link.hex()) == (event.body_hash, event.link)
