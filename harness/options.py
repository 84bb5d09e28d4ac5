"""What a harness, and a call, may say beside the rest: one declaration for each, however it is made.

For type checkers only: the functions themselves name their keywords, so an unknown one is a `TypeError` as ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypedDict

from harness.budget.prices import PriceTable
from harness.budget.usage import TokenUsage
from harness.clock import MonotonicClock, WallClock
from harness.concurrency.threads import ToolThreads
from harness.content import CapturePolicy
from harness.hooks.observers import Observer
from harness.hooks.policies import Policy
from harness.ids import IdSource
from harness.retry import Classifier


class TimeoutOption(TypedDict, total=False):
    """Of every operation."""

    timeout_s: float | None
    """Seconds that one attempt may take; passing it fails the attempt, not the run (`AttemptTimedOut`)."""


class CallOptions(TimeoutOption, total=False):
    """Of every operation that is called by name."""

    args: Mapping[str, Any] | None
    """The arguments by name, beside the run, which comes first."""


class GuardOptions(CallOptions, total=False):
    """Of a guard."""

    kind: str
    """Decides the retry policy; `SEMANTIC_GUARD` unless given."""


class ModelOptions(CallOptions, total=False):
    """Of a model step."""

    kind: str
    """Decides the retry policy; `DIAGNOSIS_AGENT` unless given."""
    model: str | None
    """The model's name, for the record and its price."""
    reserve: TokenUsage | None
    """An estimate of its tokens, which each attempt reserves before it is sent (SPEC H4a)."""


class ToolLabels(TimeoutOption, total=False):
    """Of a tool, whichever way it gets its arguments."""

    call_id: str | None
    """The framework's id of the call, kept exactly as a label (SPEC D7)."""
    tool_key: str | None
    """As `ToolCallKeyFactory` makes it (SPEC H8)."""
    effect: str | None
    """`read` or `write`."""


class ToolOptions(ToolLabels, CallOptions, total=False):
    """Of a tool that is called by name."""


class Settings(TypedDict, total=False):
    """Of a harness: the fields of `harness.engine.Engine` beside its journal, where each is explained."""

    monotonic_clock: MonotonicClock
    wall_clock: WallClock
    ids: IdSource
    capture: CapturePolicy
    classifiers: tuple[Classifier, ...]
    sleep: Callable[[float], Awaitable[None]]
    close_timeout_s: float
    drain_timeout_s: float
    permit_timeout_s: float
    prices: PriceTable | None
    threads: ToolThreads
    observers: tuple[Observer, ...]
    policies: tuple[Policy, ...]
    hook_timeout_s: float
