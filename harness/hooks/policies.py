"""What a policy is asked, and what it answers: whether a tool may be called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.errors import InvalidInput
from harness.ids import check_code

EFFECTS = frozenset({"read", "write"})
"""What a tool may be declared to do to the world."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that asks to be let through."""

    session_id: str
    run_id: str
    name: str
    effect: str | None
    """`read` or `write`, as the caller declares it; None is unknown, which is not `read`."""
    arguments: Mapping[str, Any]
    """By name, the very objects that the tool gets: look, and change nothing."""
    call_id: str | None
    tool_key: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy says of a call."""

    allowed: bool
    reason: str
    """A code for the record, such as `WRITES_ARE_OFF`: never a text, which could hold what the arguments hold."""

    def __post_init__(self) -> None:
        if not isinstance(self.allowed, bool):
            raise InvalidInput("allowed", f"must be True or False, not {type(self.allowed).__name__}")
        check_code("reason", self.reason)

    @classmethod
    def allow(cls, reason: str = "ALLOWED") -> Decision:
        return cls(True, reason)

    @classmethod
    def deny(cls, reason: str) -> Decision:
        return cls(False, reason)


POLICY_FAILED = Decision.deny("POLICY_FAILED")
"""What a policy decides that raises, answers with anything but a `Decision`, or not in time."""

Policy: TypeAlias = Callable[[ToolRequest], Decision | Awaitable[Decision]]
"""Asked before each tool call, before anything of it is charged."""


def check_effect(effect: object) -> str:
    """`effect` if it is one that policies know, else `InvalidInput`."""
    if not isinstance(effect, str) or effect not in EFFECTS:
        raise InvalidInput("effect", f"must be read or write, not {effect!r}")
    return effect
