"""What an observer is told: how an attempt started or ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness import events as e
from harness.context import RunContext


@dataclass(frozen=True, slots=True)
class Observed:
    """The start or the end of an attempt, which is durable. Look, and change nothing."""

    run: RunContext
    """As the caller has it."""
    event: e.AttemptEvent
    """`attempt.started`, `attempt.succeeded`, `attempt.failed` or `attempt.abandoned`."""
    arguments: Mapping[str, Any] = field(repr=False)
    """By name, the very objects that the operation gets."""
    result: Any = field(default=None, repr=False)
    """What the operation returned, of `attempt.succeeded`."""
    error: BaseException | None = field(default=None, repr=False)
    """What its caller gets, of `attempt.failed` and `attempt.abandoned`."""


Observer: TypeAlias = Callable[[Observed], object | Awaitable[object]]
