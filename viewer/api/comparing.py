"""A comparison of two runs for programs."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from harness.events.base import Id
from ledger.audit.comparing.comparing import Comparison, Delta, Entry
from ledger.audit.comparing.crossings import Crossing, Piece, TooManyCrossings
from ledger.records import RunTrace
from viewer.access.routes import GuardedRoute, Right
from viewer.access.sessions import TWO_RUNS
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Failure, Parameter, Position
from viewer.reading.comparing import Comparisons
from viewer.site import Site

Json = dict[str, Any]

BOUNDARIES_PER_PAGE = 1_000
BOTH_RUNS = (
    *(Parameter(name, Id, "", required=True) for name in ("sessionA", "runA", "sessionB", "runB")),
    Parameter("skip", Position, "How many boundaries come before the page."),
)
TOO_LONG = Failure(413, TooManyCrossings.code, "A run has more boundaries than are laid side by side.")


class Comparing:
    """The endpoint beside the page."""

    def __init__(self, comparisons: Comparisons, site: Site) -> None:
        self._comparisons = comparisons
        self._site = site

    @property
    def routes(self) -> list[GuardedRoute]:
        return [
            GuardedRoute(
                "/api/diagnosis/compare",
                self.compare,
                needs=Right.READ,
                shows_content=True,
                within_sessions=True,
                about=TWO_RUNS,
                described=Described(answer=dict[str, Any], query=BOTH_RUNS, pages=True, failures=(TOO_LONG,)),
            ),
        ]

    async def compare(self, request: Request) -> Response:
        """Two runs side by side, boundaries by page."""
        a = queries.run_in_query(request, "sessionA", "runA")
        b = queries.run_in_query(request, "sessionB", "runB")
        skipped = queries.position(request, "skip") or 0
        found = await self._comparisons.of(a, b)
        headers = {}
        following = skipped + BOUNDARIES_PER_PAGE
        if following < len(found.entries):
            headers["Link"] = f'<{self._site.compare_api(a, b, skip=following)}>; rel="next"'
        return wrapper.ok(comparison_body(found, skipped), headers=headers)


def comparison_body(found: Comparison, skipped: int = 0) -> Json:
    """What was found, with the boundaries from the one after `skipped` on; times are in microseconds."""
    return {
        "same": found.is_same,
        "mostInCommon": found.is_longest,
        "a": _run_body(found.a),
        "b": _run_body(found.b),
        "differences": [each._asdict() for each in found.differences],
        "cannotTell": list(found.cannot_tell),
        "elapsedUs": _delta_body(found.elapsed_us),
        "usage": {each.name: _delta_body(each) for each in found.usage},
        "counts": {
            "same": found.count("same"),
            "different": found.count("different"),
            "onlyA": found.count("only_a"),
            "onlyB": found.count("only_b"),
            "cannotTell": found.unknown_count,
        },
        "skipped": skipped,
        "boundaries": [_entry_body(each) for each in found.entries[skipped : skipped + BOUNDARIES_PER_PAGE]],
    }


def _run_body(trace: RunTrace) -> Json:
    run, summary = trace.run, trace.run.summary
    return {
        "sessionId": summary.session_id,
        "runId": summary.run_id,
        "status": summary.status,
        "outcomeReason": run.outcome_reason,
        "eventCount": run.event_count,
        "usageUnknownCount": run.usage_unknown_count,
        "costUnknownCount": run.cost_unknown_count,
        "headLink": run.head_link,
    }


def _delta_body(delta: Delta) -> Json:
    return {"a": delta.a, "b": delta.b}


def _entry_body(entry: Entry) -> Json:
    return {
        "sign": {"only_a": "onlyA", "only_b": "onlyB"}.get(entry.sign, entry.sign),
        "differences": [each._asdict() for each in entry.differences],
        "cannotTell": entry.cannot_tell,
        "a": _crossing_body(entry.a),
        "b": _crossing_body(entry.b),
    }


def _crossing_body(crossing: Crossing | None) -> Json | None:
    if crossing is None:
        return None
    return {
        "seq": crossing.seq,
        "kind": crossing.kind,
        "name": crossing.name,
        "place": crossing.place,
        "outcome": crossing.outcome,
        "attemptCount": crossing.attempt_count,
        "failures": crossing.failures,
        "durationUs": crossing.duration_us,
        "usage": crossing.usage,
        "model": crossing.model,
        "effect": crossing.effect,
        "input": _piece_body(crossing.input),
        "output": _piece_body(crossing.output),
    }


def _piece_body(piece: Piece | None) -> Json | None:
    return None if piece is None else {"digest": piece.digest, "sizeBytes": piece.size_bytes}
