"""What the overview answers, as types: for those who write it, and for the description of the API."""

from typing_extensions import TypedDict

from harness.events.base import CountMap
from ledger.lists import AttentionReason
from viewer.api.shapes import Instant, RunLine


class Spend(TypedDict):
    """What an agent's runs used of one limited resource."""

    resource: str
    observed: bool
    """Whether what passes the limit was only recorded; runs in which it was enforced are added up apart."""
    used: int
    """By all of them, as far as it is known;"""
    unknownCount: int
    """and the attempts of which it is not."""
    highestShare: float
    """Of its limit, by the run that used most of it; above 1 where the limit was passed."""
    runCount: int
    """Runs that had the limit."""


class AgentTally(TypedDict):
    """The runs of one version of an agent, added up."""

    agent: str | None
    agentVersion: str | None
    runCount: int
    byStatus: dict[str, int]
    degraded: int
    refusals: CountMap
    hiddenRetries: int
    spends: list[Spend]
    costMicros: dict[str, int]
    """By currency, as far as it is known;"""
    costUnknown: dict[str, int]
    """and the attempts of which it is not, likewise."""
    newestAt: Instant


class Attention(TypedDict):
    """A run that should be looked at, and why."""

    reason: AttentionReason
    run: RunLine


class Overview(TypedDict):
    """What runs add up to, and which to look at first."""

    window: str
    runCount: int
    cut: bool
    """Whether only the newest runs are added up."""
    agents: list[AgentTally]
    attention: list[Attention]
