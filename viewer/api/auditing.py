"""What vouches for the ledger and for one run, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from harness.events.base import Id
from ledger.audit.signing.receipts import Receipt, receipt_now
from ledger.audit.signing.stored import StoredCheckpoint
from ledger.records import RecordedEvent
from ledger.verifying import VerifyReport
from ledger.words.format import instant
from viewer.access.routes import GuardedRoute, Right
from viewer.audit.history import Entry, Kind, Known, SystemHistory
from viewer.audit.verification import UnderWay, Verification, Verified
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Parameter, Position
from viewer.reading import Reader

Json = dict[str, Any]

ENTRIES_MAX = 50
"""Of each kind; the rest is in the ledger's own events."""
EVENTS_PER_PAGE = 200
_ENVELOPE = frozenset({"event_id", "run_id", "session_id", "seq", "stream_id", "type", "version", "writer_id"})

ANY = Described(answer=dict[str, Any])
EVENTS = Described(
    answer=list[dict[str, Any]],
    query=(Parameter("after", Position, "The number of the event that the page begins behind."),),
    pages=True,
)
RUN = Described(
    answer=dict[str, Any],
    query=tuple(Parameter(name, Id, "", required=True) for name in ("sessionId", "runId")),
)


class Auditing:
    """The endpoints beside the audit pages."""

    def __init__(self, reader: Reader, history: SystemHistory, verification: Verification) -> None:
        self._reader = reader
        self._history = history
        self._verification = verification

    @property
    def routes(self) -> list[GuardedRoute]:
        audit = Right.AUDIT
        return [
            GuardedRoute("/api/audit", self.audit, needs=audit, described=ANY),
            GuardedRoute("/api/audit/events", self.events, needs=audit, described=EVENTS),
            GuardedRoute("/api/audit/verification", self.verification, needs=audit, described=ANY),
            GuardedRoute("/api/audit/runs", self.run, needs=audit, within_sessions=True, described=RUN),
        ]

    async def audit(self, request: Request) -> Response:
        """The newest checkpoint, what has come since, and what was decided."""
        known = await self._history.read_on()
        checkpoint, last_leaf = await self._reader.newest_checkpoint(), await self._reader.last_leaf()
        body = audit_body(await self._reader.ledger_id(), checkpoint, last_leaf + 1, known)
        return wrapper.ok(body)

    async def events(self, request: Request) -> Response:
        """The ledger's own events after a position, in order."""
        found = await self._reader.system_events(queries.position(request, "after") or 0, EVENTS_PER_PAGE)
        headers = {}
        if len(found) == EVENTS_PER_PAGE:
            headers["Link"] = f'<{request.url.path}?after={found[-1].seq}>; rel="next"'
        return wrapper.ok(events_body(found), headers=headers)

    async def verification(self, request: Request) -> Response:
        """How far a verification is, and what the last one came to."""
        return wrapper.ok(verification_body(self._verification.under_way, self._verification.last))

    async def run(self, request: Request) -> Response:
        """What proves that the log holds one run."""
        keys = queries.run_in_query(request)
        return wrapper.ok(receipt_body(*keys, await receipt_now(self._reader, *keys)))


def audit_body(
    ledger_id: str, checkpoint: StoredCheckpoint | None, event_count: int, known: Mapping[Kind, Known]
) -> Json:
    """What vouches for the ledger, and the newest of each kind of decision."""
    return {
        "ledgerId": ledger_id,
        "eventCount": event_count,
        "checkpoint": None if checkpoint is None else checkpoint_body(checkpoint),
        "tailEventCount": event_count - (0 if checkpoint is None else min(checkpoint.size, event_count)),
        "counts": {kind: each.count for kind, each in known.items()},
        **{kind: [_entry_body(entry) for entry in _newest(each)] for kind, each in known.items()},
    }


def checkpoint_body(checkpoint: StoredCheckpoint) -> Json:
    """A signed checkpoint, whose signature nobody has checked here."""
    return {
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": checkpoint.root.hex(),
        "keyId": checkpoint.key_id,
        "signedAt": instant(checkpoint.created_us),
        "note": checkpoint.note,
    }


def events_body(events: Iterable[RecordedEvent]) -> list[Json]:
    """The ledger's own events as they are."""
    return [
        {"seq": event.seq, "type": event.type, "recordedAt": instant(event.recorded_us), "fields": dict(event.fields)}
        for event in events
    ]


def verification_body(under_way: UnderWay | None, last: Verified | None) -> Json:
    """How far a verification is, and what the last one came to."""
    return {
        "underWay": under_way
        and {"startedAt": instant(under_way.started_us), "done": under_way.done, "of": under_way.of},
        "last": last
        and {
            "startedAt": instant(last.started_us),
            "endedAt": instant(last.ended_us),
            "problem": last.problem or None,
            "report": last.report and _report_body(last.report),
        },
    }


def receipt_body(session_id: str, run_id: str, receipt: Receipt | None) -> Json:
    """The proof that the log holds a run; `receipt` is None where no checkpoint covers any of its events."""
    return {
        "sessionId": session_id,
        "runId": run_id,
        "receipt": receipt
        and {
            "seq": receipt.seq,
            "link": receipt.link.hex(),
            "index": receipt.proof.index,
            "path": [each.hex() for each in receipt.proof.path],
            "checkpoint": receipt.proof.checkpoint.note,
            "text": receipt.text(),
        },
    }


def _report_body(report: VerifyReport) -> Json:
    return {
        "right": report.is_right,
        "ledgerId": report.ledger_id,
        "eventCount": report.event_count,
        "streamCount": report.stream_count,
        "contentCount": report.content_count,
        "rowCount": report.row_count,
        "runsOutdated": report.runs_outdated,
        "anchoredCount": report.anchored_count,
        "tailEventCount": report.tail.event_count,
        "findingCount": report.finding_count,
        "findings": [
            {"problem": each.problem, "streamId": each.stream_id, "seq": each.seq, "detail": each.detail}
            for each in report.findings
        ],
    }


def _newest(known: Known) -> list[Entry]:
    return list(reversed(known.newest))[:ENTRIES_MAX]


def _entry_body(entry: Entry) -> Json:
    facts = {name: value for name, value in entry.facts.items() if name not in _ENVELOPE}
    finished = entry.finished and {"stage": entry.finished["stage"], "contentCount": entry.finished["content_count"]}
    return {"seq": entry.seq, "at": instant(entry.at_us), "type": entry.type, "facts": facts, "finished": finished}
