"""Nested scopes, each with limits of its own inside those of its run (SPEC D5)."""

from typing import Literal

from harness.events.base import BoundaryEvent, Count, CountMap, Id, Name


class ScopeEvent(BoundaryEvent):
    """Any event of one nested scope; `boundary` is where it was opened."""

    scope_id: Id
    """Unique in its run."""


class ScopeOpened(ScopeEvent):
    """What is charged in it is charged to it, to every scope around it, and to the run."""

    type: Literal["scope.opened"] = "scope.opened"
    version: Literal[1] = 1
    parent_scope_id: Id | None = None
    limits: CountMap
    timeout_us: Count | None = None


class ScopeExhausted(ScopeEvent):
    """One of its limits refused work or was passed: nothing more starts in it. The run goes on."""

    type: Literal["scope.exhausted"] = "scope.exhausted"
    version: Literal[1] = 1
    resource: Name
    used: Count
    limit: Count


class ScopeClosed(ScopeEvent):
    """Nothing more is charged to it."""

    type: Literal["scope.closed"] = "scope.closed"
    version: Literal[1] = 1
