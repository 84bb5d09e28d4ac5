"""What is known of a run at one event: no larger for a run that has crossed more boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Self

RUNNING = "RUNNING"
OBSERVED = "observe:"
"""Before the resource of a limit that is only observed, in the limits of a run or scope (SPEC D13)."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


class OpenAttempt(NamedTuple):
    """An attempt that was started and has not ended."""

    attempt_id: str
    boundary: str
    parent_attempt_id: str | None
    kind: str
    scope_ids: tuple[str, ...] = ()
    """The nested scopes that it is charged to, the innermost first."""


class Refusal(NamedTuple):
    """The limit that refused work, or ended a scope or the run."""

    resource: str
    used: int
    limit: int
    amount: int | None = None
    boundary: str | None = None


class Reservation(NamedTuple):
    """Tokens and cost that were charged for an attempt as an estimate, until its usage settles."""

    amounts: Mapping[str, int]
    scope_ids: tuple[str, ...] = ()


class ScopeState(NamedTuple):
    """A nested scope that is open (SPEC D5)."""

    boundary: str
    limits: Mapping[str, int]
    scope_ids: tuple[str, ...]
    """It and the scopes around it, the innermost first."""
    observed: Mapping[str, int] = NOTHING
    usage: Mapping[str, int] = NOTHING
    usage_unknown_count: int = 0
    cost_unknown_count: int = 0
    exhausted: Refusal | None = None


class Evolving:
    """What a fold builds up: changed only by the fold, and only where nobody else has seen it yet.

    Mappings in it are never changed but replaced, so copies share them.
    """

    def copy(self) -> Self:
        """The same once more, to be changed."""
        copied = object.__new__(type(self))
        copied.__dict__ = self.__dict__.copy()
        return copied


def _nothing() -> Mapping[str, Any]:
    return NOTHING


@dataclass
class RunState(Evolving):
    """Everything a decision about the run needs, and nothing that grows with the number of boundaries crossed."""

    session_id: str
    run_id: str
    started_us: int
    timeout_us: int
    limits: Mapping[str, int]
    """As recorded, with the observed ones under `observe:` and their resource."""
    observed: Mapping[str, int] = field(default_factory=_nothing)
    """The observed ones alone, by resource."""
    is_priced: bool = False
    """Whether cost is reckoned, by a price table."""
    usage: Mapping[str, int] = field(default_factory=_nothing)
    """With what is reserved and not settled yet."""
    usage_unknown_count: int = 0
    """Model attempts that ended without their token usage being known."""
    cost_unknown_count: int = 0
    """Model attempts that ended without their cost being known, where cost is reckoned."""
    open_attempts: Mapping[str, OpenAttempt] = field(default_factory=_nothing)
    abandoned_attempts: Mapping[str, OpenAttempt] = field(default_factory=_nothing)
    """Attempts whose end may still arrive late."""
    unsettled_attempts: Mapping[str, OpenAttempt] = field(default_factory=_nothing)
    """Model attempts that ended and whose usage has not been settled yet."""
    reserved: Mapping[str, Reservation] = field(default_factory=_nothing)
    """By the attempt that has not settled it yet."""
    scopes: Mapping[str, ScopeState] = field(default_factory=_nothing)
    flow: str | None = None
    cancel_requested: str | None = None
    cancel_signalled: str | None = None
    graph_final_node: str | None = None
    answered: bool = False
    refusal: Refusal | None = None
    outcome: str = RUNNING
    reason: str | None = None
    ended_us: int | None = None
    ended_elapsed_us: int | None = None


def observed_in(limits: Mapping[str, int]) -> Mapping[str, int]:
    """The limits that are only observed, by resource."""
    found = {name.removeprefix(OBSERVED): limit for name, limit in limits.items() if name.startswith(OBSERVED)}
    return MappingProxyType(found) if found else NOTHING


def path_of(boundary: str) -> str:
    """Where in its run a boundary lies: all of it but kind, name, ordinal and attempt (SPEC D7)."""
    return boundary.rsplit("/", 4)[0] if boundary.count("/") > 3 else ""
