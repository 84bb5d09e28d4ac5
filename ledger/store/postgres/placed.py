"""The public order as a database has it: without a gap, every event once, and those of a stream as they follow."""

from __future__ import annotations

from typing import Any

import asyncpg

from ledger.verifying.findings import FINDINGS_MAX, Finding

COUNTED = (
    "SELECT count(*), coalesce(min(leaf_index), 0), coalesce(max(leaf_index), -1),"
    " (SELECT size FROM tree_head) FROM leaf"
)
OUT_OF_ORDER = (
    "SELECT stream_id, seq FROM (SELECT stream_id, seq, leaf_index, lag(leaf_index, 1, -1) OVER of_stream AS before,"
    " lag(seq, 1, 0) OVER of_stream AS seq_before FROM leaf"
    " WINDOW of_stream AS (PARTITION BY stream_id ORDER BY seq, leaf_index)) AS placed"
    " WHERE before >= leaf_index OR seq <> seq_before + 1 ORDER BY stream_id, seq LIMIT $1"
)
OF_NO_EVENT = (
    "SELECT stream_id, seq FROM leaf WHERE NOT EXISTS"
    " (SELECT FROM event WHERE event.stream_id = leaf.stream_id AND event.seq = leaf.seq) LIMIT $1"
)
PASSED_OVER = (
    "SELECT event.stream_id, event.seq FROM event, tree_head"
    " WHERE xid < watermark AND system_identifier = (SELECT system_identifier FROM pg_control_system())"
    " AND NOT EXISTS (SELECT FROM leaf WHERE leaf.stream_id = event.stream_id AND leaf.seq = event.seq) LIMIT $1"
)
"""Sequencers look no more among the events of transactions below the watermark, in the cluster that it is of."""
PLAN = "SELECT " + ", ".join(
    f"set_config('{name}', 'on', true)" for name in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
)
"""For statements that look at everything."""

WRONG = (
    (OUT_OF_ORDER, "its place in the public order is not after that of the event before it"),
    (OF_NO_EVENT, "the public order has a place for it, and there is no such event"),
    (PASSED_OVER, "it has no place in the public order, and would never be given one"),
)


async def check_places(connection: asyncpg.Connection[Any]) -> list[Finding]:
    """What is wrong with the public order; events that have no place yet are none of it."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(PLAN)
        ((count, first, last, size),) = await connection.fetch(COUNTED)
        findings: list[Finding] = []
        if (count, first, last) != (size, 0, size - 1):
            detail = f"of {size} places in the public order there are {count}, from {first} to {last}"
            findings.append(Finding("order_differs", detail))
        for statement, detail in WRONG:
            for stream_id, seq in await connection.fetch(statement, FINDINGS_MAX):
                findings.append(Finding("order_differs", detail, stream_id, seq))
    return findings
