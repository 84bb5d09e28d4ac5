"""Limits, and the arithmetic that says whether one more piece of work would pass them (SPEC H4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeGuard

from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_name

MAX_TOOLS_WITH_LIMITS = 50
MAX_TOOL_NAME_CHARS = 200
MAX_REPORTED_TOKENS = 10**12
"""More than this in one reply is no token count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one run may use. Every figure is the caller's; there are no default numbers."""

    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    run_bytes: int
    """Bytes of captured content: question, tool arguments and results, model replies, errors, answer."""
    per_tool: Mapping[str, int] = field(default_factory=dict, hash=False)
    per_tool_default: int | None = None
    """The limit of each tool that `per_tool` does not name; None refuses such tools."""

    def __post_init__(self) -> None:
        for name in ("model_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "run_bytes"):
            _check_limit(f"limits.{name}", getattr(self, name))
        if self.per_tool_default is not None:
            _check_limit("limits.per_tool_default", self.per_tool_default)
        if not isinstance(self.per_tool, Mapping) or len(self.per_tool) > MAX_TOOLS_WITH_LIMITS:
            raise InvalidInput("limits.per_tool", f"must be a mapping of at most {MAX_TOOLS_WITH_LIMITS} tools")
        for tool, limit in self.per_tool.items():
            check_tool_name("limits.per_tool", tool)
            _check_limit(f"limits.per_tool[{tool}]", limit)
        object.__setattr__(self, "per_tool", MappingProxyType(dict(self.per_tool)))

    def as_map(self) -> dict[str, int]:
        """The limits as one flat map from resource to limit, as `run.started` records them."""
        flat = {
            "model_calls": self.model_calls,
            "tool_calls": self.tool_calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "run_bytes": self.run_bytes,
        }
        flat.update({tool_resource(tool): limit for tool, limit in self.per_tool.items()})
        if self.per_tool_default is not None:
            flat["tool_default"] = self.per_tool_default
        return flat


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one model attempt as its provider reported them; None is unknown, never 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens"):
            value = getattr(self, name)
            if value is not None and not is_token_count(value):
                raise InvalidInput(f"usage.{name}", f"must be a whole number of tokens from 0, not {value!r}")

    @property
    def is_complete(self) -> bool:
        """True where both counts are known."""
        return self.input_tokens is not None and self.output_tokens is not None

    def as_map(self) -> dict[str, int]:
        """What is known, with the total of what is known."""
        known = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        amounts = {name: tokens for name, tokens in known.items() if tokens is not None}
        return {**amounts, "total_tokens": sum(amounts.values())} if amounts else {}


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


def tool_resource(tool: str) -> str:
    """The name under which one tool's calls are limited and charged."""
    return f"tool:{tool}"


def limit_of(limits: Mapping[str, int], resource: str) -> int | None:
    """The limit that holds for a resource; a tool without its own has the per-tool default."""
    limit = limits.get(resource)
    return limits.get("tool_default") if limit is None and resource.startswith("tool:") else limit


def find_excess(limits: Mapping[str, int], usage: Mapping[str, int], amounts: Mapping[str, int]) -> Excess | None:
    """The first limit that charging `amounts` would pass, or None: then all of them may be charged."""
    for resource, amount in amounts.items():
        limit = limit_of(limits, resource)
        used = usage.get(resource, 0)
        if limit is not None and used + amount > limit:
            return Excess(resource, used, limit, amount)
    return None


def find_overrun(limits: Mapping[str, int], usage: Mapping[str, int]) -> Excess | None:
    """The first limit that recorded usage has passed, as actual token usage may (SPEC H4a)."""
    return find_excess(limits, usage, dict.fromkeys(usage, 0))


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


def _check_limit(field_name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field_name, f"must be a whole number from 1, not {type(value).__name__}")
    if not 1 <= value <= MAX_SAFE_INTEGER:
        raise InvalidInput(field_name, f"must be from 1 to {MAX_SAFE_INTEGER}, not {value}")
