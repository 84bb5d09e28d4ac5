"""Counts of what happened, by kind: bounded, however many kinds there turn out to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from ledger.audit.report.records import Figures

KINDS_MAX = 200
"""Of one thing; further kinds are counted together."""
OTHERS = "(others)"

OUTCOMES = ("SUCCESS", "FAILED", "CANCELLED", "TIMED_OUT", "BUDGET_EXHAUSTED", "RUNNING")
NAMES = (
    "outcomes",
    "agents",
    "limits_that_ended_runs",
    "scopes_exhausted",
    "limits_passed",
    "work_refused",
    "calls_denied",
    "retries_refused",
    "cancellations_asked_for",
    "cancellations_signalled",
    "hidden_retries",
    "degraded_runs",
    "recovered_runs",
    "contents_erased",
    "erasures_decided",
    "erasures_finished",
    "accesses",
    "decisions_about_the_ledger",
)
"""All that is counted; what did not happen is 0, and not left out."""

Fields = Mapping[str, Any]


class Tally:
    """Everything that is counted."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in NAMES}

    def count(self, name: str, *kind: object, times: int = 1) -> None:
        """One more of that kind; what a kind does not say is empty."""
        counter = self._counts[name]
        key = tuple("" if part is None else str(part) for part in kind)
        if key not in counter and len(counter) >= KINDS_MAX:
            key = (OTHERS, *("" for _ in key[1:]))
        counter[key] += times

    def figures(self) -> dict[str, Figures]:
        """What it comes to."""
        return {name: _figures(counter) for name, counter in self._counts.items()}

    def run_event(self, event_type: str, fields: Fields) -> None:
        """An event of one of the runs."""
        match event_type:
            case "policy.decided" if not fields["allowed"]:
                self.count("calls_denied", fields["name"], fields["policy"], fields["reason"])
            case "reservation.rejected":
                self.count("work_refused", fields["resource"], "scope" if "scope_id" in fields else "run")
            case "limit.would_reject":
                self.count("limits_passed", fields["resource"])
            case "retry.refused":
                self.count("retries_refused", fields["reason"])
            case "hidden_retry.detected":
                self.count("hidden_retries", unquote(fields["boundary"].split("/")[-3]))
            case "scope.exhausted":
                self.count("scopes_exhausted", fields["resource"])
            case "cancellation.requested":
                self.count("cancellations_asked_for", fields["reason"], fields.get("actor"))
            case "cancellation.signalled":
                self.count("cancellations_signalled", fields["reason"])
            case "content.erased" if fields["stage"] == "ROWS":
                kind = fields["scope"], fields["reason"], fields.get("actor")
                self.count("contents_erased", *kind, times=fields["content_count"])

    def system_event(self, event_type: str, fields: Fields) -> None:
        """An event of the ledger's own stream, in the period."""
        match event_type:
            case "access.recorded":
                allowed = "allowed" if fields["allowed"] else f"refused: {fields.get('reason') or 'no reason given'}"
                self.count("accesses", fields["action"], allowed, fields.get("actor"))
            case "erasure.decided":
                self.count("erasures_decided", fields["scope"], fields["reason"], fields.get("actor"))
            case "retention.decided":
                self.count("erasures_decided", "RETENTION", fields["reason"], fields.get("actor"))
            case "erasure.finished":
                self.count("erasures_finished", fields["stage"])
            case _:
                self.count("decisions_about_the_ledger", event_type, fields.get("actor"))


def _figures(counter: Counter[tuple[str, ...]]) -> Figures:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return Figures(sum(counter.values()), tuple(ordered))
