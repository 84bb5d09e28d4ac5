"""A few events of a run, and the run itself."""

import json
from collections.abc import Mapping
from typing import Any

from ledger.audit.walking.standing import Change
from ledger.records import RecordedEvent, RunDetail
from ledger.words import event_lines
from viewer.guide.contents import blocks
from viewer.guide.lists import AT_US, rows
from viewer.present import json_tree
from viewer.present.links import TraceLinks
from viewer.present.trace.event_list import EventList, EventRow
from viewer.present.trace.inspector import Inspector
from viewer.present.trace.rows import Paging

_BOUNDARY = "executor.1/tool/query_logs/1/1"
_EVENTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("run.started", {"agent": "triage", "agent_version": "1.4", "timeout_us": 60_000_000, "limits": {"tool_calls": 5}}),
    ("attempt.started", {"kind": "tool", "name": "query_logs", "boundary": _BOUNDARY, "attempt": 1, "max_attempts": 1}),
    ("attempt.failed", {"boundary": _BOUNDARY, "duration_us": 390_000, "failure": "TIMEOUT", "will_retry": False}),
    (
        "reservation.rejected",
        {
            "kind": "tool",
            "name": "query_logs",
            "boundary": _BOUNDARY,
            "resource": "tool:query_logs",
            "amount": 1,
            "used": 5,
            "limit": 5,
        },
    ),
    ("run.terminated", {"outcome": "BUDGET_EXHAUSTED", "reason": "BUDGET_EXHAUSTED", "elapsed_us": 4_172_000}),
    ("feedback.recorded", {"useful": False, "actor": "on-call"}),
)
SELECTED = 4
"""The one that is shown in full."""


def listed(links: TraceLinks) -> EventList:
    """One whose link holds, one whose does not, one that was not looked at, the selected one, and one after the end."""
    holds = {1: True, 2: True, 3: False}
    found = [
        EventRow(
            event=event,
            tone=event_lines.tone(event.type, event.fields),
            line=event_lines.line(event.type, event.fields),
            href=links.event_at(event.seq),
            selected=event.seq == SELECTED,
            holds=holds.get(event.seq),
            heading="After the end: 1 annotation" if event.seq == len(_EVENTS) else "",
        )
        for event in _recorded()
    ]
    return EventList(found, Paging("Showing 1–6 of 44", None, links.events_after(6)), broken_count=1, checked=False)


def inspected(links: TraceLinks) -> Inspector:
    """The selected event, with what it changed and what it names."""
    event = _recorded()[SELECTED - 1]
    return Inspector(
        event=event,
        tone=event_lines.tone(event.type, event.fields),
        line=event_lines.line(event.type, event.fields),
        tree=json_tree.of(dict(event.fields)),
        named=[("input", blocks()[0][1])],
        listed=True,
        chosen=True,
        previous=links.event_at(SELECTED - 1),
        following=links.event_at(SELECTED + 1),
        found=links.event_at(SELECTED),
        changed=[Change("Outcome", "running", "out of budget"), Change("Tool calls", None, "5", " of 5")],
        then=links.replaying(SELECTED),
        api=links.event_api(SELECTED),
    )


def _recorded() -> list[RecordedEvent]:
    found = []
    for seq, (event_type, fields) in enumerate(_EVENTS, 1):
        body = json.dumps(fields, separators=(",", ":")).encode()
        at_us = AT_US + seq * 640_000
        digest = f"{seq:02x}" * 32
        event_id = f"guide:{seq}"
        found.append(
            RecordedEvent(seq, seq, event_id, event_type, 1, at_us, at_us, seq * 640_000, fields, body, digest, digest)
        )
    return found


def run() -> RunDetail:
    """The run that all of it is of."""
    line = rows()[1].line
    return RunDetail(
        summary=line,
        agent=line.agent,
        agent_version=line.agent_version,
        actor=line.actor,
        environment=line.environment,
        labels=line.labels,
        parent_run_id=None,
        continues_run_id=None,
        traceparent=None,
        limits={},
        observed_limits={},
        usage={},
        reserved={},
        usage_unknown_count=0,
        currency=line.currency,
        price_table="2026-11",
        cost_unknown_count=0,
        incidents={},
        timeout_us=line.timeout_us,
        started_us=AT_US,
        ended_us=line.ended_us,
        elapsed_us=line.elapsed_us,
        outcome_reason=line.outcome_reason,
        cancel_reason=None,
        error=None,
        refused=None,
        degraded=False,
        orchestration_trace=None,
        event_count=44,
        head_link="5597b92c" * 8,
    )
