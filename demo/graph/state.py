"""What the graph's nodes hand to one another. It lives in memory for one run; the ledger never holds it (SPEC R12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from demo.model import Message
from demo.rules.results import Result

PLANNER = "planner"
EXECUTOR = "executor"
SEMANTIC_GUARD = "semantic_guard"
EVIDENCE_GUARD = "evidence_guard"
COMPOSER = "composer"
FALLBACK = "fallback"

NEXT = "NEXT"
REPAIR = "REPAIR"
TO_FALLBACK = "FALLBACK"


class State(TypedDict):
    """LangGraph's state: each node returns the keys that it changes."""

    conversation: tuple[Message, ...]
    """Earlier questions and answers, and the question of this run at the end."""
    plan: tuple[str, ...]
    messages: tuple[Message, ...]
    """Tool calls and their answers, as the model reads them."""
    results: tuple[Result, ...]
    is_relevant: bool
    """Whether the results are about what was asked, as the semantic guard judged."""
    repair_count: int
    left: str | None
    """The node that was left last; None at the entry."""
    cause: str
    """Why the next node is entered."""
    failure: str
    """Why the fallback is entered."""
    answer: str
    degraded: bool


@dataclass(frozen=True, slots=True)
class Step:
    """What a node decided: where to go, why, and what has changed; nowhere is the end."""

    to: str | None
    cause: str = NEXT
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphAnswer:
    """How the graph ended."""

    text: str
    degraded: bool
    results: tuple[Result, ...] = ()
    """What the tools returned on the way."""


def first_state(conversation: tuple[Message, ...]) -> State:
    """The state at the entry."""
    return State(
        conversation=conversation,
        plan=(),
        messages=(),
        results=(),
        is_relevant=False,
        repair_count=0,
        left=None,
        cause=NEXT,
        failure="",
        answer="",
        degraded=False,
    )
