"""Limits are the caller's explicit figures: of a run, and of the nested scopes that narrow it (SPEC H4, D5, D13)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from harness.budget.usage import check_tool_name, tool_resource
from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.state import OBSERVED

MAX_TOOLS_WITH_LIMITS = 50

_FIGURES = (
    "model_calls",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "run_bytes",
    "cost_micros",
    "repeated_calls",
    "per_tool_default",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLimits:
    """How much one nested scope may use of what its run may; None leaves that to the run.

    The fields are those of `Limits`.
    """

    model_calls: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    run_bytes: int | None = None
    """Bytes of captured content: question, tool arguments and results, model replies, errors, answer."""
    cost_micros: int | None = None
    """Micro-units of the currency of the harness's prices; None is no limit on cost."""
    repeated_calls: int | None = None
    """Calls of one tool with the very same arguments; None is no limit on them."""
    per_tool: Mapping[str, int] = field(default_factory=dict, hash=False)
    per_tool_default: int | None = None
    """The limit of each tool that `per_tool` does not name."""
    observe: Collection[str] = frozenset()
    """Resources whose limit refuses nothing and only records `limit.would_reject`: fields of this class but those
    about tools, `tool:NAME`, and `tool_default`."""

    required: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in _FIGURES:
            value = getattr(self, name)
            if value is not None or name in self.required:
                _check_limit(f"limits.{name}", value)
        if not isinstance(self.per_tool, Mapping):
            raise InvalidInput("limits.per_tool", f"must be a mapping, not {type(self.per_tool).__name__}")
        if len(self.per_tool) > MAX_TOOLS_WITH_LIMITS:
            raise InvalidInput(
                "limits.per_tool", f"must name at most {MAX_TOOLS_WITH_LIMITS} tools, not {len(self.per_tool)}"
            )
        per_tool = {check_tool_name("limits.per_tool", tool): limit for tool, limit in self.per_tool.items()}
        for tool, limit in per_tool.items():
            _check_limit(f"limits.per_tool[{tool}]", limit)
        object.__setattr__(self, "per_tool", MappingProxyType(per_tool))
        object.__setattr__(self, "observe", _check_observe(self.observe, self._figures()))

    def as_map(self) -> dict[str, int]:
        """One flat map from resource to limit, with `observe:` before each resource that is only observed."""
        observe = self.observe
        return {OBSERVED + name if name in observe else name: limit for name, limit in self._figures().items()}

    def _figures(self) -> dict[str, int]:
        given = {name: getattr(self, name) for name in _FIGURES[:-1]}
        flat = {name: limit for name, limit in given.items() if limit is not None}
        flat.update({tool_resource(tool): limit for tool, limit in self.per_tool.items()})
        if self.per_tool_default is not None:
            flat["tool_default"] = self.per_tool_default
        return flat


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(ScopeLimits):
    """How much one run may use. Every figure is the caller's; there are no default numbers.

    Each is a whole number from 1: calls, where each attempt is one; tokens; `run_bytes` of captured content;
    `cost_micros`, millionths of the unit of the prices' currency; `repeated_calls` of one tool with equal arguments.
    Those that may be None are then no limit, but `per_tool_default=None` refuses every tool that `per_tool` does not
    name. `observe` names limits that only record: fields such as `tool_calls`, or `tool:NAME`, or `tool_default`.
    """

    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    run_bytes: int

    required: ClassVar[tuple[str, ...]] = _FIGURES[:6]

    @classmethod
    def from_map(cls, recorded: Mapping[str, int]) -> Limits:
        """The limits that `as_map` gave, such as those of a run's beginning on record."""
        figures = {name.removeprefix(OBSERVED): limit for name, limit in recorded.items()}
        tools = {name: limit for name, limit in figures.items() if name.startswith("tool:")}
        plain = {name: limit for name, limit in figures.items() if name not in tools and name != "tool_default"}
        return cls(
            **plain,
            per_tool={name.removeprefix("tool:"): limit for name, limit in tools.items()},
            per_tool_default=figures.get("tool_default"),
            observe={name.removeprefix(OBSERVED) for name in recorded if name.startswith(OBSERVED)},
        )


def _check_observe(observe: object, figures: Mapping[str, int]) -> frozenset[str]:
    if isinstance(observe, str | Mapping) or not isinstance(observe, Collection):
        raise InvalidInput("limits.observe", f"must be a set of resources, not {type(observe).__name__}")
    for resource in observe:
        if not isinstance(resource, str):
            raise InvalidInput("limits.observe", f"must hold names of resources, not {type(resource).__name__}")
        if resource not in figures:
            raise InvalidInput(
                "limits.observe",
                f"holds {resource[:80]!r}, for which there is no limit among {', '.join(sorted(figures))}",
            )
    return frozenset(observe)


def _check_limit(field_name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(
            field_name, f"must be a whole number from 1 to {MAX_SAFE_INTEGER}, not {type(value).__name__}"
        )
    if not 1 <= value <= MAX_SAFE_INTEGER:
        raise InvalidInput(field_name, f"must be a whole number from 1 to {MAX_SAFE_INTEGER}, not {value}")
