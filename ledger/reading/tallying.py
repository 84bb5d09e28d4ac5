"""Runs added up by agent, and which of them need to be looked at first: pure functions over rows of `diagnosis_run`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from harness.state import OBSERVED
from ledger.lists import AgentTally, AttentionReason, Spend

LONG_SHARE = 0.5
"""A run that has been running for more than this share of its time is long."""
LOST = "HARNESS_LOST"
REASONS: tuple[AttentionReason, ...] = get_args(AttentionReason)
TOKENS = ("input_tokens", "output_tokens", "total_tokens")
REFUSALS = ("calls_denied", "scopes_exhausted", "limits_passed")
"""Kinds of incidents that are refusals, or would have been."""
_BY_STATUS: Mapping[str, AttentionReason] = {
    "FAILED": "failed",
    "BUDGET_EXHAUSTED": "budget_exhausted",
    "TIMED_OUT": "timed_out",
}


@dataclass(frozen=True, slots=True)
class TalliedRun:
    """What is added up of one run."""

    run_id: str
    agent: str | None
    agent_version: str | None
    status: str
    outcome_reason: str | None
    degraded: bool
    created_us: int
    timeout_us: int
    limits: Mapping[str, int]
    """As they are stored, those that are only observed included."""
    usage: Mapping[str, int]
    incidents: Mapping[str, int]
    currency: str | None
    usage_unknown_count: int
    cost_unknown_count: int

    def unknown_count(self, resource: str) -> int:
        """Attempts of which it is not known how much of it they used."""
        if resource in TOKENS:
            return self.usage_unknown_count
        return self.cost_unknown_count if resource == "cost_micros" else 0


def tally(runs: Iterable[TalliedRun]) -> tuple[AgentTally, ...]:
    """The runs by agent and version, the one with the newest run first."""
    by_agent: dict[tuple[str | None, str | None], list[TalliedRun]] = defaultdict(list)
    for run in runs:
        by_agent[run.agent, run.agent_version].append(run)
    tallies = [_tally(agent, version, of_agent) for (agent, version), of_agent in by_agent.items()]
    return tuple(sorted(tallies, key=lambda one: (-one.newest_us, one.agent or "", one.agent_version or "")))


def most_urgent(runs: Iterable[TalliedRun], now_us: int, at_most: int) -> list[tuple[AttentionReason, str]]:
    """Runs that need to be looked at: by reason in the order of `AttentionReason`, then the newest first.

    What can still be helped comes first, then what broke, what was stopped, and what only did not go as planned.
    """
    urgent = [
        (REASONS.index(reason), -run.created_us, run.run_id, reason)
        for run in runs
        if (reason := why_urgent(run, now_us)) is not None
    ]
    return [(reason, run_id) for _, _, run_id, reason in sorted(urgent)[:at_most]]


def why_urgent(run: TalliedRun, now_us: int) -> AttentionReason | None:
    """The most urgent reason to look at the run, or None."""
    if run.status == "RUNNING":
        is_long = now_us - run.created_us > run.timeout_us * LONG_SHARE
        return "running_long" if is_long else None
    if run.outcome_reason == LOST:
        return "harness_lost"
    if run.status in _BY_STATUS:
        return _BY_STATUS[run.status]
    if run.incidents.get("hidden_retries"):
        return "hidden_retries"
    return "degraded" if run.degraded else None


def _tally(agent: str | None, version: str | None, runs: Sequence[TalliedRun]) -> AgentTally:
    by_status = Counter(run.status for run in runs)
    incidents: Counter[str] = Counter()
    cost: Counter[str] = Counter()
    cost_unknown: Counter[str] = Counter()
    for run in runs:
        incidents.update(run.incidents)
        if run.currency is not None and "cost_micros" in run.usage:
            cost[run.currency] += run.usage["cost_micros"]
        if run.currency is not None and run.cost_unknown_count:
            cost_unknown[run.currency] += run.cost_unknown_count
    return AgentTally(
        agent,
        version,
        len(runs),
        dict(by_status),
        sum(run.degraded for run in runs),
        {
            "budget_exhausted": by_status["BUDGET_EXHAUSTED"],
            **{kind: incidents[kind] for kind in REFUSALS},
        },
        incidents["hidden_retries"],
        _spends(runs),
        dict(cost),
        dict(cost_unknown),
        max(run.created_us for run in runs),
    )


def _spends(runs: Iterable[TalliedRun]) -> tuple[Spend, ...]:
    """By the key under which the limit is stored, which says whether it is only observed."""
    used: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    shares: dict[str, float] = {}
    for run in runs:
        for key, limit in run.limits.items():
            resource = key.removeprefix(OBSERVED)
            if resource == "tool_default":
                continue
            amount = run.usage.get(resource, 0)
            used[key] += amount
            unknown[key] += run.unknown_count(resource)
            counts[key] += 1
            shares[key] = max(shares.get(key, 0.0), amount / limit)
    spends = [
        Spend(key.removeprefix(OBSERVED), key.startswith(OBSERVED), used[key], unknown[key], shares[key], counts[key])
        for key in counts
    ]
    return tuple(sorted(spends, key=lambda one: (-one.highest_share, one.resource, one.is_observed)))
