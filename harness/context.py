"""The record that is passed explicitly to every boundary of a run (SPEC H1)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness.budget import Budget
from harness.cancellation import Cancellation
from harness.capacity import RunCapacity
from harness.deadline import Deadline
from harness.ids import check_name
from harness.lifecycle import Lifecycle
from harness.live import LiveRun
from harness.retry import RetryPolicies


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run. The record never changes; its handles are thread-safe and shared by every copy of it."""

    session_id: str
    run_id: str
    deadline: Deadline
    cancellation: Cancellation
    budget: Budget
    capacity: RunCapacity
    retry_policies: RetryPolicies
    lifecycle: Lifecycle
    live: LiveRun = field(repr=False)
    """What the handles share; for the harness, not for applications."""
    scope: tuple[str, ...] = ()
    """Where in the run this copy stands; the first part of every boundary's identity (SPEC D7)."""
    attempt_id: str | None = None
    """The attempt inside which this copy was handed out."""

    def branch(self, key: str) -> RunContext:
        """The same run in a scope of its own; concurrent work needs one each, or order would decide identity."""
        return replace(self, scope=(*self.scope, check_name("key", key)))

    def inside(self, segments: tuple[str, ...], attempt_id: str) -> RunContext:
        """The same run as an operation sees it: scoped to its attempt."""
        return replace(self, scope=(*self.scope, *segments), attempt_id=attempt_id)


Run = RunContext
"""What users call a `RunContext`."""
