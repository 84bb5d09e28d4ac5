"""The arithmetic that says whether one more piece of work would pass a limit (SPEC H4, H4a, D13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_name
from harness.state import ESTIMATES, NOTHING

DEADLINE = "deadline_us"
"""The resource that a refusal names where time has run out."""

MAX_TOOL_NAME_CHARS = 200
MAX_REPORTED_TOKENS = 10**12
"""More than this in one reply is no token count."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one model attempt as its provider reported them; None is unknown, never 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None

    def __init_subclass__(cls) -> None:
        raise TypeError("a TokenUsage is two counts: there is no subclass that could report others")

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens"):
            value = getattr(self, name)
            if value is not None and not is_token_count(value):
                raise InvalidInput(
                    f"usage.{name}", f"must be a whole number of tokens from 0 to {MAX_REPORTED_TOKENS}, not {value!r}"
                )

    @property
    def is_complete(self) -> bool:
        """True where both counts are known."""
        return self.input_tokens is not None and self.output_tokens is not None

    def as_map(self) -> dict[str, int]:
        """What is known, with the total of what is known."""
        known = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        amounts = {name: tokens for name, tokens in known.items() if tokens is not None}
        return {**amounts, "total_tokens": sum(amounts.values())} if amounts else {}


def check_estimate(reserve: object) -> TokenUsage:
    """What to reserve; an estimate that is given has to say something."""
    if reserve is None:
        return TokenUsage()
    if not isinstance(reserve, TokenUsage):
        raise InvalidInput("reserve", f"must be a TokenUsage, not {type(reserve).__name__}")
    if not reserve.as_map():
        raise InvalidInput("reserve", "must name input_tokens, output_tokens or both, from 0 on; leave it out for none")
    return reserve


def is_token_count(value: object) -> TypeGuard[int]:
    """Whether this can be the number of tokens of one reply."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_REPORTED_TOKENS


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that `amount` more would pass, or that `used` has passed already."""

    resource: str
    used: int
    limit: int
    amount: int = 0
    scope_id: str | None = None
    """The nested scope whose limit it is; None where it is the run's."""

    def as_fields(self) -> dict[str, Any]:
        """As events name it, which hold no integer beyond a bound."""
        amount, used = min(self.amount, MAX_SAFE_INTEGER), min(self.used, MAX_SAFE_INTEGER)
        figures = {"resource": self.resource, "amount": amount, "used": used, "limit": self.limit}
        return figures if self.scope_id is None else {**figures, "scope_id": self.scope_id}


class Account(Protocol):
    """What has limits and usage of its own: a run, or a nested scope of it."""

    @property
    def limits(self) -> Mapping[str, int]: ...

    @property
    def observed(self) -> Mapping[str, int]: ...

    @property
    def usage(self) -> Mapping[str, int]: ...


def tool_resource(tool: str) -> str:
    """The name under which one tool's calls are limited and charged."""
    return f"tool:{tool}"


def limit_of(account: Account, resource: str) -> int | None:
    """The limit that is enforced for a resource; a tool without a limit of its own has the per-tool default."""
    limits = account.limits
    return limits[resource] if resource in limits else _default_of(resource, limits, account.observed)


def observed_limit_of(account: Account, resource: str) -> int | None:
    """The limit that is only observed for a resource (SPEC D13)."""
    observed = account.observed
    return observed[resource] if resource in observed else _default_of(resource, observed, account.limits)


def is_limited(account: Account, resource: str) -> bool:
    """Whether there is a limit of either kind for a resource."""
    return limit_of(account, resource) is not None or observed_limit_of(account, resource) is not None


def find_excess(account: Account, amounts: Mapping[str, int]) -> Excess | None:
    """The first enforced limit that charging `amounts` would pass, or None: then all of them may be charged."""
    usage = account.usage
    for resource, amount in amounts.items():
        limit = limit_of(account, resource)
        used = usage.get(resource, 0)
        if limit is not None and used + amount > limit:
            return Excess(resource, used, limit, amount)
    return None


def find_overrun(account: Account, reserved: Mapping[str, int] = NOTHING) -> Excess | None:
    """The first enforced limit that recorded usage has passed, as actual tokens and their cost may (SPEC H4a).

    What is only `reserved` of that usage has not been used yet, and passes no limit.
    """
    for resource, used in account.usage.items():
        limit = limit_of(account, resource)
        if limit is not None and used > limit and used - reserved.get(resource, 0) > limit:
            return Excess(resource, used - reserved.get(resource, 0), limit)
    return None


def find_observed(
    account: Account, amounts: Mapping[str, int], reserved: Mapping[str, int] = NOTHING
) -> tuple[Excess, ...]:
    """Every observed limit that would have refused `amounts`: by what they ask, or by tokens and cost spent before.

    Calls and bytes are told where they are asked for; a boundary that asks for none of them is not held up by them.
    """
    if not account.observed:
        return ()
    found = []
    for resource in {**account.usage, **amounts}:
        limit = observed_limit_of(account, resource)
        used, amount = account.usage.get(resource, 0), amounts.get(resource, 0)
        if limit is None or used + amount <= limit:
            continue
        if amount or (resource in ESTIMATES and used - reserved.get(resource, 0) > limit):
            found.append(Excess(resource, used, limit, amount))
    return tuple(found)


def total(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum, resource by resource."""
    summed: dict[str, int] = {}
    for each in amounts:
        for resource, amount in each.items():
            summed[resource] = summed.get(resource, 0) + amount
    return summed


def check_size(size_bytes: object) -> None:
    """Refuse anything but a positive whole number of bytes."""
    if isinstance(size_bytes, bool) or not isinstance(size_bytes, int) or size_bytes < 1:
        raise InvalidInput("size_bytes", f"must be a whole number of bytes from 1, not {size_bytes!r}")


def check_tool_name(field_name: str, tool: object) -> str:
    """`tool` if it can name a tool, else `InvalidInput`."""
    name = check_name(field_name, tool)
    if len(name) > MAX_TOOL_NAME_CHARS:
        raise InvalidInput(field_name, f"must be at most {MAX_TOOL_NAME_CHARS} characters")
    return name


def _default_of(resource: str, limits: Mapping[str, int], others: Mapping[str, int]) -> int | None:
    return limits.get("tool_default") if resource.startswith("tool:") and resource not in others else None
