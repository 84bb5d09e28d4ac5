"""What a report reads: runs by the time they started, and of each only the events that a plain course does not have."""

from __future__ import annotations

import sqlalchemy as sa

from ledger.reading.query import stream_of_run
from ledger.schema import Id, Int, diagnosis_run, event, stream

NOTEWORTHY = (
    "policy.decided",
    "reservation.rejected",
    "limit.would_reject",
    "retry.refused",
    "hidden_retry.detected",
    "scope.exhausted",
    "cancellation.requested",
    "cancellation.signalled",
    "content.erased",
)
"""Types of events that are looked at."""

_run = diagnosis_run.c
_limit = sa.bindparam("limit", type_=sa.Integer)
_coming = (
    _run.created_us < sa.bindparam("to_us", type_=Int),
    sa.tuple_(_run.created_us, _run.run_id)
    > sa.tuple_(sa.bindparam("created_us", type_=Int), sa.bindparam("run_id", type_=Id)),
)

RUNS = (
    sa.select(
        _run.session_id,
        _run.run_id,
        _run.agent,
        _run.agent_version,
        _run.actor,
        _run.environment,
        _run.agent_flow,
        _run.status,
        _run.outcome_reason,
        _run.created_us,
        _run.ended_us,
        _run.elapsed_us,
        _run.degraded,
        _run.usage,
        _run.currency,
        _run.usage_unknown_count,
        _run.refused,
        _run.cancel_reason,
        stream.c.head_seq,
        stream.c.head_link,
    )
    .select_from(diagnosis_run.join(stream, stream.c.stream_id == stream_of_run(_run.run_id)))
    .where(*_coming)
    .order_by(_run.created_us, _run.run_id)
    .limit(_limit)
)
"""A page of the runs before `to_us`, after a time and a run,"""
RUN_COUNT = sa.select(sa.func.count()).select_from(diagnosis_run).where(*_coming)
"""and how many there are."""
OF_AGENT = _run.agent == sa.bindparam("agent", type_=sa.Text)
OF_VERSION = _run.agent_version == sa.bindparam("agent_version", type_=sa.Text)

EVENTS = (
    sa.select(event.c.stream_id, event.c.seq, event.c.type, event.c.body)
    .where(
        event.c.stream_id.in_(sa.bindparam("stream_ids", expanding=True)),
        event.c.type.in_(sa.bindparam("types", expanding=True)),
        sa.tuple_(event.c.stream_id, event.c.seq)
        > sa.tuple_(sa.bindparam("stream_id", type_=Id), sa.bindparam("seq", type_=Int)),
    )
    .order_by(event.c.stream_id, event.c.seq)
    .limit(_limit)
)
"""A page of such events of those streams, after a place."""
