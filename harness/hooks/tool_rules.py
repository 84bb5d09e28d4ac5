"""A policy of rules instead of code: which tools, and with which effects."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from harness.budget.usage import check_tool_name
from harness.errors import InvalidInput
from harness.hooks.policies import EFFECTS, Decision, ToolRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """Lets a tool through that no rule is against. Names are exact; a rule that is None is not asked."""

    allow: Collection[str] | None = None
    """The only tools to let through; an empty collection lets none."""
    deny: Collection[str] = ()
    """Tools never to let through, whatever else is said of them."""
    effects: Collection[str] | None = None
    """The only effects to let through, of `read` and `write`. A call that declares none has neither."""
    name: str = "tool_rules"
    """What the record calls this policy."""

    def __post_init__(self) -> None:
        for field in ("allow", "deny", "effects"):
            given = getattr(self, field)
            if given is None and field != "deny":
                continue
            if isinstance(given, str) or not isinstance(given, Collection):
                raise InvalidInput(field, f"must be a collection of names, not {type(given).__name__}")
            names = frozenset(check_tool_name(field, name) for name in given)
            object.__setattr__(self, field, names)
        unknown = sorted(set(self.effects or ()) - EFFECTS)
        if unknown:
            raise InvalidInput("effects", f"must be of {' and '.join(sorted(EFFECTS))}, not {unknown[0]}")

    async def __call__(self, request: ToolRequest) -> Decision:
        """The decision; asynchronous only so that it needs no thread."""
        if request.name in self.deny:
            return Decision.deny("TOOL_DENIED")
        if self.allow is not None and request.name not in self.allow:
            return Decision.deny("TOOL_NOT_ALLOWED")
        if self.effects is not None and request.effect not in self.effects:
            return Decision.deny("EFFECT_UNKNOWN" if request.effect is None else "EFFECT_NOT_ALLOWED")
        return Decision.allow()
