"""What lists of runs and sessions show, one frozen record per line; `ledger.records` has what one run shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ledger.records import ChatSession, Page, RunSummary


@dataclass(frozen=True, slots=True)
class RunLine(RunSummary):
    """One run in a list: its summary, and what else its row says; no detail rows behind it."""

    agent: str | None
    agent_version: str | None
    actor: str | None
    environment: str | None
    labels: Mapping[str, str]
    outcome_reason: str | None
    degraded: bool
    input_tokens: int | None
    """As charged so far; None where nothing was charged. Beside it stands `usage_unknown_count`."""
    output_tokens: int | None
    usage_unknown_count: int
    cost_micros: int | None
    """Micro-units of `currency`; None where nothing was priced."""
    currency: str | None
    cost_unknown_count: int
    timeout_us: int
    ended_us: int | None
    elapsed_us: int | None
    """From start to the decision that ended the run; None while it is running."""
    useful: bool | None
    """The feedback that counts; None where there is none."""
    incidents: Mapping[str, int]
    """As in `RunDetail`."""
    event_count: int
    is_checkpointed: bool
    """Whether the newest checkpoint covers every event of the run."""


@dataclass(frozen=True, slots=True)
class SessionLine(ChatSession):
    """One session in a list, with its newest run."""

    run_count: int
    """No more than `RUNS_COUNTED_MAX` are counted: that many means at least so many."""
    newest_run: RunLine | None


@dataclass(frozen=True, slots=True)
class RunPage(Page[RunLine]):
    """A page of runs."""

    is_cut: bool
    """Whether the search stopped at its bound: more may fit that were not looked at, here or on a further page."""


@dataclass(frozen=True, slots=True)
class SessionPage(Page[SessionLine]):
    """A page of sessions."""

    is_cut: bool
    """As in `RunPage`."""


@dataclass(frozen=True, slots=True)
class RunValues:
    """What a filter may be set to: what the newest runs have, each in order and without repetition."""

    agents: tuple[str, ...]
    agent_versions: tuple[str, ...]
    flows: tuple[str, ...]
    actors: tuple[str, ...]
    environments: tuple[str, ...]
    label_names: tuple[str, ...]
    tools: tuple[str, ...]
    reasons: tuple[str, ...]
    is_cut: bool
    """Whether there are older runs that were not looked at."""


@dataclass(frozen=True, slots=True)
class Spend:
    """What an agent's runs used of one limited resource."""

    resource: str
    """As in `RunDetail.limits`."""
    is_observed: bool
    """Whether what passes the limit was only recorded; runs in which it was enforced are added up apart."""
    used: int
    """By all the runs that had the limit, as far as it is known;"""
    unknown_count: int
    """and the attempts of which it is not."""
    highest_share: float
    """Of its limit, by the run that used most of it; above 1 where a limit was passed."""
    run_count: int
    """Runs that had the limit."""


@dataclass(frozen=True, slots=True)
class AgentTally:
    """The runs of one version of an agent, added up."""

    agent: str | None
    agent_version: str | None
    run_count: int
    by_status: Mapping[str, int]
    """How many of each status there are; `RUNNING` among them."""
    degraded: int
    refusals: Mapping[str, int]
    """`budget_exhausted` runs, and of all runs `calls_denied`, `scopes_exhausted` and `limits_passed`."""
    hidden_retries: int
    spends: tuple[Spend, ...]
    """By resource, the one nearest to its limit first."""
    cost_micros: Mapping[str, int]
    """By currency, as far as it is known;"""
    cost_unknown: Mapping[str, int]
    """and the attempts of which it is not, likewise."""
    newest_us: int


AttentionReason = Literal[
    "running_long", "harness_lost", "failed", "budget_exhausted", "timed_out", "hidden_retries", "degraded"
]
"""Why a run should be looked at, the most urgent first."""


@dataclass(frozen=True, slots=True)
class Attention:
    """A run that should be looked at, and why."""

    reason: AttentionReason
    run: RunLine


@dataclass(frozen=True, slots=True)
class Tallies:
    """What ended lately and what runs now, by agent, and which runs need to be looked at first."""

    agents: tuple[AgentTally, ...]
    """The one with the newest run first."""
    attention: tuple[Attention, ...]
    """The most urgent first, and of equal ones the newest."""
    run_count: int
    is_cut: bool
    """Whether there were more runs than are added up: then the oldest are left out."""
